//! What the walk says of threads and CPUs, kept until it is drawn or told on.
//!
//! ```text
//! walk --interval--> pieces of each thread
//!      --exit------> why, joined with the handling that begins at the same instant
//!      --chain-----> [stop of L2 ... L2 runs again)
//!      --ran_after_waking--> who woke it (woken.rs)
//!      --has_cpu---> holders of each CPU (watch.rs), and what each task does (tasks.rs)
//! ```
//! Times are absolute, on the trace's own clock. Where less than everything is wanted, what lies outside is walked through and
//! forgotten: of the time before the window only what the window begins in is kept.

use super::passing::Passing;
use super::tasks::Tasks;
use super::watch::Watch;
use super::woken::Woken;
use crate::Given;
use crate::ledger::model::PartFlow;
use base::Span;
use trace::{Event, Totals};
use walk::Part;
use walk::events::reasons::Reason;
use walk::events::roles::{ROWS, Role};
use walk::replay::{ExtraEvents, WalkObserver, walked};
use walk::state::{LEVELS, State, TracedLevel};
use walk::thread::{Chain, Exit};
use walk::{Preemptor, Sink, Waker, Walk};

#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Of which time, since the trace's first event.
    pub window: Option<Span>,
    /// How many pieces and changes at most, the earliest.
    pub most: u64,
    /// Nothing of CPUs and other tasks.
    pub(crate) vcpus_alone: bool,
    pub pace: Pace,
}

/// How often what is kept is told on, and how long lanes wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// After so many changes: some megabytes.
    pub chunk: u64,
    /// How often a CPU's lane waits for what a vCPU did there: the walk tells it when the level is known, which for a vCPU that
    /// halted is when it wakes. To wait for all of them would keep the rest of the trace.
    pub waits: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { chunk: CHUNK, waits: 16 }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self { window: None, most: u64::MAX, vcpus_alone: false, pace: Pace::default() }
    }
}

#[derive(Default)]
pub(super) struct Thread {
    pub tid: i32,
    /// True if it runs a vCPU.
    pub is_vcpu: bool,
    /// When a piece begins, and its state; pieces touch.
    pub pieces: Vec<(u64, State)>,
    /// Where the last one ends.
    pub end_ns: u64,
    /// When guests were left, and why.
    pub exits: Vec<(u64, Reason)>,
    /// Reflected exits of nested guests.
    pub chains: Vec<Chain>,
    /// Pieces whose levels are settled.
    settled: usize,
    pub told: usize,
}

impl Thread {
    /// Settles what only the end of the trace can tell of the levels of pieces, which the flow of the trace knows.
    pub(super) fn settle(&mut self, levels: &[TracedLevel; LEVELS]) {
        for (_, state) in &mut self.pieces[self.settled..] {
            *state = match *state {
                State::Guest(level) => State::Guest(levels[level.index()]),
                State::Handling(level) => State::Handling(levels[level.index()]),
                plain => plain,
            };
        }
        self.settled = self.pieces.len();
    }

    /// Forgets the pieces before the one at `place`, which are told on.
    pub(super) fn forget(&mut self, place: usize) {
        self.pieces.drain(..place);
        self.settled = self.settled.saturating_sub(place);
        self.told = self.told.saturating_sub(place);
        let first_ns = self.pieces.first().map_or(u64::MAX, |(from_ns, _)| *from_ns);
        self.exits.drain(..self.exits.partition_point(|(at_ns, _)| *at_ns < first_ns));
    }
}

