//! What did `perf record` see?
//!
//! In:  a perf.data file, in file or pipe form, with or without zstd, of either byte order.
//! Out: tracepoint events with the fields of the embedded formats; samples of counters with their stacks, host or guest
//!      (`kinds.rs` lists their fields); lost records.
//! ```text
//! container   header, attributes, features        -> where everything lies
//! tracing     TRACING_DATA feature                -> formats of the tracepoints
//! records     one record after the other, checked -> order   zstd unpacked, sorted round by round
//!                                                 -> stream  batches
//! ```
//! A recording that stops early has no formats (they stand at its end in the file form): its tracepoints are then
//! counted as `perf:tracepoint_N`. Times are those of the scheduler clock, unless `perf record -k` chose another.
//!
//! The crate `linux-perf-event-reader` (0.10) names the bits of the format. The container is walked by ourselves, because
//! `linux-perf-data` (0.13) reads a pipe's formats as if they were records, allocates by unchecked sizes, and stops at
//! the first damaged record; a test compares what both see of an undamaged file.

mod attr;
mod container;
mod kinds;
mod order;
mod records;
mod stream;
mod tracing;

use crate::facts::{Facts, Format};
use crate::format::Endian;
use crate::{Error, Lane, Reading, Source, Trace};
use base::{Clock, Problem, Problems};
use container::{Container, feature};
use kinds::Kinds;
use memmap2::Mmap;
use order::{Attrs, Ordered};
use records::{RecordKind, Records};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// True if a file that starts with `first` is perf.data.
pub fn sniff(first: &[u8]) -> bool {
    container::is_perf_data(first)
}

/// Opens a perf.data file.
///
/// # Errors
/// If it cannot be read or mapped, or describes no event at all.
pub fn open(path: &Path) -> Result<Box<dyn Trace>, Error> {
    let io = |source| Error::Io { file: path.to_owned(), source };
    let file = File::open(path).map_err(io)?;
    // SAFETY: the mapping is only read. Another process that cuts the file while we read it would end us with SIGBUS;
    // that is the price of mapping any file, and recordings are not rewritten in place.
    let bytes = unsafe { Mmap::map(&file) }.map_err(io)?;
    Ok(Box::new(PerfData::new(bytes, path)?))
}

/// An opened perf.data file.
struct PerfData {
    bytes: Mmap,
    endian: Endian,
    records: Range<usize>,
    attrs: Attrs,
    kinds: Kinds,
    facts: Facts,
}

impl PerfData {
    fn new(bytes: Mmap, path: &Path) -> Result<Self, Error> {
        let mut container = Container::parse(&bytes, path)?;
        let endian = container.endian;
        let clock = Clock::nanoseconds(clock_name(container.attrs.iter().find_map(|attr| attr.clock_id)));
        let mut facts = Facts::new(path.to_owned(), Format::PerfData, clock);
        facts.bytes = bytes.len() as u64;
        let section = |number| container.features.get(&number).map(|range: &Range<usize>| &bytes[range.clone()]);
        let features = Features { section: &section, endian };
        features.tell(&mut facts);
        let tracing = section(feature::TRACING_DATA).map(tracing::TracingData::parse).unwrap_or_default();
        facts.comms = tracing.comms;
        facts.comms.extend(first_comms(&bytes, &container, path));
        let kinds = Kinds::new(tracing.formats, &container.attrs, &features.event_names());
        facts.event_types.clone_from(&kinds.types);
        if let Some((at, expected)) = tracing.damage {
            let start = container.features.get(&feature::TRACING_DATA).map_or(0, |range| range.start);
            container.problems.note(Problem::at(
                path.display().to_string(),
                (start + at) as u64,
                expected,
                "something else, or the end of the section",
                0,
                "the formats of tracepoints in perf.data are damaged; those behind the damage are unknown",
            ));
        }
        facts.problems = container.problems.list().to_vec();
        let attrs = Attrs::new(container.attrs);
        Ok(Self { bytes, endian, records: container.records, attrs, kinds, facts })
    }
}

impl Trace for PerfData {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn lanes<'t>(&'t self, reading: &'t Reading<'t>) -> Vec<Lane<'t>> {
        let records = Records::new(&self.bytes, self.records.clone(), self.endian, &self.facts.path);
        let ordered = Ordered::new(records, &self.attrs, self.endian);
        let batches = stream::Batches::new(ordered, &self.attrs, &self.kinds, self.endian, reading);
        let name = self.facts.path.display().to_string();
        vec![Lane { name, cpu: None, source: Source::Sequence(Box::new(batches)) }]
    }
}

/// Most records looked at for thread names when a file is opened: perf writes those of running threads first.
const MOST_FIRST_RECORDS: usize = 1 << 16;

