//! Samples among the events of a trace: what the kernel's tracers timerlat and osnoise tell, and when cyclictest broke off.
//!
//! ```text
//! osnoise:irq_noise ...            start, duration          |---duration---| the event ends it
//! osnoise:sample_threshold         start, duration
//! ftrace:timerlat                  context, timer_latency   |-timer_latency-|
//! ftrace:print of its thread       cyclictest -b US --tracemark: the sample ended here, and its text has the length
//! ```
//! Marks that count work are no samples: see [`Work`].
//!
//! An event is written when its sample is over (kernel/trace/trace_osnoise.c, Linux 6.12), so its own time says when that was.

use super::buckets::Lengths;
use super::work::Work;
use super::{ResultFiles, SampleClock, SampleFile, Samples, Source};
use crate::ledger::model::{Flow, PartFlow};
use base::recording::ResultFile;
use std::collections::BTreeMap;
use trace::{Event, Wanted};

/// Events that are or end samples; a mark is called `print` in files, and in text after the kernel's function.
const NAMES: [&str; 9] = [
    "nmi_noise",
    "irq_noise",
    "softirq_noise",
    "thread_noise",
    "sample_threshold",
    "timerlat",
    "print",
    "tracing_mark_write",
    "lttng_logger",
];

/// The fields that tell these apart: a mark has its text alone.
const FIELDS: [&[&str]; 8] = [
    &["duration"],
    &["timer_latency"],
    &["context"],
    &["interference"],
    &["desc"],
    &["vector"],
    &["pid"],
    &["buf", "msg"],
];
const DURATION: usize = 0;
const TIMER_LATENCY: usize = 1;
const CONTEXT: usize = 2;
const INTERFERENCE: usize = 3;
const DESC: usize = 4;
const VECTOR: usize = 5;
const PID: usize = 6;
const TEXT: usize = 7;

/// What timerlat's contexts are called by those who print it: `timerlat_lat_context` of kernel/trace/trace_output.c.
const CONTEXTS: [&str; 3] = ["IRQ", "Thr", "Usr"];

/// More marks of a trace are not kept: a program that breaks off leaves one.
const MOST_MARKS: usize = 1 << 16;

pub(crate) fn wanted() -> Wanted {
    Wanted {
        names: NAMES.map(str::to_owned).to_vec(),
        fields: FIELDS.map(|names| names.iter().map(|name| (*name).to_owned()).collect()).to_vec(),
    }
}

/// A line that a program wrote into the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    at_ns: u64,
    cpu: u32,
    tid: i32,
}

/// What a trace has of samples, while it is read.
#[derive(Debug, Default)]
pub(crate) struct Traced {
    threads: BTreeMap<(u32, &'static str), (Lengths, Samples)>,
    marks: Vec<Mark>,
    work: Work,
}

impl Traced {
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        let (thread, source, length_ns) = match (event.get(TIMER_LATENCY), event.get(DURATION)) {
            (Some(length_ns), _) => {
                let context = CONTEXTS.get(event.or_zero(CONTEXT) as usize).copied().unwrap_or("Usr");
                (context, Source::Timerlat, length_ns)
            }
            (None, Some(length_ns)) => (noise(event), Source::Osnoise, length_ns),
            (None, None) => {
                event.content(TEXT).into_iter().for_each(|line| self.work.mark(line));
                if self.marks.len() < MOST_MARKS {
                    self.marks.push(Mark { at_ns: event.time_ns, cpu: event.cpu, tid: event.tid });
                }
                return;
            }
        };
        let (lengths, samples) = self.threads.entry((event.cpu, thread)).or_insert_with(|| {
            let samples = Samples::new(source, format!("{thread}-{:03}", event.cpu));
            let clock = SampleClock::Trace;
            (Lengths::default(), Samples { cpu: Some(event.cpu), unit_ns: 1, clock, ..samples })
        });
        lengths.add(length_ns);
        samples.add_timed(event.time_ns, length_ns);
    }

    /// Units of work that programs have marked as done.
    pub(crate) fn work(&self) -> BTreeMap<String, f64> {
        self.work.units()
    }

    pub(crate) fn end(self) -> TracedSamples {
        let samples = self.threads.into_values().map(|(lengths, samples)| lengths.of(samples)).collect();
        TracedSamples { samples, marks: self.marks }
    }
}

fn noise(event: &Event<'_>) -> &'static str {
    let has = |field| event.get(field).is_some();
    match (has(INTERFERENCE), has(DESC), has(VECTOR), has(PID)) {
        (true, ..) => "sample_threshold",
        (_, true, ..) => "irq_noise",
        (_, _, true, _) => "softirq_noise",
        (_, _, _, true) => "thread_noise",
        (false, false, false, false) => "nmi_noise",
    }
}

#[derive(Debug, Default)]
pub struct TracedSamples {
    samples: Vec<Samples>,
    marks: Vec<Mark>,
}

/// A sample after which a program broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breach {
    /// The thread that measured it.
    pub tid: i32,
    /// How long it was, as printed.
    pub length_ns: u64,
}

impl TracedSamples {
    /// True if there is nothing.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.marks.is_empty()
    }

    /// The sample of `breach`, if its thread marked when that ended.
    fn breach(&self, breach: Breach) -> Option<Samples> {
        let mark = self.marks.iter().find(|mark| mark.tid == breach.tid)?;
        let mut samples = Samples {
            tid: Some(mark.tid),
            cpu: Some(mark.cpu),
            clock: SampleClock::Trace,
            ..Samples::new(Source::Tracemark, mark.tid.to_string())
        };
        let mut lengths = Lengths::default();
        lengths.add(breach.length_ns / samples.unit_ns);
        samples.add_timed(mark.at_ns, breach.length_ns);
        Some(lengths.of(samples))
    }
}

/// What was read, and behind it what the traces of `flow` have of samples, in their order.
pub(crate) fn with_traced(read: &ResultFiles, flow: &Flow, traced: &[TracedSamples]) -> ResultFiles {
    let mut all = read.clone();
    let answering = flow.parts.iter().zip(traced).filter(|(part, _)| part.twin_of.is_none());
    all.list.extend(answering.flat_map(|(part, traced)| files(read, part, traced)));
    all
}

/// A file for each program that measured.
fn files(read: &ResultFiles, part: &PartFlow, traced: &TracedSamples) -> Vec<SampleFile> {
    let own = read.list.iter().filter(|file| file.machine == part.machine);
    let breaches = own.filter_map(|file| file.breach).filter_map(|breach| traced.breach(breach));
    let mut by_source: BTreeMap<Source, Vec<Samples>> = BTreeMap::new();
    for samples in traced.samples.iter().cloned().chain(breaches) {
        by_source.entry(samples.source).or_default().push(samples);
    }
    let file = |samples: Vec<Samples>| SampleFile {
        analysis: Vec::new(),
        noise: Vec::new(),
        said: None,
        nothing: None,
        path: part.path.clone(),
        machine: part.machine.clone(),
        level: part.level,
        kind: ResultFile::NoiseTrace,
        samples,
        cache_use: Vec::new(),
        edges: None,
        breach: None,
    };
    by_source.into_values().map(file).collect()
}