/// Walks `part`, whose sums are `flow`, and keeps what `bounds` want; what `passing` takes is not kept any longer.
pub(super) fn kept(
    part: &Part,
    flow: &PartFlow,
    (given, bounds): (&Given, Bounds),
    passing: Option<&mut Passing<'_>>,
    progress: &mut dyn FnMut(u64, u64),
) -> (Walk<Keeper>, Totals) {
    let keeper = Keeper {
        threads: Vec::new(),
        watch: Watch { closed: bounds.vcpus_alone, ..Watch::default() },
        tasks: Tasks::default(),
        // Who takes what is told asks for no wake-ups, so none may stay.
        woken: passing.is_none().then(Woken::default),
        bounds,
        kept: 0,
        early: 0,
        due: bounds.pace.chunk,
        window: ALL,
        full: None,
    };
    let fitted = flow.clock_fitted_to.is_some().then(|| flow.clock.clone());
    let besides = ExtraEvents { fitted, events: None };
    let mut hearing = Hearing { passing, progress };
    let (mut walk, totals) = walked(part, &given.traces.ignore_events, besides, keeper, &mut hearing);
    walk.sink.tasks.end(totals.span_ns.map_or(0, |(_, to_ns)| to_ns));
    walk.sink.threads.resize_with(walk.threads.len(), Thread::default);
    for (kept, thread) in walk.sink.threads.iter_mut().zip(&walk.threads) {
        (kept.tid, kept.is_vcpu) = (thread.tid, thread.is_vcpu);
        if let Some(levels) = flow.settled.get(&thread.tid) {
            kept.settle(levels);
        }
    }
    if let Some(passing) = hearing.passing {
        passing.pass(&mut walk.sink, (None, bounds.pace.waits));
    }
    (walk, totals)
}

struct Hearing<'a, 'p, 't> {
    passing: Option<&'a mut Passing<'t>>,
    progress: &'p mut dyn FnMut(u64, u64),
}

impl WalkObserver<Keeper> for Hearing<'_, '_, '_> {
    fn start(&mut self, walk: &mut Walk<Keeper>, origin_ns: u64) {
        walk.sink.begins(origin_ns);
    }

    fn event(&mut self, walk: &mut Walk<Keeper>, event: &Event<'_>) {
        walk.sink.tasks_hear(event);
        walk.sink.watch.event(event);
        walk.event(event);
        let Walk { sink, threads, .. } = walk;
        if sink.kept < sink.due {
            return;
        }
        sink.due = sink.kept.saturating_add(sink.bounds.pace.chunk);
        if let Some(passing) = &mut self.passing {
            sink.threads.resize_with(threads.len(), Thread::default);
            for (kept, thread) in sink.threads.iter_mut().zip(threads) {
                kept.tid = thread.tid;
            }
            passing.pass(sink, (Some(event.time_ns), sink.bounds.pace.waits));
        }
    }

    fn paused(&mut self, walk: &mut Walk<Keeper>, from_ns: u64, until_ns: u64) {
        let Keeper { watch, tasks, .. } = &mut walk.sink;
        let holders: Vec<Option<i32>> = (0..watch.cpus.len()).map(|cpu| watch.holder(cpu)).collect();
        holders.into_iter().for_each(|holder| tasks.lost(from_ns, until_ns, holder));
        walk.paused(from_ns, until_ns);
    }

    fn progress(&mut self, done: u64, all: u64) {
        (self.progress)(done, all);
    }
}

pub(super) struct Keeper {
    /// By number of the walk.
    pub threads: Vec<Thread>,
    pub watch: Watch,
    /// Tasks that are no vCPUs.
    pub tasks: Tasks,
    pub woken: Option<Woken>,
    bounds: Bounds,
    /// Pieces and changes so far.
    kept: u64,
    /// Changes before the window since they were forgotten last.
    early: u64,
    /// How many are kept when they are told on.
    due: u64,
    /// What is wanted, in absolute times.
    window: Span,
    /// When enough was kept, and how many pieces of threads came later.
    pub full: Option<(u64, u64)>,
}

const ALL: Span = Span { from_ns: 0, to_ns: u64::MAX };

/// So many changes are kept before they are told on or forgotten together.
const CHUNK: u64 = 1 << 16;

/// Pieces of one thread that are kept although the window has not begun, back to when a guest ran; a damaged trace that never
/// says so must not fill the memory.
const MOST_EARLY: usize = 1 << 12;

