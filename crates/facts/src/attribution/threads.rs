//! Samples of a machine whose own trace is there: what did the thread that measured wait for?
//!
//! Threads go by the name of their program. Which of them wrote which samples shows where samples have times: it had a CPU when they
//! ended. Else threads are numbered in the order in which they were made, behind the one that made them.

use super::below::Below;
use super::clocks::OwnClock;
use super::follow::{Hear, Seen, follow};
use super::ranked::Ranked;
use super::sums::{Names, Sums, Taken};
use super::{ClockError, Found, FoundBy, Over};
use crate::ledger::model::{Flow, PartFlow};
use crate::losses::PartLosses;
use crate::samples::{SampleClock, SampleFile, Source};
use crate::{Given, Input};
use base::Span;
use std::collections::BTreeMap;

/// The samples of `file`, by what the trace at `place` shows of the threads that took them; `None` if it shows none of them.
pub(super) fn attribute(
    (input, given, flow, losses): (&Input, &Given, &Flow, &[PartLosses]),
    place: usize,
    file: &SampleFile,
    over: &[Over],
    progress: &mut dyn FnMut(u64, u64),
) -> Option<Found> {
    let (part, source) = (&flow.parts[place], file.samples.first()?.source);
    let candidates = threads_of(file, source, part);
    if candidates.is_empty() || !part.has_switches {
        return None;
    }
    let (asked, error) = Asked::of(file, |clock| OwnClock::new(input, flow, place, clock));
    let fitted = part.clock_fitted_to.is_some().then(|| part.clock.clone());
    let mut walk = |hear: &mut dyn Hear| {
        let (mut seen, end_ns) =
            follow(&input.parts[place], &given.traces.ignore_events, fitted.clone(), hear, progress);
        seen.end(end_ns, hear);
    };
    let (by, sums) = match asked {
        Some(asked) => {
            let mut timed = InTime::new(asked, over, file, (&candidates, part));
            walk(&mut timed);
            (FoundBy::Time(error), timed.sums())
        }
        None => {
            let below = Below::of(input, flow, losses, place);
            let mut ranked = Ranked::new(&candidates, part.span, below);
            walk(&mut ranked);
            (FoundBy::Rank, ranked.sums(&file.samples, over, &mut Names::new(part)))
        }
    };
    Some(Found { part: place, by, sums })
}

/// Thread ids of a program's threads, in the order in which they were made; of our own benches and of a mark the one that is
/// named: what a vCPU is called is up to whoever runs the guest.
fn threads_of(file: &SampleFile, source: Source, part: &PartFlow) -> Vec<i32> {
    let is_own = |tid: i32| file.samples.iter().any(|samples| samples.tid == Some(tid));
    let is_one = |tid: i32, name: &str| match source {
        Source::Cyclictest | Source::Oslat | Source::Jitterdebugger => name == source.name(),
        Source::Timerlat => name.starts_with("timerlat"),
        Source::Osnoise => name.starts_with("osnoise/"),
        Source::Hwlatdetect | Source::Hwlat => name.starts_with("hwlatd"),
        Source::Tracemark | Source::Gaps | Source::Irq => is_own(tid),
        // Its thread is called after the process id and the kind of task.
        Source::Xenomai => name.starts_with("display-") || name.starts_with("sampling-"),
        Source::StressCyclic => name.starts_with("stress-ng-cycl"),
        Source::Latmus => name.starts_with("timer-responder") || name.starts_with("lat-sampler"),
        Source::TscDeadline | Source::VmTrace => false,
    };
    part.comms.iter().filter(|(tid, name)| is_one(**tid, name)).map(|(tid, _)| *tid).collect()
}

/// A sample to be found in the trace, by its time.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Its place among the samples of the file.
    thread: usize,
    span: Span,
    error: ClockError,
    /// No sample from here on begins earlier.
    wanted_ns: u64,
}

/// Samples with times, on the clock of the trace.
struct Asked {
    /// By when they ended.
    samples: Vec<Sample>,
    /// Those whose time no clock leads to the trace, by their lengths.
    unplaced: Vec<u64>,
}

impl Asked {
    /// `None` if no sample has a time that leads to the trace; and the largest error.
    fn of<'a>(file: &SampleFile, clock: impl Fn(SampleClock) -> Option<OwnClock<'a>>) -> (Option<Self>, ClockError) {
        let (mut asked, mut unplaced, mut widest) = (Vec::new(), Vec::new(), ClockError::default());
        for (thread, samples) in file.samples.iter().enumerate().filter(|(_, samples)| super::is_timed(samples)) {
            let clock = clock(samples.clock);
            for sample in &samples.timed {
                match clock.as_ref().and_then(|clock| clock.at(sample.end_ns)) {
                    Some(at) => {
                        let span = Span { from_ns: at.at_ns.saturating_sub(sample.length_ns), to_ns: at.at_ns };
                        widest = widest.widest(at.error);
                        asked.push(Sample { thread, span, error: at.error, wanted_ns: 0 });
                    }
                    None => unplaced.push(sample.length_ns),
                }
            }
        }
        asked.sort_by_key(|sample| sample.span.to_ns);
        let mut wanted_ns = u64::MAX;
        for sample in asked.iter_mut().rev() {
            wanted_ns = wanted_ns.min(sample.error.widened(sample.span).from_ns);
            sample.wanted_ns = wanted_ns;
        }
        ((!asked.is_empty()).then_some(Self { samples: asked, unplaced }), widest)
    }
}

