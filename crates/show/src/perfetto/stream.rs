//! Packets one after the other into a writer, names said once, without what misleads in them ([`base::plain`]).

use super::messages::{
    DebugAnnotation, EventType, InternedData, InternedName, NEEDS_STATE, STATE_CLEARED, TracePacket, TrackDescriptor,
    TrackEvent,
};
use base::plain::plain;
use prost::Message;
use prost::encoding::{WireType, encode_key};
use std::collections::HashMap;
use std::io::{self, Write};

/// Our only sequence.
const SEQUENCE: u32 = 1;

/// Field `packet` of message `Trace`.
const PACKET: u32 = 1;

/// Writes packets; memory is that of the names.
pub(super) struct Stream<'w> {
    out: &'w mut dyn Write,
    buffer: Vec<u8>,
    begun: bool,
    categories: Names,
    names: Names,
    annotations: Names,
    /// Names that the next packet has to introduce.
    new: InternedData,
    last_uuid: u64,
    slices: u64,
}

/// Numbers of names, from 1 on.
type Names = HashMap<String, u64>;

pub(super) struct Said<'a> {
    pub kind: EventType,
    pub track: u64,
    pub at_ns: u64,
    /// Name and category, for all but the end of a slice.
    pub name: Option<(&'a str, &'a str)>,
}

impl<'w> Stream<'w> {
    pub(super) fn new(out: &'w mut dyn Write) -> Self {
        Self {
            out,
            buffer: Vec::new(),
            begun: false,
            categories: Names::new(),
            names: Names::new(),
            annotations: Names::new(),
            new: InternedData::default(),
            last_uuid: 0,
            slices: 0,
        }
    }

    /// Declares a track; its number is returned.
    pub(super) fn track(&mut self, descriptor: TrackDescriptor) -> io::Result<u64> {
        self.last_uuid += 1;
        let mut track = TrackDescriptor { uuid: self.last_uuid, ..descriptor };
        let names = [
            track.name.as_mut(),
            track.process.as_mut().map(|process| &mut process.process_name),
            track.thread.as_mut().map(|thread| &mut thread.thread_name),
        ];
        for name in names.into_iter().flatten() {
            *name = plain(name).into_owned();
        }
        let track_descriptor = Some(track);
        self.packet(TracePacket { track_descriptor, ..TracePacket::default() })?;
        Ok(self.last_uuid)
    }

    /// An event with nothing but its name.
    pub(super) fn event(&mut self, said: &Said<'_>) -> io::Result<()> {
        self.event_with(said, TrackEvent::default())
    }

    /// An event with more fields.
    pub(super) fn event_with(&mut self, said: &Said<'_>, more: TrackEvent) -> io::Result<()> {
        let mut event = TrackEvent { r#type: said.kind.into(), track_uuid: said.track, ..more };
        self.slices += u64::from(said.kind == EventType::SliceBegin);
        if let Some((name, category)) = said.name {
            event.name_iid = Some(number(&mut self.names, name, &mut self.new.event_names));
            event.category_iids = vec![number(&mut self.categories, category, &mut self.new.event_categories)];
        }
        let timestamp = Some(said.at_ns);
        self.packet(TracePacket { timestamp, track_event: Some(event), ..TracePacket::default() })
    }

    pub(super) fn number(&mut self, name: &str, value: u64) -> DebugAnnotation {
        DebugAnnotation { name_iid: self.annotation(name), uint_value: Some(value), string_value: None }
    }

    pub(super) fn words(&mut self, name: &str, value: String) -> DebugAnnotation {
        DebugAnnotation {
            name_iid: self.annotation(name),
            uint_value: None,
            string_value: Some(plain(&value).into_owned()),
        }
    }

    /// How many slices were written.
    pub(super) fn finish(self) -> io::Result<u64> {
        self.out.flush()?;
        Ok(self.slices)
    }

    fn annotation(&mut self, name: &str) -> u64 {
        number(&mut self.annotations, name, &mut self.new.debug_annotation_names)
    }

    fn packet(&mut self, packet: TracePacket) -> io::Result<()> {
        let new = std::mem::take(&mut self.new);
        let first = !std::mem::replace(&mut self.begun, true);
        let packet = TracePacket {
            trusted_packet_sequence_id: SEQUENCE,
            sequence_flags: if first { STATE_CLEARED } else { NEEDS_STATE },
            interned_data: (new != InternedData::default()).then_some(new),
            ..packet
        };
        self.buffer.clear();
        encode_key(PACKET, WireType::LengthDelimited, &mut self.buffer);
        packet.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        self.out.write_all(&self.buffer)
    }
}

/// The number of `name`; a new one has to be introduced.
fn number(known: &mut Names, name: &str, new: &mut Vec<InternedName>) -> u64 {
    if let Some(iid) = known.get(name) {
        return *iid;
    }
    let iid = known.len() as u64 + 1;
    known.insert(name.to_owned(), iid);
    new.push(InternedName { iid, name: plain(name).into_owned() });
    iid
}
