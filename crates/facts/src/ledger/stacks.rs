//! How long was each vCPU in each state, and for which exit?
//!
//! ```text
//! exit CPUID at 10   [10 handling][20 irq][30 handling][40 userspace]    the guest runs
//!                    `------------- because of CPUID --------------'     ends it
//! ```
//! In: the ledger's walk. Out: sums. Nothing is kept but what waits for the exit that it belongs to, which the walk
//! tells when it is over: memory grows with the vCPUs, states and reasons, not with the trace.

use super::build::{Ledger, build_with};
use super::extra::Extra;
use super::model::PartFlow;
use crate::ledger::levels;
use crate::{Given, Input};
use base::Span;
use base::timeline::{StackSum, VcpuStacks};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use walk::events::reasons::Reason;
use walk::state::State;
use walk::thread::{Exit, Thread};

/// Pieces of one thread that wait for an exit; a real one has a handful of interrupts inside, and a damaged trace that never
/// ends an exit must not fill the memory. What is over it belongs to no exit.
const MOST_WAITING: usize = 1 << 16;

/// The ledger, and the sums of every vCPU of the machines that it was recorded on, in its order. What guests' own traces tell is
/// that time once more, so they are left out; where a level is asked for as the witness, all others are.
pub(crate) fn build(input: &Input, given: &Given, progress: &mut dyn FnMut(u64, u64)) -> (Ledger, Vec<VcpuStacks>) {
    let extra = || Extra { stacks: Some(Stacks::default()), ..Extra::default() };
    let (ledger, extras) = build_with(input, given, extra, progress);
    let stacks = of_parts(&ledger, given, extras.into_iter().filter_map(|extra| extra.stacks));
    (ledger, stacks)
}

pub(crate) fn of_parts(ledger: &Ledger, given: &Given, all: impl Iterator<Item = Stacks>) -> Vec<VcpuStacks> {
    let counts = |part: &PartFlow| match given.narrow.witness {
        Some(level) => part.level == level,
        None => part.aligned.is_none(),
    };
    let parts = ledger.flow.parts.iter().zip(all).filter(|(part, _)| part.twin_of.is_none() && counts(part));
    parts.flat_map(|(part, stacks)| stacks.of_part(part)).collect()
}

/// Adds up what the walk tells, per thread.
#[derive(Default)]
pub(crate) struct Stacks {
    threads: Vec<Pending>,
    /// Numbers of threads by their ids.
    by_tid: FxHashMap<i32, usize>,
    /// Absolute times outside are left out.
    window: Span,
}

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
    /// The vCPUs of `part`, with the levels that it found out in the end.
    fn of_part(&self, part: &PartFlow) -> Vec<VcpuStacks> {
        let of_vcpu = |tid: i32| {
            let (pending, levels) = (self.threads.get(*self.by_tid.get(&tid)?)?, part.settled.get(&tid)?);
            let mut sums: BTreeMap<_, StackSum> = BTreeMap::new();
            for ((state, reason), sum) in &pending.sums {
                let state = match *state {
                    State::Guest(level) => State::Guest(levels[level.index()]),
                    State::Handling(level) => State::Handling(levels[level.index()]),
                    plain => plain,
                };
                let named = base::timeline::State {
                    name: levels::name(part.level, state),
                    title: levels::title(part.level, state),
                };
                let into = sums.entry((named, reason.map_or_else(String::new, Reason::name))).or_default();
                into.time_ns += sum.time_ns;
                into.stays += sum.stays;
            }
            Some(sums)
        };
        let vcpus = part.vcpus.iter().filter_map(|vcpu| Some((vcpu, of_vcpu(vcpu.tid)?)));
        vcpus.map(|(vcpu, sums)| VcpuStacks { vm: vcpu.vm.clone(), vcpu: vcpu.vcpu, sums }).collect()
    }

    fn of(&mut self, thread: usize) -> &mut Pending {
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, Pending::default);
        }
        &mut self.threads[thread]
    }

    pub(super) fn begin(&mut self, window: Span) {
        self.window = window;
    }

    pub(super) fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
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

    pub(super) fn exit(&mut self, thread: usize, exit: &Exit) {
        self.of(thread).flush(Some(exit));
    }

    pub(super) fn end(&mut self, threads: &[Thread]) {
        self.by_tid = threads.iter().enumerate().map(|(place, thread)| (thread.tid, place)).collect();
        self.threads.resize_with(threads.len(), Pending::default);
        self.threads.iter_mut().for_each(|pending| pending.flush(None));
    }
}