/// Finds out, while a trace is read, what each sample's thread waited for.
struct InTime<'c> {
    asked: Asked,
    next: usize,
    candidates: &'c [i32],
    /// Of each thread of the file, those that what it waited for goes through before.
    through: Vec<&'c [i32]>,
    span: Span,
    names: Names<'c>,
    outside: Vec<u64>,
    limits: Vec<OfLimit>,
}

/// What was found of the samples over one limit.
struct OfLimit {
    above_ns: u64,
    /// By samples of the file and thread of the trace: those at whose end the thread had a CPU, shorter ones among them, and how
    /// many these are.
    found: BTreeMap<(usize, i32), (u64, Sums)>,
    /// By samples of the file: how many there are inside the trace, their length and the longest.
    inside: BTreeMap<usize, (u64, u64, u64)>,
}

impl OfLimit {
    fn new(over: &Over) -> Self {
        Self { above_ns: over.above_ns, found: BTreeMap::new(), inside: BTreeMap::new() }
    }

    /// Counts a sample that lies inside the trace.
    fn count(&mut self, thread: usize, length_ns: u64) {
        let (count, total_ns, max_ns) = self.inside.entry(thread).or_default();
        if length_ns > self.above_ns {
            (*count, *total_ns) = (*count + 1, total_ns.saturating_add(length_ns));
            *max_ns = (*max_ns).max(length_ns);
        }
    }

    /// Of each thread of the file, what was found by the thread of the trace that had a CPU at the end of most samples.
    fn sums(mut self) -> Sums {
        let mut sums = Sums::above(self.above_ns);
        for (thread, (count, total_ns, max_ns)) in self.inside {
            let of = self.found.range((thread, i32::MIN)..=(thread, i32::MAX));
            let best = of.max_by_key(|(_, (samples, _))| *samples).map(|(key, _)| *key);
            let (_, found) = best.and_then(|best| self.found.remove(&best)).unwrap_or_default();
            let (left, left_ns) = (count - found.samples, total_ns.saturating_sub(found.total_ns));
            sums.merge(found);
            sums.add_rest(left, left_ns, if left > 0 { max_ns.min(left_ns) } else { 0 });
        }
        sums
    }
}

impl<'c> InTime<'c> {
    fn new(asked: Asked, over: &[Over], file: &'c SampleFile, (candidates, part): (&'c [i32], &'c PartFlow)) -> Self {
        let through = file.samples.iter().map(|samples| samples.through.as_slice()).collect();
        let (span, names, limits) = (part.span, Names::new(part), over.iter().map(OfLimit::new).collect());
        Self { asked, next: 0, candidates, through, span, names, outside: Vec::new(), limits }
    }

    fn judge(&mut self, seen: &Seen, sample: Sample) {
        let Sample { thread, span, error, .. } = sample;
        if span.from_ns < self.span.from_ns || span.to_ns > self.span.to_ns {
            return self.outside.push(span.length_ns());
        }
        self.limits.iter_mut().for_each(|limit| limit.count(thread, span.length_ns()));
        let wide = error.widened(span);
        let (before, from_ns) = seen.taken_on_the_way(self.through[thread], wide);
        for tid in self.candidates.iter().filter(|tid| seen.runs_at(**tid, span.to_ns)) {
            let own = seen.taken(*tid, Span { from_ns, ..wide }, false);
            let taken = before.iter().cloned().chain(own).map(|(piece, cause)| {
                let inside_ns = piece.to_ns.min(span.to_ns).saturating_sub(piece.from_ns.max(span.from_ns));
                let beside_ns = piece.length_ns() - inside_ns;
                Taken { cause: self.names.of(cause), state: cause.state, inside_ns, beside_ns }
            });
            let taken: Vec<Taken> = taken.collect();
            for limit in &mut self.limits {
                let (samples, sums) =
                    limit.found.entry((thread, *tid)).or_insert_with(|| (0, Sums::above(limit.above_ns)));
                *samples += 1;
                sums.add(span.length_ns(), &taken);
            }
        }
    }

    fn sums(self) -> Vec<Sums> {
        let (outside, unplaced) = (self.outside, self.asked.unplaced);
        let mut sums: Vec<Sums> = self.limits.into_iter().map(OfLimit::sums).collect();
        for length_ns in outside.iter().chain(&unplaced) {
            sums.iter_mut().for_each(|sums| sums.add_outside(*length_ns));
        }
        sums
    }
}

impl Hear for InTime<'_> {
    fn settled(&mut self, seen: &Seen, upto_ns: u64) -> u64 {
        while let Some(sample) = self.asked.samples.get(self.next).copied() {
            let is_over = sample.error.widened(sample.span).to_ns < upto_ns;
            if !is_over && upto_ns < self.span.to_ns {
                return sample.wanted_ns.min(upto_ns);
            }
            self.judge(seen, sample);
            self.next += 1;
        }
        upto_ns
    }
}
