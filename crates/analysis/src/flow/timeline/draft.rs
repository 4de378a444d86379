//! One trace, walked once more: every piece of time of every thread and every CPU is kept.
//!
//! ```text
//! walk --interval--> pieces of each thread --end of trace settles levels--> Draft
//!      --exit------> why, joined with the handling that begins at the same instant
//!      --chain-----> [stop of L2 ... L2 runs again)
//!      --has_cpu---> holders of each CPU (watch.rs), and what each task does (tasks.rs)
//! ```
//! Times are absolute, on the trace's own clock. Where less than everything is wanted, what lies outside is walked through and
//! counted, not kept: levels that only the end of a trace settles are settled all the same.

use super::Cut;
use super::tasks::Tasks;
use super::watch::Watch;
use crate::flow::model::PartFlow;
use crate::shared::machine::{Chain, Exit};
use crate::shared::reasons::Reason;
use crate::shared::roles::{self, ROWS, Role};
use crate::shared::settle::settled;
use crate::shared::state::State;
use crate::shared::vendor;
use crate::shared::walk::replay::{Gap, gaps};
use crate::shared::walk::{Preemptor, Sink, Walk};
use crate::{Options, Part};
use base::{Clock, Span};
use rustc_hash::FxHashMap;
use trace::replay::Listener;
use trace::{Event, Reading};

/// What the walk told of one part.
pub struct Draft {
    /// The threads that were met.
    threads: Vec<Thread>,
    by_tid: FxHashMap<i32, usize>,
    /// The CPUs.
    pub watch: Watch,
    /// Tasks that are no vCPUs.
    pub tasks: Tasks,
    /// First and last event.
    pub span: Span,
    /// CPU, when, how many events.
    pub losses: Vec<(u32, u64, u64)>,
    /// When enough was kept, and how many pieces of threads came later.
    full: Option<(u64, u64)>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Of which time, since the trace's first event.
    pub window: Option<Span>,
    /// How many pieces and changes at most, the earliest.
    pub most: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { window: None, most: u64::MAX }
    }
}

/// What the walk told of one thread.
#[derive(Default)]
pub struct Thread {
    /// The thread.
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
    pub chains: Vec<ChainPiece>,
}

/// One reflected exit of a nested guest.
pub struct ChainPiece {
    /// Why, as the guest hypervisor is told.
    pub reason: Reason,
    /// From the stop of the nested guest until it ran again; to its start if that was not seen.
    pub span: Span,
    /// Exits of the guest hypervisor in it.
    pub exits: u64,
    /// Their reasons, as many as were kept.
    pub sequence: Vec<Reason>,
    /// How many of those that were not kept had which.
    pub beyond: Vec<(Reason, u64)>,
    /// The guest hypervisor halted inside.
    pub interrupted: bool,
    /// Another nested guest ran next, or the same one elsewhere first.
    pub migrated: bool,
    /// The span without time off the CPU; `None` if its end was not seen.
    pub cost_ns: Option<u64>,
}

impl Draft {
    /// Walks `part`, whose sums are `flow`.
    pub fn of(
        part: &Part,
        flow: &PartFlow,
        (options, bounds): (&Options, Bounds),
        progress: &mut dyn FnMut(u64, u64),
    ) -> Self {
        let trace = part.trace.as_ref();
        let facts = trace.facts();
        let has = |name: &str| facts.event_types.iter().any(|event| event.name == name);
        let (watch, request) = Watch::new(trace, &options.ignore_events);
        let keeper =
            Keeper { threads: Vec::new(), watch, tasks: Tasks::default(), bounds, kept: 0, window: ALL, full: None };
        let mut walk = Walk::new(keeper);
        walk.isa = vendor::of(trace);
        walk.seen.wakeup = has("kvm_vcpu_wakeup");
        let fitted: Option<Clock> = Some(flow.clock.clone());
        let gaps = gaps(facts, flow.clock_fitted_to.as_ref().and(fitted.as_ref()));
        let mut feed = Feed { walk, gaps, progress };
        let totals = trace::replay(trace, &Reading { request: &request, fitted }, &mut feed);
        let mut walk = feed.walk;
        let (from_ns, to_ns) = totals.span_ns.unwrap_or((0, 0));
        walk.end(to_ns);
        let seen = walk.seen;
        let mut kept = walk.sink;
        kept.tasks.end(to_ns);
        kept.threads.resize_with(walk.threads.len(), Thread::default);
        for (kept, thread) in kept.threads.iter_mut().zip(&walk.threads) {
            (kept.tid, kept.is_vcpu) = (thread.tid, thread.is_vcpu);
            for (_, state) in &mut kept.pieces {
                *state = match *state {
                    State::Guest(level) => State::Guest(settled(level, thread, &seen)),
                    State::Handling(level) => State::Handling(settled(level, thread, &seen)),
                    plain => plain,
                };
            }
        }
        // The walk does not believe every time that a damaged file states.
        let to_ns = kept.threads.iter().map(|thread| thread.end_ns).max().filter(|end_ns| *end_ns > 0).unwrap_or(to_ns);
        let losses = walk.losses.iter().map(|(cpu, at_ns, events, _)| (*cpu, *at_ns, *events)).collect();
        let by_tid = kept.threads.iter().enumerate().map(|(place, thread)| (thread.tid, place)).collect();
        Self {
            threads: kept.threads,
            by_tid,
            watch: kept.watch,
            tasks: kept.tasks,
            span: Span { from_ns, to_ns },
            losses,
            full: kept.full,
        }
    }

