//! What does the metadata of a CTF trace describe?
//!
//! TSDL (CTF 1.8) and JSON fragments (CTF 2) both become this one model; everything after it knows no version.
//! ```text
//! Schema -> packet header
//!        -> StreamClass -> packet context, event header, event context
//!                       -> EventClass -> context, payload
//! ```
//! Names and meanings: CTF 1.8.3 sections 4 to 6, CTF2-SPEC-2.0 section 5.

use crate::Format;
use crate::format::Endian;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All that one `metadata` file says.
#[derive(Debug, Clone)]
pub(super) struct Schema {
    /// CTF 1.8 or CTF 2.
    pub format: Format,
    /// What the trace states about its origin.
    pub env: BTreeMap<String, String>,
    pub clocks: Vec<ClockClass>,
    /// What stands at the start of each packet.
    pub(crate) packet_header: Option<Arc<Class>>,
    pub streams: Vec<StreamClass>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClockClass {
    /// The name by which fields refer to it (in CTF 2 its id).
    pub id: String,
    pub name: String,
    /// Ticks per second.
    pub frequency: u64,
    /// Seconds between the clock's origin and its zero.
    pub offset_s: i64,
    /// Ticks between the clock's origin and its zero, beside the seconds.
    pub(crate) offset_ticks: i64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct StreamClass {
    /// The number by which packets refer to it.
    pub id: u64,
    /// What follows the packet header.
    pub(crate) packet_context: Option<Arc<Class>>,
    /// What stands before each event.
    pub(crate) event_header: Option<Arc<Class>>,
    /// What stands between the header of each event and its own context.
    pub(crate) event_context: Option<Arc<Class>>,
    /// The clock of its time stamps, where the stream names it and not the field.
    pub clock: Option<String>,
    pub events: Vec<EventClass>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct EventClass {
    /// The number that stands in the event header.
    pub id: u64,
    /// Its name, in user space traces with the provider before a colon.
    pub name: String,
    /// What stands before its payload.
    pub context: Option<Arc<Class>>,
    pub payload: Option<Arc<Class>>,
}

/// A kind of field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Class {
    /// An integer of fixed length; also booleans, bit maps and enumerations.
    Integer(Integer),
    /// An integer in LEB128 (CTF 2).
    Leb(Leb),
    /// A floating-point number.
    Float(Float),
    /// Text up to a NUL.
    Text {
        /// Bytes of a code unit: 1 (UTF-8), 2 (UTF-16) or 4 (UTF-32).
        unit: u8,
        /// Byte order of code units.
        order: Endian,
    },
    /// So many bytes of text or raw data.
    Counted {
        /// How many bytes.
        length: Length,
        /// True for text that ends at its first NUL, if it has one.
        text: bool,
    },
    /// Members one after the other.
    Struct {
        /// Its alignment in bits: the largest of its members', or more.
        align: u32,
        members: Vec<(String, Arc<Class>)>,
    },
    /// So many elements of one class.
    Array {
        length: Length,
        /// At least this alignment, in bits.
        align: u32,
        element: Arc<Class>,
    },
    /// One of several, selected by an earlier integer.
    Variant {
        selector: Path,
        /// What can be selected.
        options: Vec<Choice>,
    },
    /// There or not, as an earlier integer says (CTF 2).
    Optional {
        selector: Path,
        /// Values that mean it is there.
        ranges: Vec<Range>,
        class: Arc<Class>,
    },
}

/// Values from the first to the last, both inside.
pub(super) type Range = (i128, i128);

/// One of the things a variant can be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    /// Its name; in TSDL also the label of the selector's values.
    pub name: String,
    /// Values of the selector; `None`: those that the selector's enumeration calls by the choice's name.
    pub ranges: Option<Vec<Range>>,
    pub class: Arc<Class>,
}

/// An integer of fixed length.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Integer {
    /// Its length, 1 to 64.
    pub bits: u8,
    /// Its alignment in bits, a power of two.
    pub align: u32,
    /// True for two's complement.
    pub signed: bool,
    pub order: Endian,
    /// True if the bits inside a byte run against the byte order (CTF 2's bit order).
    pub swapped: bool,
    /// True if it is a character.
    pub text: bool,
    /// The clock whose time it carries.
    pub clock: Option<String>,
    /// Names of its values.
    pub labels: Vec<(i128, i128, String)>,
    /// What it means to the reader (CTF 2 says it; in CTF 1.8 the name does).
    pub roles: Vec<Role>,
}

/// An integer in LEB128.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leb {
    /// True for two's complement.
    pub signed: bool,
    /// Names of its values.
    pub labels: Vec<(i128, i128, String)>,
    /// What it means to the reader.
    pub roles: Vec<Role>,
}

/// A floating-point number of 32 or 64 bits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Float {
    /// 32 or 64.
    pub bits: u8,
    /// Its alignment in bits, a power of two.
    pub align: u32,
    pub order: Endian,
    /// See [`Integer::swapped`].
    pub swapped: bool,
}

/// How many elements or bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Length {
    /// Always so many.
    Fixed(u64),
    /// As an earlier integer says.
    Field(Path),
}

