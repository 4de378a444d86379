//! A kind of stream, compiled: how its packets and events are read.

use super::compile::Compiler;
use super::fast::{Header, Payload};
use super::in_place::InPlaceEvents;
use super::model::{Schema, Scope, StreamClass};
use super::program::{Op, Program};
use crate::request::MOST_FIELDS;
use crate::{EventType, Request};
use base::Clock;
use rustc_hash::FxHashMap;

/// Event ids below this are looked up in a table; tracers count them from 0.
pub(super) const DENSE_IDS: u64 = 4096;

pub(super) struct StreamKind {
    /// The number by which packets refer to it.
    pub id: u64,
    pub(crate) packet_header: Vec<Op>,
    pub(crate) packet_context: Vec<Op>,
    pub(crate) event_header: Vec<Op>,
    /// The same for the usual case.
    pub(crate) fast_header: Option<Header>,
    /// How many registers the steps use.
    pub registers: usize,
    /// The clock of its time stamps.
    pub clock: Option<Clock>,
    /// The shortest time stamp of an event in bits; `None` if events carry no time.
    pub(crate) shortest_time: Option<u8>,
    /// Alignment of event headers in bits.
    pub(crate) header_align: u32,
    /// The largest alignment of anything in an event.
    pub(crate) largest_align: u32,
    pub events: Vec<EventKind>,
    dense: Vec<u32>,
    sparse: FxHashMap<u64, u32>,
}

pub(super) struct EventKind {
    /// The number in its header.
    pub id: u64,
    /// Position in `Facts::event_types`.
    pub event_type: usize,
    program: Program,
}

/// How the events of a stream are read, given what a caller wants.
pub(super) struct Selection {
    /// Steps for each of [`StreamKind::events`].
    pub steps: Vec<Steps>,
    /// The quick way for those whose fields stay in place.
    pub in_place: Option<InPlaceEvents>,
}

/// Steps for an event, given what a caller wants.
pub(super) struct Steps {
    /// Its position in the request, if it is wanted.
    pub kind: Option<u16>,
    /// How many fields are wanted.
    pub fields: usize,
    /// Position in `Facts::event_types`.
    pub event_type: usize,
    /// The steps after the header.
    pub ops: Vec<Op>,
    /// The same, if all stands at fixed places.
    pub fast: Option<Payload>,
}

const NO_EVENT: u32 = u32::MAX;

