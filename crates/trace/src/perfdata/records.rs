//! One record after the other, none of them trusted.
//!
//! ```text
//! [u32 kind][u16 misc][u16 size][body, size - 8 bytes]      AUXTRACE and TRACING_DATA (pipe): + trailing bytes
//! ```
//! A size that cannot be right ends the chain of records. Reading goes on behind the next FINISHED_ROUND record, whose
//! eight bytes are always the same; what lies between is counted as skipped.
//! Source: `struct perf_event_header` in include/uapi/linux/perf_event.h, `enum perf_user_event_type` in
//! tools/lib/perf/include/perf/event.h, Linux 6.12.

use crate::format::Endian;
use base::{Problem, Problems};
use std::ops::Range;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordKind(pub u32);

impl RecordKind {
    /// Events that did not fit into the kernel's buffer: id, number.
    pub(super) const LOST: Self = Self(2);
    /// A thread's name: pid, tid, name.
    pub(super) const COMM: Self = Self(3);
    /// An event that was counted or traced.
    pub(super) const SAMPLE: Self = Self(9);
    /// Samples that the hardware or a BPF filter dropped.
    pub(super) const LOST_SAMPLES: Self = Self(13);
    /// Pipe form: the attribute of an event.
    pub(super) const ATTR: Self = Self(64);
    /// Pipe form: the formats of the tracepoints follow.
    pub(super) const TRACING_DATA: Self = Self(66);
    /// What comes later is not older than what came before the previous one of these.
    pub(super) const FINISHED_ROUND: Self = Self(68);
    /// Hardware trace bytes follow.
    pub(super) const AUXTRACE: Self = Self(71);
    /// Pipe form: a feature section.
    pub(super) const FEATURE: Self = Self(80);
    /// Part of a zstd stream of records.
    pub(super) const COMPRESSED: Self = Self(81);
    /// The same with its length before it and padding behind it.
    pub(super) const COMPRESSED2: Self = Self(83);
}

impl RecordKind {
    /// True for the kinds of Linux 6.18: of the kernel up to AUX_OUTPUT_HW_ID, of perf from ATTR to SCHEDSTAT_DOMAIN.
    pub(super) fn is_known(self) -> bool {
        matches!(self.0, 1..=21 | 64..=86)
    }

    /// True for what the kernel writes; perf's own records begin at ATTR and carry no time.
    pub(super) fn is_kernels(self) -> bool {
        self.0 < Self::ATTR.0
    }

    /// True for the kernel's records of which names follow, of threads and of addresses: MMAP, COMM, EXIT, FORK, MMAP2,
    /// NAMESPACES, KSYMBOL, BPF_EVENT, CGROUP, TEXT_POKE.
    pub(super) fn is_name(self) -> bool {
        matches!(self.0, 1 | 3 | 4 | 7 | 10 | 16..=20)
    }

    /// True for perf's records that describe all others: ATTR, EVENT_TYPE, TRACING_DATA, BUILD_ID, ID_INDEX, THREAD_MAP,
    /// CPU_MAP, EVENT_UPDATE, TIME_CONV, FEATURE, BPF_METADATA.
    pub(super) fn is_description(self) -> bool {
        matches!(self.0, 64..=67 | 69 | 73 | 74 | 78..=80 | 84)
    }

    /// True for hardware traces: AUXTRACE_INFO, AUXTRACE, AUXTRACE_ERROR.
    pub(super) fn is_hardware_trace(self) -> bool {
        matches!(self.0, 70..=72)
    }

    /// True for what may be a kind of a later kernel or perf; more is damage.
    fn is_plausible(self) -> bool {
        (1..MOST_KINDS).contains(&self.0)
    }
}

/// perf's own kinds begin at 64, behind the kernel's; neither is near the end of its range.
const MOST_KINDS: u32 = 128;

/// Size of a record's header.
pub(super) const HEADER: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct Record<'t> {
    pub kind: RecordKind,
    /// Flags; the lowest three bits of a sample say where the CPU was.
    pub misc: u16,
    /// What follows the header.
    pub body: &'t [u8],
    /// Where the bytes lie that trail it, if any.
    pub(crate) trailer: Range<usize>,
    /// Where it starts in the file.
    pub offset: u64,
}

/// Parses the record at the start of `bytes`; `None` if it is not whole or its size is impossible.
pub(super) fn split_record(bytes: &[u8], endian: Endian) -> Option<(RecordKind, u16, &[u8])> {
    let header = bytes.get(..HEADER)?;
    let size = endian.unsigned(&header[6..8]) as usize;
    let body = bytes.get(HEADER..size)?;
    Some((RecordKind(endian.unsigned(&header[..4]) as u32), endian.unsigned(&header[4..6]) as u16, body))
}

/// The records of a range of a file.
#[derive(Debug)]
pub(super) struct Records<'t> {
    bytes: &'t [u8],
    at: usize,
    endian: Endian,
    file: String,
}

impl<'t> Records<'t> {
    /// Records in `range` of `bytes`.
    pub(super) fn new(bytes: &'t [u8], range: Range<usize>, endian: Endian, path: &Path) -> Self {
        let end = range.end.min(bytes.len());
        Self { bytes: &bytes[..end], at: range.start.min(end), endian, file: path.display().to_string() }
    }

    /// The file's name, for messages.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// The next record; damage on the way to it goes into `problems`.
    pub(super) fn next(&mut self, problems: &mut Problems) -> Option<Record<'t>> {
        while self.at < self.bytes.len() {
            let start = self.at;
            let rest = &self.bytes[start..];
            let split = split_record(rest, self.endian).filter(|(kind, ..)| kind.is_plausible());
            let whole = split.and_then(|(kind, misc, body)| {
                let body_end = start + HEADER + body.len();
                let trailing = match kind {
                    RecordKind::AUXTRACE => self.endian.unsigned(body.get(..8)?),
                    // Padded to eight bytes (`perf_event__synthesize_tracing_data`).
                    RecordKind::TRACING_DATA => self.endian.unsigned(body.get(..4)?).next_multiple_of(8),
                    _ => 0,
                };
                let end = body_end.checked_add(usize::try_from(trailing).ok()?)?;
                let trailer = body_end..end;
                (end <= self.bytes.len()).then_some(Record { kind, misc, body, trailer, offset: start as u64 })
            });
            if let Some(record) = whole {
                self.at = record.trailer.end;
                return Some(record);
            }
            self.at = self.next_round(start + 1);
            let skipped = (self.at - start) as u64;
            let kind = rest.get(..4).map(|kind| RecordKind(self.endian.unsigned(kind) as u32));
            let found = rest.get(6..8).map(|size| self.endian.unsigned(size));
            let problem = Problem::at(
                self.file.as_str(),
                start as u64,
                "a whole record of perf.data",
                match (kind.filter(|kind| !kind.is_plausible()), found) {
                    (Some(kind), _) => format!("kind {}", kind.0),
                    (None, Some(size)) => format!("a size of {size} bytes"),
                    (None, None) => format!("{} bytes", rest.len()),
                },
                skipped,
                "a record of perf.data is damaged or truncated; reading continues at the next round of records",
            );
            problems.note(problem);
        }
        None
    }

    /// Where the next FINISHED_ROUND record starts at or after `from`.
    fn next_round(&self, from: usize) -> usize {
        let pattern = match self.endian {
            Endian::Little => [68, 0, 0, 0, 0, 0, 8, 0],
            Endian::Big => [0, 0, 0, 68, 0, 0, 0, 8],
        };
        memchr::memmem::find(&self.bytes[from..], &pattern).map_or(self.bytes.len(), |at| from + at)
    }
}
