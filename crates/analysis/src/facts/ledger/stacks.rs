//! How long was each vCPU in each state, and for which exit?
//!
//! ```text
//! exit CPUID at 10   [10 handling][20 irq][30 handling][40 userspace]    the guest runs
//!                    `------------- because of CPUID --------------'     ends it
//! ```
//! In: a recording, walked once more. Out: sums. Nothing is kept but what waits for the exit that it belongs to, which the walk
//! tells when it is over: memory grows with the vCPUs, states and reasons, not with the trace.

use super::model::Flow;
use crate::facts::events::reasons::Reason;
use crate::facts::ledger::levels;
use crate::facts::state::State;
use crate::facts::thread::{Chain, Exit};
use crate::facts::walk::backfill::backfilled;
use crate::facts::walk::replay::{ExtraEvents, WalkObserver, walked};
use crate::facts::walk::{Preemptor, Sink, Walk};
use crate::{Given, Input};
use base::Span;
use base::timeline::{StackSum, VcpuStacks};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Pieces of one thread that wait for an exit; a real one has a handful of interrupts inside, and a damaged trace that never
/// ends an exit must not fill the memory. What is over it belongs to no exit.
const MOST_WAITING: usize = 1 << 16;

/// The sums of every vCPU of the machines that `flow` was recorded on, in its order, inside the window of `given`. `flow` was
/// built from `input` with the same `given`. What guests' own traces tell is that time once more, so they are left out.
pub fn stacks(input: &Input, given: &Given, flow: &Flow, progress: &mut dyn FnMut(u64, u64)) -> Vec<VcpuStacks> {
    let mut all = Vec::new();
    for (part, known) in input.parts.iter().zip(&flow.parts) {
        if known.twin_of.is_some() || known.aligned.is_some() {
            continue;
        }
        let sink = Stacks { threads: Vec::new(), window: Span::default() };
        let mut ear = Windowed { window: given.narrow.window.map(|window| known.own_window(window)), progress };
        let besides = ExtraEvents { fitted: Some(known.clock.clone()), events: None };
        let (mut walk, _) = walked(part, given, besides, sink, &mut ear);
        walk.sink.threads.resize_with(walk.threads.len(), Pending::default);
        let seen = walk.seen;
        for vcpu in &known.vcpus {
            let Some(place) = walk.threads.iter().position(|thread| thread.tid == vcpu.tid) else { continue };
            let pending = &mut walk.sink.threads[place];
            pending.flush(None);
            let mut sums: BTreeMap<_, StackSum> = BTreeMap::new();
            for ((state, reason), sum) in &pending.sums {
                let state = match *state {
                    State::Guest(level) => State::Guest(backfilled(level, &walk.threads[place], &seen)),
                    State::Handling(level) => State::Handling(backfilled(level, &walk.threads[place], &seen)),
                    plain => plain,
                };
                let named = base::timeline::State {
                    name: levels::name(known.level, state),
                    title: levels::title(known.level, state),
                };
                let into = sums.entry((named, reason.map_or_else(String::new, Reason::name))).or_default();
                into.time_ns += sum.time_ns;
                into.stays += sum.stays;
            }
            all.push(VcpuStacks { vm: vcpu.vm.clone(), vcpu: vcpu.vcpu, sums });
        }
    }
    all
}

/// Adds up what the walk tells, per thread.
struct Stacks {
    threads: Vec<Pending>,
    /// Absolute times outside are left out.
    window: Span,
}

/// One thread.
#[derive(Default)]
struct Pending {
    /// Begin, state and how much of it lies in the window, since the guest ran last.
    waiting: Vec<(u64, State, u64)>,
    /// The exit that is being worked on.
    cause: Option<Reason>,
    sums: FxHashMap<(State, Option<Reason>), StackSum>,
}

impl Pending {
    /// Settles what waits; of it the handling that begins with `exit` begins the work on it.
    fn flush(&mut self, exit: Option<&Exit>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (from_ns, state, inside_ns) in waiting.drain(..) {
            match state {
                State::Handling(_) => {
                    if let Some(exit) = exit.filter(|exit| exit.at_ns == from_ns) {
                        self.cause = Some(exit.reason);
                    }
                }
                // A guest that runs ends the exit before.
                State::Guest(_) => self.cause = None,
                _ => {}
            }
            if inside_ns > 0 {
                let worked_on = matches!(state, State::Handling(_) | State::Userspace);
                let sum = self.sums.entry((state, self.cause.filter(|_| worked_on))).or_default();
                sum.time_ns += inside_ns;
                sum.stays += 1;
            }
        }
        self.waiting = waiting;
    }
}

impl Stacks {
    fn of(&mut self, thread: usize) -> &mut Pending {
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, Pending::default);
        }
        &mut self.threads[thread]
    }
}

impl Sink for Stacks {
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        if to_ns <= from_ns {
            return;
        }
        let inside_ns = to_ns.min(self.window.to_ns).saturating_sub(from_ns.max(self.window.from_ns));
        let pending = self.of(thread);
        pending.waiting.push((from_ns, state, inside_ns));
        // Before the guest ran, every exit was over and told.
        if matches!(state, State::Guest(_)) || pending.waiting.len() >= MOST_WAITING {
            pending.flush(None);
        }
    }

    fn exit(&mut self, thread: usize, exit: &Exit) {
        self.of(thread).flush(Some(exit));
    }

    fn chain(&mut self, _: usize, _: &Chain) {}

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}
}

/// Sets the window when the trace begins, and tells how far it is.
struct Windowed<'a> {
    window: Option<Span>,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl WalkObserver<Stacks> for Windowed<'_> {
    fn start(&mut self, walk: &mut Walk<Stacks>, origin_ns: u64) {
        let window = self.window.unwrap_or(Span { from_ns: 0, to_ns: u64::MAX });
        walk.sink.window =
            Span { from_ns: window.from_ns.saturating_add(origin_ns), to_ns: window.to_ns.saturating_add(origin_ns) };
    }

    fn progress(&mut self, done: u64, all: u64) {
        (self.progress)(done, all);
    }
}