/// Names of the threads that ran when perf started.
fn first_comms(bytes: &[u8], container: &Container, path: &Path) -> Vec<(i32, String)> {
    let mut records = Records::new(bytes, container.records.clone(), container.endian, path);
    let mut comms = Vec::new();
    // Damage is reported when the events are read.
    let mut unreported = Problems::default();
    for _ in 0..MOST_FIRST_RECORDS {
        match records.next(&mut unreported) {
            Some(record) if record.kind == RecordKind::COMM => {
                if let Some((_, tid, name)) = kinds::read_comm(record.body, container.endian) {
                    comms.push((tid, String::from_utf8_lossy(name).into_owned()));
                }
            }
            Some(record) if record.kind != RecordKind::SAMPLE => {}
            _ => break,
        }
    }
    comms
}

/// perf's clock by its number (`CLOCK_...` in include/uapi/linux/time.h, Linux 6.12), all of them in nanoseconds.
fn clock_name(id: Option<u32>) -> String {
    match id {
        None => "perf".into(),
        Some(0) => "realtime".into(),
        Some(1) => "monotonic".into(),
        Some(4) => "monotonic_raw".into(),
        Some(7) => "boottime".into(),
        Some(11) => "tai".into(),
        Some(other) => format!("clock {other}"),
    }
}

/// What the feature sections say.
struct Features<'s, F: Fn(u32) -> Option<&'s [u8]>> {
    section: &'s F,
    endian: Endian,
}

impl<'s, F: Fn(u32) -> Option<&'s [u8]>> Features<'s, F> {
    fn number(&self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        bytes.get(at..at + size).map(|number| self.endian.unsigned(number))
    }

    /// A string behind its length (`perf_header_string`), and what follows it.
    fn string<'b>(&self, bytes: &'b [u8]) -> Option<(String, &'b [u8])> {
        let length = usize::try_from(self.number(bytes, 0, 4)?).ok()?;
        let (text, rest) = bytes[4..].split_at_checked(length)?;
        let text = &text[..memchr::memchr(0, text).unwrap_or(text.len())];
        Some((String::from_utf8_lossy(text).into_owned(), rest))
    }

    fn text(&self, number: u32) -> Option<String> {
        self.string((self.section)(number)?).map(|(text, _)| text)
    }

    fn tell(&self, facts: &mut Facts) {
        facts.hostname = self.text(feature::HOSTNAME);
        let release = self.text(feature::OSRELEASE);
        let machine = self.text(feature::ARCH);
        facts.uname = match (release, machine) {
            (Some(release), Some(machine)) => Some(format!("{release} {machine}")),
            (release, machine) => release.or(machine),
        };
        let cpus = (self.section)(feature::NRCPUS).and_then(|section| self.number(section, 0, 4));
        facts.cpus = cpus.unwrap_or(0) as u32;
        let stated = [
            ("perf_version", self.text(feature::VERSION)),
            ("cpu_desc", self.text(feature::CPUDESC)),
            ("cmdline", self.command_line()),
            ("clock_data", self.clock_data()),
        ];
        facts.env = stated.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    }

    fn command_line(&self) -> Option<String> {
        let section = (self.section)(feature::CMDLINE)?;
        let count = self.number(section, 0, 4)?;
        let mut rest = &section[4..];
        let mut words = Vec::new();
        for _ in 0..count {
            let (word, behind) = self.string(rest)?;
            words.push(word);
            rest = behind;
        }
        Some(words.join(" "))
    }

    /// The wall clock at one instant of the trace's clock (`struct perf_header`'s `clock`, version 1).
    fn clock_data(&self) -> Option<String> {
        let section = (self.section)(feature::CLOCK_DATA)?;
        let wall_ns = self.number(section, 8, 8)?;
        let clock_ns = self.number(section, 16, 8)?;
        Some(format!("wall {wall_ns} ns = clock {clock_ns} ns"))
    }

    /// Names of the events by the first of their ids.
    fn event_names(&self) -> FxHashMap<u64, String> {
        let mut names = FxHashMap::default();
        let Some(section) = (self.section)(feature::EVENT_DESC) else { return names };
        let (Some(count), Some(attr_size)) = (self.number(section, 0, 4), self.number(section, 4, 4)) else {
            return names;
        };
        let mut rest = &section[8..];
        for _ in 0..count {
            let Some((_, behind)) = rest.split_at_checked(attr_size as usize) else { break };
            let Some(ids) = self.number(behind, 0, 4) else { break };
            let Some((name, behind)) = self.string(&behind[4..]) else { break };
            if let (Some(id), true) = (self.number(behind, 0, 8), ids > 0) {
                names.insert(id, name);
            }
            let Some((_, next)) = behind.split_at_checked((ids as usize).saturating_mul(8)) else { break };
            rest = next;
        }
        names
    }
}