impl StreamKind {
    /// Compiles `class`; kinds of event that `event_types` does not have yet are added to it. `classes` counts what is
    /// compiled of the schema's fields.
    ///
    /// # Errors
    /// A sentence, if a length or selector refers to nothing.
    pub(super) fn compile(
        schema: &Schema,
        class: &StreamClass,
        event_types: &mut EventTypes,
        classes: &mut usize,
    ) -> Result<Self, String> {
        let mut compiler = Compiler::new(schema, *classes);
        let in_stream = |what: &str, error: String| format!("{error} (in the {what} of stream {})", class.id);
        let part = |compiler: &mut Compiler<'_>, scope, class: Option<&_>, what| {
            compiler.part(scope, class).map_err(|error| in_stream(what, error))
        };
        let header = schema.packet_header.as_ref();
        let mut packet_header = part(&mut compiler, Scope::PacketHeader, header, "packet header")?;
        let mut packet_context =
            part(&mut compiler, Scope::PacketContext, class.packet_context.as_ref(), "packet context")?;
        let mut event_header = part(&mut compiler, Scope::EventHeader, class.event_header.as_ref(), "event header")?;
        let mut events = Vec::new();
        for event in &class.events {
            let parts = [
                (Scope::StreamContext, class.event_context.as_ref()),
                (Scope::EventContext, event.context.as_ref()),
                (Scope::Payload, event.payload.as_ref()),
            ];
            let program = compiler.event(parts).map_err(|error| format!("{error} (in event {})", event.name))?;
            let (system, name) = event.name.split_once(':').unwrap_or(("", &event.name));
            let described =
                EventType { system: system.to_owned(), name: name.to_owned(), fields: program.shown_fields() };
            events.push(EventKind { id: event.id, event_type: event_types.position(described), program });
        }
        *classes = compiler.classes_before;
        let parts = [&mut packet_header, &mut packet_context, &mut event_header];
        let registers =
            compiler.settle_registers(parts.into_iter().chain(events.iter_mut().map(|event| &mut event.program)));
        let clock_id = class.clock.as_ref().or(compiler.clock.as_ref());
        // A single clock is meant even where no field is mapped to it (barectf before 3, hand-written metadata).
        let clock = schema.clocks.iter().find(|clock| Some(&clock.id) == clock_id);
        let clock = clock.or(schema.clocks.first().filter(|_| schema.clocks.len() == 1));
        let mut kind = Self {
            id: class.id,
            packet_header: packet_header.select(&[]),
            packet_context: packet_context.select(&[]),
            fast_header: None,
            event_header: event_header.select(&[]),
            registers,
            clock: clock.map(super::model::ClockClass::clock),
            shortest_time: compiler.shortest_time,
            header_align: class.event_header.as_ref().map_or(1, |class| class.align()),
            largest_align: class.event_parts().map(|class| class.largest_align()).max().unwrap_or(1),
            events,
            dense: Vec::new(),
            sparse: FxHashMap::default(),
        };
        kind.fast_header = Header::recognise(&kind.event_header);
        kind.number_events();
        Ok(kind)
    }

    fn number_events(&mut self) {
        for (at, event) in self.events.iter().enumerate() {
            if event.id < DENSE_IDS {
                let id = event.id as usize;
                if self.dense.len() <= id {
                    self.dense.resize(id + 1, NO_EVENT);
                }
                self.dense[id] = at as u32;
            } else {
                self.sparse.insert(event.id, at as u32);
            }
        }
    }

    /// Position in `events` of the event with this id.
    #[inline]
    pub(super) fn event(&self, id: u64) -> Option<usize> {
        let at = match self.dense.get(id as usize) {
            Some(at) => *at,
            None => self.sparse.get(&id).copied().unwrap_or(NO_EVENT),
        };
        (at != NO_EVENT).then_some(at as usize)
    }

    /// The id of events whose header has none: there can be only one kind.
    pub(super) fn only_id(&self) -> u64 {
        self.events.first().map_or(0, |event| event.id)
    }

    /// How its events are read, given what is wanted.
    pub(super) fn select(&self, request: &Request, event_types: &[EventType]) -> Selection {
        let steps = self.events.iter().map(|event| event.select(request, &event_types[event.event_type]));
        let steps: Vec<Steps> = steps.collect();
        let in_place = InPlaceEvents::of(self.fast_header.as_ref(), &self.events, &steps);
        Selection { steps, in_place }
    }
}

impl EventKind {
    fn select(&self, request: &Request, event_type: &EventType) -> Steps {
        let kind = request.kind_of(event_type);
        let positions = kind.map(|kind| request.events[kind].positions(event_type)).unwrap_or_default();
        let wanted: Vec<_> =
            positions.iter().take(MOST_FIELDS).map(|at| at.map(|at| self.program.position(at))).collect();
        let ops = self.program.select(&wanted);
        Steps {
            kind: kind.and_then(|kind| u16::try_from(kind).ok()),
            fields: wanted.len(),
            event_type: self.event_type,
            fast: Payload::recognise(&ops, wanted.len()),
            ops,
        }
    }
}

/// The kinds of event met so far; equal ones of several streams and traces are one.
#[derive(Default)]
pub(super) struct EventTypes {
    /// The kinds, in the order of the metadata.
    pub list: Vec<EventType>,
    by_name: FxHashMap<String, Vec<usize>>,
}

impl EventTypes {
    fn position(&mut self, described: EventType) -> usize {
        let same_name = self.by_name.entry(format!("{}:{}", described.system, described.name)).or_default();
        if let Some(at) = same_name.iter().find(|at| self.list[**at] == described) {
            return *at;
        }
        same_name.push(self.list.len());
        self.list.push(described);
        self.list.len() - 1
    }
}