/// Where an earlier integer stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    /// Where to start; `None`: in the structures around the one who asks, from the inside out.
    pub scope: Option<Scope>,
    pub names: Vec<String>,
}

/// The parts of a packet and of an event, in the order in which they stand there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// `trace.packet.header`.
    PacketHeader,
    /// `stream.packet.context`.
    PacketContext,
    /// `stream.event.header`.
    EventHeader,
    /// `stream.event.context`.
    StreamContext,
    /// `event.context`.
    EventContext,
    /// `event.fields`.
    Payload,
}

/// What an integer means to the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Role {
    /// 0xC1FC1FC1 at the start of a packet.
    Magic,
    /// Which kind of stream the packet belongs to.
    StreamId,
    StreamInstance,
    /// Time of its first event or earlier.
    Begin,
    /// Time of its last event or later.
    End,
    /// Bits that hold events, header included.
    ContentSize,
    /// Bits up to the next packet.
    PacketSize,
    /// Its number in the stream.
    Sequence,
    /// Events the stream has lost so far.
    Discarded,
    /// The CPU.
    Cpu,
    /// Which kind of event follows.
    EventId,
    /// When it happened.
    Time,
    /// The thread in which it happened.
    Tid,
}

impl Role {
    pub(super) const COUNT: usize = Role::Tid as usize + 1;

    /// The meaning that CTF 1.8 gives a name in a scope (sections 5.2 and 6.1; `cpu_id` and `tid` are LTTng's).
    pub(super) fn of_name(scope: Scope, name: &str) -> Option<Self> {
        let role = match (scope, name) {
            (Scope::PacketHeader, "magic") => Role::Magic,
            (Scope::PacketHeader, "stream_id") => Role::StreamId,
            (Scope::PacketHeader, "stream_instance_id") => Role::StreamInstance,
            (Scope::PacketContext, "timestamp_begin") => Role::Begin,
            (Scope::PacketContext, "timestamp_end") => Role::End,
            (Scope::PacketContext, "content_size") => Role::ContentSize,
            (Scope::PacketContext, "packet_size") => Role::PacketSize,
            (Scope::PacketContext, "packet_seq_num") => Role::Sequence,
            (Scope::PacketContext, "events_discarded") => Role::Discarded,
            (Scope::EventHeader, "id") => Role::EventId,
            (Scope::EventHeader, "timestamp") => Role::Time,
            _ => return None,
        };
        Some(role)
    }
}

impl Class {
    /// A structure that is at least so aligned.
    pub(super) fn structure(least_align: u32, members: Vec<(String, Arc<Class>)>) -> Self {
        let align = members.iter().map(|(_, class)| class.align()).fold(least_align.max(1), u32::max);
        Class::Struct { align, members }
    }

    pub(super) fn align(&self) -> u32 {
        match self {
            Class::Integer(integer) => integer.align,
            Class::Float(float) => float.align,
            Class::Leb(_) | Class::Text { .. } | Class::Counted { .. } => 8,
            Class::Struct { align, .. } => *align,
            Class::Array { align, element, .. } => (*align).max(element.align()),
            Class::Variant { .. } | Class::Optional { .. } => 1,
        }
    }

    /// The largest alignment of anything inside. Visits all of it: only for classes that were compiled, which are bounded.
    pub(super) fn largest_align(&self) -> u32 {
        let inside = match self {
            Class::Struct { members, .. } => members.iter().map(|(_, class)| class.largest_align()).max(),
            Class::Array { element, .. } => Some(element.largest_align()),
            Class::Variant { options, .. } => options.iter().map(|choice| choice.class.largest_align()).max(),
            Class::Optional { class, .. } => Some(class.largest_align()),
            _ => None,
        };
        inside.unwrap_or(1).max(self.align())
    }
}

impl StreamClass {
    /// The classes of everything that events consist of.
    pub(super) fn event_parts(&self) -> impl Iterator<Item = &Arc<Class>> {
        let own = self.events.iter().flat_map(|event| [event.context.as_ref(), event.payload.as_ref()]);
        own.chain([self.event_header.as_ref(), self.event_context.as_ref()]).flatten()
    }
}

impl Schema {
    /// A schema without content.
    pub(super) fn new(format: Format) -> Self {
        Self { format, env: BTreeMap::new(), clocks: Vec::new(), packet_header: None, streams: Vec::new() }
    }

    /// True if names give integers their meaning.
    pub(super) fn names_are_roles(&self) -> bool {
        self.format == Format::Ctf1
    }
}

impl ClockClass {
    /// The clock as the rest of the program knows it.
    pub(super) fn clock(&self) -> base::Clock {
        let scale = base::Clock::with_frequency(self.name.clone(), self.frequency);
        let ticks_ns = i128::from(self.offset_ticks) * 1_000_000_000 / i128::from(self.frequency.max(1));
        let offset_ns = i128::from(self.offset_s) * 1_000_000_000 + ticks_ns;
        let offset_ns = offset_ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        base::Clock { offset_ns, ..scale }
    }
}
