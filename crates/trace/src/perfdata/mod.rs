//! What did `perf record` see?
//!
//! In:  a perf.data file, in file or pipe form, with or without zstd, of either byte order.
//! Out: tracepoint events with the fields of the embedded formats; samples of counters with their stacks, host or guest
//!      (`kinds.rs` lists their fields); lost records.
//! ```text
//! container   header, attributes, features        -> where everything lies
//! features    host, CPUs, command line, names     -> facts
//! tracing     TRACING_DATA feature                -> formats of the tracepoints
//! records     one record after the other, checked -> order   zstd unpacked, sorted round by round
//!                                                 -> stream  batches
//!                                                 -> cut     a smaller perf.data
//! ```
//! A recording that stops early has no formats (they stand at its end in the file form): its tracepoints are then
//! counted under perf's or simpleperf's names of them, else as `perf:tracepoint_N`. Times are those of the scheduler clock, unless `perf record -k` chose another.
//!
//! The crate `linux-perf-event-reader` (0.10) names the bits of the format. The container is walked by ourselves, because
//! `linux-perf-data` (0.13) reads a pipe's formats as if they were records, allocates by unchecked sizes, and stops at
//! the first damaged record; a test compares what both see of an undamaged file.

mod attr;
mod container;
mod cut;
mod features;
mod kinds;
mod order;
mod records;
mod stream;
mod tracing;

pub use cut::cut;

use crate::facts::{Facts, Format};
use crate::mapped::MappedFile;
use crate::{Error, Lane, Reading, Source, Trace};
use base::{Clock, Problem, Problems};
use container::{Container, feature};
use features::Features;
use kinds::{Kinds, Names};
use order::{Attrs, Ordered};
use records::{RecordKind, Records};
use std::path::Path;
use tracing::TracingData;

/// True if a file that starts with `first` is perf.data.
pub fn sniff(first: &[u8]) -> bool {
    container::is_perf_data(first)
}

/// Opens a perf.data file.
///
/// # Errors
/// If it cannot be read or mapped, or describes no event at all.
pub fn open(path: &Path) -> Result<Box<dyn Trace>, Error> {
    Ok(Box::new(PerfData::open(path)?))
}

/// An opened perf.data file.
struct PerfData {
    bytes: MappedFile,
    /// Without its attributes, which are in `attrs`.
    container: Container,
    attrs: Attrs,
    kinds: Kinds,
    facts: Facts,
}

impl PerfData {
    fn open(path: &Path) -> Result<Self, Error> {
        Self::new(MappedFile::open(path)?, path)
    }

    fn new(bytes: MappedFile, path: &Path) -> Result<Self, Error> {
        let mut container = Container::parse(&bytes, path)?;
        let endian = container.endian;
        let clock = Clock::nanoseconds(clock_name(container.attrs.iter().find_map(|attr| attr.clock_id)));
        let mut facts = Facts::new(path.to_owned(), Format::PerfData, clock);
        facts.bytes = bytes.len() as u64;
        let features = Features::new(&bytes, &container.features, endian);
        features.tell(&mut facts);
        facts.cover(features.coverage(container.attrs.first().map_or(0, |attr| attr.ids.len())));
        let tracing = features.section(feature::TRACING_DATA).map(TracingData::parse).unwrap_or_default();
        facts.comms = tracing.comms;
        for (pid, tid, comm) in first_comms(&bytes, &container, path) {
            facts.comms.insert(tid, comm);
            facts.tgids.insert(tid, pid);
        }
        let names = Names { by_id: features.event_names(), by_config: features.simpleperf_names() };
        let without_formats = container.attrs.iter().any(|attr| attr.kind == attr::TRACEPOINT);
        if without_formats && features.section(feature::TRACING_DATA).is_none() && container.problems.is_empty() {
            let file = path.display().to_string();
            let text = format!(
                "{file}: it has no formats of its tracepoints, as simpleperf leaves them out: they are counted, their fields are \
                 unknown; record them with perf, trace-cmd or kvmscope record"
            );
            container.problems.note(Problem::remark(file, "formats of the tracepoints", "none", text));
        }
        let kinds = Kinds::new(tracing.formats, &container.attrs, &names);
        facts.event_types.clone_from(&kinds.types);
        if let Some((at, expected)) = tracing.damage {
            let start = container.features.get(&feature::TRACING_DATA).map_or(0, |range| range.start);
            container.problems.note(Problem::at(
                path.display().to_string(),
                (start + at) as u64,
                expected,
                "something else, or the end of the section",
                0,
                "the formats of tracepoints in perf.data are damaged; those after the damage are unknown",
            ));
        }
        facts.problems = container.problems.list().to_vec();
        let attrs = Attrs::new(std::mem::take(&mut container.attrs));
        Ok(Self { bytes, container, attrs, kinds, facts })
    }

    /// Its records as they lie in the file.
    fn records(&self) -> Records<'_> {
        Records::new(&self.bytes, self.container.records.clone(), self.container.endian, &self.facts.path)
    }

    /// The same in the order of time, unpacked.
    fn ordered(&self) -> Ordered<'_> {
        Ordered::new(self.records(), &self.attrs, self.container.endian)
    }
}

impl Trace for PerfData {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn torn(&self) -> Vec<String> {
        self.bytes.is_torn().then(|| self.facts.path.display().to_string()).into_iter().collect()
    }

    fn lanes<'t>(&'t self, reading: &'t Reading<'t>) -> Vec<Lane<'t>> {
        let endian = self.container.endian;
        let batches = stream::Batches::new(self.ordered(), &self.attrs, &self.kinds, endian, reading);
        let name = self.facts.path.display().to_string();
        vec![Lane { name, cpu: None, bytes: self.bytes.len() as u64, source: Source::Sequence(Box::new(batches)) }]
    }
}

/// Most thread names taken in when a file is opened. perf writes those of running threads first, among what they have
/// mapped; a kernel has at most 4,194,304 threads (PID_MAX_LIMIT in include/linux/threads.h, Linux 6.12), and no host so
/// many names.
const MOST_FIRST_NAMES: usize = 1 << 20;

/// Process, id and name of the threads that ran when perf started.
fn first_comms(bytes: &[u8], container: &Container, path: &Path) -> Vec<(i32, i32, String)> {
    let mut records = Records::new(bytes, container.records.clone(), container.endian, path);
    let mut comms = Vec::new();
    // Damage is reported when the events are read.
    let mut unreported = Problems::default();
    while comms.len() < MOST_FIRST_NAMES {
        match records.next(&mut unreported) {
            Some(record) if record.kind == RecordKind::COMM => {
                if let Some((pid, tid, name)) = kinds::read_comm(record.body, container.endian) {
                    comms.push((pid, tid, String::from_utf8_lossy(name).into_owned()));
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
