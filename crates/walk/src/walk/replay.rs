//! A trace is replayed into a walk: with which events, and what is known of it before the first.
//!
//! ```text
//! trace --- events of roles::ROWS ---> ear.event ---> walk ---> sink
//!     \---- events asked for besides -> ear.other
//! ```
//! Every question that follows vCPU threads begins here, so that all of them walk alike.

use super::witnesses::{self, Witnesses};
use super::{Sink, Walk};
use crate::Axis;
use crate::Part;
use crate::events::roles::ROWS;
use crate::events::vendor;
use crate::stages::timers::Reference;
use base::{Clock, ClockSource};
use trace::facts::Coverage;
use trace::replay::Listener;
use trace::{Event, Facts, Reading, Totals, Wanted};

/// What a question needs besides the walk.
pub struct ExtraEvents {
    /// The clock to tell times with, if it is not the file's.
    pub fitted: Option<Clock>,
    /// Events that are no role's.
    pub events: Option<Wanted>,
}

/// Who listens while a trace is walked.
pub trait WalkObserver<S: Sink> {
    /// The trace begins at `origin_ns`.
    fn start(&mut self, _walk: &mut Walk<S>, _origin_ns: u64) {}

    /// An event of [`crate::events::roles::ROWS`], which has to be given to the walk.
    #[inline(always)]
    fn event(&mut self, walk: &mut Walk<S>, event: &Event<'_>) {
        walk.event(event);
    }

    /// An event of [`ExtraEvents::events`].
    fn other(&mut self, _walk: &mut Walk<S>, _event: &Event<'_>) {}

    /// The recorder paused: nothing is known between its last event and the one that comes now.
    fn paused(&mut self, walk: &mut Walk<S>, from_ns: u64, until_ns: u64) {
        walk.paused(from_ns, until_ns);
    }

    /// So many bytes of so many are read.
    fn progress(&mut self, _done: u64, _all: u64) {}
}

/// Walks through `part` from its first event to its last, without the events that are `ignored` by name.
pub fn walked<S: Sink>(
    part: &Part,
    ignored: &[String],
    besides: ExtraEvents,
    sink: S,
    ear: &mut impl WalkObserver<S>,
) -> (Walk<S>, Totals) {
    let trace = part.trace.as_ref();
    let Witnesses { mut request, exits_fire, is_silent } = witnesses::of(trace, ignored);
    request.events.extend(besides.events);
    let mut walk = Walk::new(sink);
    walk.isa = vendor::of(trace);
    walk.seen.exit = exits_fire;
    walk.by_name = is_silent;
    let has = |name: &str| trace.facts().event_types.iter().any(|event| event.name == name);
    walk.seen.wakeup = has("kvm_vcpu_wakeup");
    walk.seen.switches = has("sched_switch");
    walk.know(&part.cut_from);
    walk.timers.reference = reference(trace.facts(), besides.fitted.as_ref());
    let mut feed = Feed {
        walk,
        ear,
        gaps: gaps(trace.facts(), besides.fitted.as_ref()),
        resumes: part.resumed_ns.iter().rev().copied().collect(),
        next_resume_ns: part.resumed_ns.first().copied().unwrap_or(u64::MAX),
        last_ns: None,
    };
    let totals = trace::replay(trace, &Reading { request: &request, fitted: besides.fitted }, &mut feed);
    let mut walk = feed.walk;
    walk.end(totals.span_ns.map_or(0, |(_, last)| last));
    (walk, totals)
}

/// How the times of a trace, told with the `fitted` clock if there is one, relate to those that its events carry.
fn reference(facts: &Facts, fitted: Option<&Clock>) -> Reference {
    let clock = fitted.unwrap_or(&facts.clock);
    match clock.name.as_str() {
        "x86-tsc" if clock.source != ClockSource::None => Reference::Counter(Axis::new(&facts.clock, clock)),
        // perf and LTTng call the same clock by its longer name.
        "mono" | "monotonic" => Reference::Monotonic(clock.offset_ns),
        _ => Reference::Unknown,
    }
}

/// What the trace does not hold of a CPU: number, from, until.
pub type Gap = (u32, u64, u64);

/// What the trace does not hold of its CPUs, in times of the `fitted` clock, if there is one.
pub fn gaps(facts: &Facts, fitted: Option<&Clock>) -> Vec<Gap> {
    // The reader knows only its own clock.
    let time = |ns: u64| fitted.map_or(ns, |fitted| fitted.ns(facts.clock.ticks(ns)));
    let of_cpu = |(cpu, coverage): (&u32, &Coverage)| match *coverage {
        Coverage::Whole => [None, None],
        Coverage::Missing => [Some((*cpu, 0, u64::MAX)), None],
        Coverage::Part { from_ns, until_ns } => [
            (from_ns > 0).then(|| (*cpu, 0, time(from_ns))),
            (until_ns < u64::MAX).then(|| (*cpu, time(until_ns), u64::MAX)),
        ],
    };
    facts.coverage.iter().flat_map(of_cpu).flatten().collect()
}

struct Feed<'e, S: Sink, E> {
    walk: Walk<S>,
    ear: &'e mut E,
    gaps: Vec<Gap>,
    /// When the recorder goes on after a pause, the next time last.
    resumes: Vec<u64>,
    next_resume_ns: u64,
    /// When the last event came.
    last_ns: Option<u64>,
}

impl<S: Sink, E: WalkObserver<S>> Feed<'_, S, E> {
    #[cold]
    fn resume(&mut self, now_ns: u64) {
        while let Some(until_ns) = self.resumes.pop_if(|at_ns| *at_ns <= now_ns) {
            // Before the first event there was nothing that could pause.
            if let Some(from_ns) = self.last_ns.filter(|last_ns| *last_ns < until_ns) {
                self.ear.paused(&mut self.walk, from_ns, until_ns);
            }
        }
        self.next_resume_ns = self.resumes.last().copied().unwrap_or(u64::MAX);
    }
}

impl<S: Sink, E: WalkObserver<S>> Listener for Feed<'_, S, E> {
    fn start(&mut self, origin_ns: u64) {
        self.walk.start(origin_ns);
        for (cpu, from_ns, until_ns) in std::mem::take(&mut self.gaps) {
            self.walk.uncovered(cpu, from_ns, until_ns);
        }
        self.ear.start(&mut self.walk, origin_ns);
    }

    #[inline(always)]
    fn event(&mut self, event: &Event<'_>) {
        if event.time_ns >= self.next_resume_ns {
            self.resume(event.time_ns);
        }
        self.last_ns = Some(event.time_ns);
        if usize::from(event.kind) < ROWS.len() || event.is_loss() {
            self.ear.event(&mut self.walk, event);
        } else {
            self.ear.other(&mut self.walk, event);
        }
    }

    fn progress(&mut self, done: u64, all: u64) {
        self.ear.progress(done, all);
    }
}