    /// Where drawing ended, since the trace's first event.
    pub fn cut(&self) -> Option<Cut> {
        self.full.map(|(at_ns, left_out)| Cut { at_ns: at_ns.saturating_sub(self.span.from_ns), left_out })
    }

    /// The thread `tid`, if it was met.
    pub fn thread(&self, tid: i32) -> Option<&Thread> {
        self.by_tid.get(&tid).map(|place| &self.threads[*place])
    }
}

struct Feed<'a, 'p> {
    walk: Walk<Keeper>,
    /// Stretches of CPUs that the trace does not hold.
    gaps: Vec<Gap>,
    progress: &'p mut (dyn FnMut(u64, u64) + 'a),
}

impl Listener for Feed<'_, '_> {
    fn start(&mut self, origin_ns: u64) {
        self.walk.start(origin_ns);
        self.gaps.drain(..).for_each(|(cpu, from_ns, until_ns)| self.walk.uncovered(cpu, from_ns, until_ns));
        self.walk.sink.begins(origin_ns);
    }

    fn event(&mut self, event: &Event<'_>) {
        let kept = &mut self.walk.sink;
        kept.tasks_hear(event);
        let event = kept.watch.event(event);
        self.walk.event(&event);
    }

    fn progress(&mut self, done: u64, all: u64) {
        (self.progress)(done, all);
    }
}

/// Keeps what the walk tells.
struct Keeper {
    threads: Vec<Thread>,
    watch: Watch,
    tasks: Tasks,
    bounds: Bounds,
    /// Pieces and changes so far.
    kept: u64,
    /// What is wanted, in absolute times.
    window: Span,
    /// See [`Draft::full`].
    full: Option<(u64, u64)>,
}

const ALL: Span = Span { from_ns: 0, to_ns: u64::MAX };

impl Keeper {
    fn begins(&mut self, origin_ns: u64) {
        let window = self.bounds.window.unwrap_or(ALL);
        self.window =
            Span { from_ns: window.from_ns.saturating_add(origin_ns), to_ns: window.to_ns.saturating_add(origin_ns) };
    }

    /// Whether what begins at `from_ns` and ends at `to_ns` is kept. What began before there was enough is, although it is
    /// told late: lanes are whole up to there.
    fn keeps(&mut self, from_ns: u64, to_ns: u64) -> bool {
        if to_ns <= self.window.from_ns || from_ns >= self.window.to_ns {
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
        if self.is_over(at_ns) {
            self.watch.closed = true;
            return;
        }
        let role = ROWS.get(usize::from(event.kind)).map(|row| row.role);
        if let Some(Role::Switch | Role::Waking | Role::IrqEntry | Role::SoftirqEntry) = role {
            self.changes(at_ns);
        }
        let cpu = self.watch.cpus.get(event.cpu as usize);
        let holder = cpu.and_then(|cpu| cpu.holders.last()).and_then(|(_, holder)| *holder);
        if event.is_loss() {
            return self.tasks.lost(at_ns, event.until_ns, holder);
        }
        if holder.is_none() && event.tid != trace::batch::NO_TID {
            self.tasks.found_on(event.cpu, event.tid, at_ns);
        }
        match role {
            Some(Role::Switch) => {
                let prev = event.or_zero(roles::switch::PREV_TID) as i32;
                let next = event.or_zero(roles::switch::NEXT_TID) as i32;
                self.tasks.switch(event.cpu, at_ns, (prev, roles::stays_ready(event)), next);
            }
            Some(Role::Waking) => self.tasks.waking(event.or_zero(0) as i32, at_ns),
            _ => {}
        }
    }
}

impl Sink for Keeper {
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        if !self.keeps(from_ns, to_ns) {
            return;
        }
        let thread = self.of(thread);
        thread.pieces.push((from_ns, state));
        thread.end_ns = thread.end_ns.max(to_ns);
    }

    fn exit(&mut self, thread: usize, exit: &Exit) {
        if !self.is_over(exit.at_ns) {
            self.of(thread).exits.push((exit.at_ns, exit.reason));
        }
    }

    fn chain(&mut self, thread: usize, chain: &Chain) {
        if self.is_over(chain.start_ns) {
            return;
        }
        let end_ns = chain.closed_ns.unwrap_or(chain.start_ns);
        self.of(thread).chains.push(ChainPiece {
            reason: chain.reason,
            span: Span { from_ns: chain.start_ns, to_ns: end_ns },
            exits: chain.exits,
            sequence: chain.sequence.to_vec(),
            beyond: chain.beyond.clone(),
            interrupted: chain.interrupted,
            migrated: chain.migrated,
            cost_ns: chain.cost_ns,
        });
    }

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}

    fn has_cpu(&mut self, cpu: usize, tid: Option<i32>, at_ns: u64) {
        self.watch.has_cpu(cpu, tid, at_ns);
    }
}
