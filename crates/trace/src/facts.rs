//! What does a trace file say of itself?

use base::{Clock, MOST_CPUS, Problem};
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
    /// Process of each thread, where the file says it: the text's `(tgid)`, perf's COMM records.
    pub tgids: BTreeMap<i32, i32>,
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
    /// When the file goes on after a part that somebody left out of it, in order.
    pub resumed_ns: Vec<u64>,
    /// For which time the events of each CPU are in the file. Holds every CPU that the file declares or has a stream of;
    /// of a CPU that is not in it the file says nothing.
    pub coverage: BTreeMap<u32, Coverage>,
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
            tgids: BTreeMap::new(),
            env: BTreeMap::new(),
            trace_id: None,
            guests: Vec::new(),
            time_shifts: Vec::new(),
            losses: Vec::new(),
            resumed_ns: Vec::new(),
            coverage: BTreeMap::new(),
            bytes: 0,
            problems: Vec::new(),
        }
    }

    /// Takes in for which time the events of each CPU are there, and notes what is not there among the losses. CPU numbers
    /// that no kernel has are damage.
    pub(crate) fn cover(&mut self, cpus: impl IntoIterator<Item = (u32, Coverage)>) {
        for (cpu, coverage) in cpus.into_iter().filter(|(cpu, _)| *cpu < MOST_CPUS) {
            self.coverage.insert(cpu, coverage);
            let kind = match coverage {
                Coverage::Whole => continue,
                Coverage::Part { from_ns, until_ns } if from_ns > 0 && until_ns < u64::MAX => "partial stream",
                Coverage::Part { from_ns, .. } if from_ns > 0 => "late stream",
                Coverage::Part { .. } => "truncated stream",
                Coverage::Missing => "missing stream",
            };
            self.losses.push(StatedLoss { cpu: Some(cpu), kind: kind.to_owned(), count: 0 });
        }
    }
}

/// For which part of the recording the events of a CPU are in the file. Times are those of [`Facts::clock`] (ticks,
/// where that clock is not calibrated).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// From the start of the recording to its end. A CPU that was idle all the time has no event, and is covered.
    Whole,
    /// What the CPU did before `from_ns` (0: from the start on) and after `until_ns` (`u64::MAX`: to the end) is unknown.
    Part {
        /// Time of the first event that is there.
        from_ns: u64,
        /// Time of the last event that is there.
        until_ns: u64,
    },
    /// The CPU was recorded, or could have been, and nothing of it is in the file.
    Missing,
}

impl Coverage {
    /// Coverage between two times.
    pub fn between(from_ns: u64, until_ns: u64) -> Self {
        match (from_ns, until_ns) {
            (0, u64::MAX) => Coverage::Whole,
            _ => Coverage::Part { from_ns, until_ns },
        }
    }

    /// What is left where a second stream of the same CPU is covered as `other` says.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self.times(), other.times()) {
            (Some((from, until)), Some((other_from, other_until))) => {
                Self::between(from.max(other_from), until.min(other_until))
            }
            _ => Coverage::Missing,
        }
    }

    /// What both together cover, where either of two streams of the same CPU will do.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self.times(), other.times()) {
            (Some((from, until)), Some((other_from, other_until))) => {
                Self::between(from.min(other_from), until.max(other_until))
            }
            (Some(_), None) => self,
            _ => other,
        }
    }

    fn times(self) -> Option<(u64, u64)> {
        match self {
            Coverage::Whole => Some((0, u64::MAX)),
            Coverage::Part { from_ns, until_ns } => Some((from_ns, until_ns)),
            Coverage::Missing => None,
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
    /// The CPU; `None` if the file does not say which.
    pub cpu: Option<u32>,
    /// `overrun`, `commit overrun`, `dropped events`; `missing stream`, `late stream`, `truncated stream`, `partial stream`
    /// for what [`Facts::coverage`] says.
    pub kind: String,
    /// How many; 0 where that is unknown.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_of_two_streams_is_what_both_or_either_have() {
        let late = Coverage::between(5, u64::MAX);
        let early = Coverage::between(0, 9);
        assert_eq!(late.and(early), Coverage::Part { from_ns: 5, until_ns: 9 });
        assert_eq!(late.or(early), Coverage::Whole);
        assert_eq!((late.and(Coverage::Missing), late.or(Coverage::Missing)), (Coverage::Missing, late));
        assert_eq!(Coverage::Whole.and(early), early);
    }
}
