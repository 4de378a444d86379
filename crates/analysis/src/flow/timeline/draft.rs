//! One trace, walked once more: every piece of time of every thread and every CPU is kept.
//!
//! ```text
//! walk --interval--> pieces of each thread --end of trace settles levels--> Draft
//!      --exit------> why, joined with the handling that begins at the same instant
//!      --chain-----> [stop of L2 ... L2 runs again)
//!      --has_cpu---> holders of each CPU (watch.rs), and what each task does (tasks.rs)
//! ```
//! Times are absolute, on the trace's own clock.

use super::tasks::Tasks;
use super::watch::Watch;
use crate::flow::model::PartFlow;
use crate::shared::machine::{Chain, Exit};
use crate::shared::reasons::Reason;
use crate::shared::roles::{self, ROWS, Role};
use crate::shared::settle::settled;
use crate::shared::state::State;
use crate::shared::vendor;
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
    pub fn of(part: &Part, flow: &PartFlow, options: &Options, progress: &mut dyn FnMut(u64, u64)) -> Self {
        let trace = part.trace.as_ref();
        let facts = trace.facts();
        let has = |name: &str| facts.event_types.iter().any(|event| event.name == name);
        let (watch, request) = Watch::new(&options.ignore_events, has);
        let keeper = Keeper { threads: Vec::new(), watch, tasks: Tasks::default() };
        let mut walk = Walk::new(keeper);
        walk.isa = vendor::of(trace);
        walk.seen.wakeup = has("kvm_vcpu_wakeup");
        let mut feed = Feed { walk, progress };
        let fitted: Option<Clock> = Some(flow.clock.clone());
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
        }
    }

    /// The thread `tid`, if it was met.
    pub fn thread(&self, tid: i32) -> Option<&Thread> {
        self.by_tid.get(&tid).map(|place| &self.threads[*place])
    }
}

struct Feed<'a, 'p> {
    walk: Walk<Keeper>,
    progress: &'p mut (dyn FnMut(u64, u64) + 'a),
}

impl Listener for Feed<'_, '_> {
    fn start(&mut self, origin_ns: u64) {
        self.walk.start(origin_ns);
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
}

impl Keeper {
    fn of(&mut self, thread: usize) -> &mut Thread {
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, Thread::default);
        }
        &mut self.threads[thread]
    }

    fn tasks_hear(&mut self, event: &Event<'_>) {
        let at_ns = event.time_ns;
        let cpu = self.watch.cpus.get(event.cpu as usize);
        let holder = cpu.and_then(|cpu| cpu.holders.last()).and_then(|(_, holder)| *holder);
        if event.is_loss() {
            return self.tasks.lost(at_ns, event.until_ns, holder);
        }
        if holder.is_none() && event.tid != trace::batch::NO_TID {
            self.tasks.found_on(event.cpu, event.tid, at_ns);
        }
        match ROWS.get(usize::from(event.kind)).map(|row| row.role) {
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
        let thread = self.of(thread);
        thread.pieces.push((from_ns, state));
        thread.end_ns = thread.end_ns.max(to_ns);
    }

    fn exit(&mut self, thread: usize, exit: &Exit) {
        self.of(thread).exits.push((exit.at_ns, exit.reason));
    }

    fn chain(&mut self, thread: usize, chain: &Chain) {
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