impl Keeper {
    /// How many pieces, exits, chains and changes of CPUs and tasks are kept.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        let of_thread = |thread: &Thread| thread.pieces.len() + thread.exits.len() + thread.chains.len();
        let of_cpus = self.watch.cpus.iter().map(|cpu| cpu.holders.len() + cpu.above.len()).sum::<usize>();
        let of_tasks = self.tasks.by_tid.values().map(Vec::len).sum::<usize>();
        let of_wakes = self.woken.as_ref().map_or(0, Woken::count);
        self.threads.iter().map(of_thread).sum::<usize>() + of_cpus + of_tasks + of_wakes
    }

    fn begins(&mut self, origin_ns: u64) {
        let window = self.bounds.window.unwrap_or(ALL);
        self.window =
            Span { from_ns: window.from_ns.saturating_add(origin_ns), to_ns: window.to_ns.saturating_add(origin_ns) };
    }

    /// Whether what begins at `from_ns` and ends at `to_ns` is kept. What began before there was enough is, although it is
    /// told late: lanes are whole up to there.
    fn keeps(&mut self, from_ns: u64, to_ns: u64) -> bool {
        if from_ns >= self.window.to_ns {
            return false;
        }
        match &mut self.full {
            Some((full_ns, left_out)) if from_ns >= *full_ns => {
                *left_out += 1;
                false
            }
            _ => {
                self.changes(to_ns);
                true
            }
        }
    }

    /// Something was kept, the latest of it at `at_ns`.
    fn changes(&mut self, at_ns: u64) {
        self.kept += 1;
        if self.kept >= self.bounds.most && self.full.is_none() {
            self.full = Some((at_ns, 0));
        }
    }

    /// CPUs and tasks changed before the window; now and then all but the last of that is forgotten.
    fn changes_early(&mut self, at_ns: u64) {
        self.early += 1;
        if self.early == CHUNK {
            self.early = 0;
            self.watch.forget(at_ns);
            self.tasks.forget(at_ns);
        }
    }

    /// Whether nothing of this time is wanted of CPUs and tasks any more.
    fn is_over(&self, at_ns: u64) -> bool {
        at_ns >= self.window.to_ns || self.full.is_some_and(|(full_ns, _)| at_ns >= full_ns)
    }

    fn of(&mut self, thread: usize) -> &mut Thread {
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, Thread::default);
        }
        &mut self.threads[thread]
    }

    fn tasks_hear(&mut self, event: &Event<'_>) {
        let at_ns = event.time_ns;
        if self.bounds.vcpus_alone {
            return;
        }
        if self.is_over(at_ns) {
            self.watch.closed = true;
            return;
        }
        let role = ROWS.get(usize::from(event.kind)).map(|row| row.role);
        if let Some(Role::Switch | Role::Waking | Role::IrqEntry | Role::VectorEntry | Role::SoftirqEntry | Role::Nmi) =
            role
        {
            if at_ns < self.window.from_ns { self.changes_early(at_ns) } else { self.changes(at_ns) }
        }
        self.tasks.event(event, self.watch.holder(event.cpu as usize));
    }
}

impl Sink for Keeper {
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        if to_ns <= self.window.from_ns {
            // A guest that runs ends the exit before: what the window begins in reaches back to there.
            let thread = self.of(thread);
            if matches!(state, State::Guest(_)) || thread.pieces.len() >= MOST_EARLY {
                thread.pieces.clear();
                thread.exits.clear();
            }
            thread.pieces.push((from_ns, state));
            thread.end_ns = thread.end_ns.max(to_ns);
            return;
        }
        if !self.keeps(from_ns, to_ns) {
            return;
        }
        let thread = self.of(thread);
        thread.pieces.push((from_ns, state));
        thread.end_ns = thread.end_ns.max(to_ns);
    }

    fn exit(&mut self, thread: usize, exit: &Exit) {
        if self.is_over(exit.at_ns) {
            return;
        }
        let thread = self.of(thread);
        // Without the piece that it begins it says nothing.
        if thread.pieces.first().is_some_and(|(from_ns, _)| *from_ns <= exit.at_ns) {
            thread.exits.push((exit.at_ns, exit.reason));
        }
    }

    fn chain(&mut self, thread: usize, chain: &Chain) {
        if chain.start_ns < self.window.from_ns || self.is_over(chain.start_ns) {
            return;
        }
        self.of(thread).chains.push(chain.clone());
    }

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}

    fn has_cpu(&mut self, cpu: usize, tid: Option<i32>, at_ns: u64) {
        self.watch.has_cpu(cpu, tid, at_ns);
    }

    fn ran_after_waking(&mut self, thread: usize, by: Waker, cpu: Option<usize>, woken_ns: u64, ran_ns: u64) {
        if ran_ns < self.window.from_ns || self.is_over(woken_ns) {
            return;
        }
        if let Some(woken) = &mut self.woken {
            woken.add(thread, by, cpu, (woken_ns, ran_ns));
        }
    }
}
