//! What does a trace file say of itself?

use base::{Clock, Problem};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The description of one opened trace.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The file or directory as the user named it.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// The clock of its main buffer or stream.
    pub clock: Clock,
    /// Kernel release and machine, as `uname` or the trace's environment gives them.
    pub uname: Option<String>,
    /// Host name, where given.
    pub hostname: Option<String>,
    /// Number of CPUs, where given; else the number of CPU streams.
    pub cpus: u32,
    /// Kinds of events described in the file, in file order; a [`Batch`](crate::Batch) counts by position in this list.
    pub event_types: Vec<EventType>,
    /// Thread names the file lists (trace.dat's saved command lines, perf's COMM records read at the start).
    pub comms: BTreeMap<i32, String>,
    /// Everything else the file states about its origin, by name: LTTng's `env`, trace.dat's `VERSION`.
    pub env: BTreeMap<String, String>,
    /// trace.dat's TRACEID, by which recordings of hosts and guests name each other.
    pub trace_id: Option<u64>,
    /// Guests whose recordings belong to this one (trace.dat's GUEST options).
    pub guests: Vec<Guest>,
    /// Clock samples against the recordings of other machines (trace.dat's TIME_SHIFT options).
    pub time_shifts: Vec<TimeShift>,
    /// Losses that the file states for a whole CPU (trace.dat's CPUSTAT): overwritten or dropped events.
    pub losses: Vec<StatedLoss>,
    /// Size of all its files.
    pub bytes: u64,
    /// Damage found while opening.
    pub problems: Vec<Problem>,
}

impl Facts {
    /// Facts of a trace about which nothing is known yet.
    pub fn new(path: PathBuf, format: Format, clock: Clock) -> Self {
        Self {
            path,
            format,
            clock,
            uname: None,
            hostname: None,
            cpus: 0,
            event_types: Vec::new(),
            comms: BTreeMap::new(),
            env: BTreeMap::new(),
            trace_id: None,
            guests: Vec::new(),
            time_shifts: Vec::new(),
            losses: Vec::new(),
            bytes: 0,
            problems: Vec::new(),
        }
    }
}

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// trace-cmd's file, version 6 or 7.
    TraceDat {
        /// 6 or 7.
        version: u32,
    },
    /// Common Trace Format 1.8.
    Ctf1,
    /// Common Trace Format 2.
    Ctf2,
    /// perf's file or pipe.
    PerfData,
    /// Text of `trace-cmd report`, `trace_pipe` or `perf script`.
    Text,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Format::TraceDat { version } => write!(f, "trace.dat v{version}"),
            Format::Ctf1 => f.write_str("CTF 1.8"),
            Format::Ctf2 => f.write_str("CTF 2"),
            Format::PerfData => f.write_str("perf.data"),
            Format::Text => f.write_str("text"),
        }
    }
}

/// One kind of event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventType {
    /// Group, such as `kvm`; empty where the format has none.
    pub system: String,
    /// Name without the group.
    pub name: String,
    /// Its fields in file order, without the common ones.
    pub fields: Vec<FieldType>,
}

/// One field of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldType {
    /// Name as a user knows it: without CTF's leading underscore.
    pub name: String,
    /// How to read its value.
    pub kind: FieldKind,
    /// Names of values (CTF enumerations), where the description has them: first value, last value, name.
    pub labels: Vec<(i128, i128, String)>,
}

/// How the 64-bit value of a field is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// An unsigned integer.
    Unsigned,
    /// A signed integer, sign-extended to 64 bits.
    Signed,
    /// The bits of an `f64`.
    Float,
    /// A handle to text; see [`Batch::bytes`](crate::Batch::bytes).
    Text,
    /// A handle to raw bytes: an array, a structure, a blob.
    Bytes,
}

/// A guest named by a host's recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Name of the guest.
    pub name: String,
    /// TRACEID of the guest's own recording.
    pub trace_id: u64,
    /// Host thread id of each of its vCPUs.
    pub vcpu_tids: Vec<(u32, i32)>,
}

/// Clock samples between this recording and another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeShift {
    /// TRACEID of the other recording.
    pub peer: u64,
    /// 1: interpolate between samples.
    pub flags: u32,
    /// Samples per CPU: time, offset, scaling.
    pub samples: Vec<Vec<(u64, i64, u64)>>,
    /// Fraction bits of each CPU's scaling.
    pub fraction_bits: Vec<u64>,
}

/// Events a CPU lost, as the file states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedLoss {
    /// The CPU.
    pub cpu: u32,
    /// `overrun`, `commit overrun`, `dropped events`.
    pub kind: String,
    /// How many.
    pub count: u64,
}
