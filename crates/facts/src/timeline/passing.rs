//! Lanes are told while the trace is read, each piece as soon as nothing can change it, and then forgotten.
//!
//! ```text
//! walk --> Keeper: the last 65,536 changes, and what waits --> Passing --> Take: pieces of every lane, and chains
//! ```
//! What waits is little: pieces of a vCPU since its guest ran last, because their exit is told when it is over; a CPU's lane for
//! what a vCPU did there, for a while ([`lanes::CpuLane`]); and each task's last change. Memory therefore does not grow with the
//! trace.

use super::keeper::{Keeper, Thread};
use super::lanes::{self, Around, CpuLane, Look, TaskLane};
use super::watch::forget;
use crate::ledger::model::PartFlow;
use base::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use walk::LONGEST_NS;
use walk::state::State;
use walk::thread::Chain;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Whose {
    /// The vCPU that this thread runs.
    Vcpu(i32),
    /// A CPU by its number.
    Cpu(u32),
    /// A thread that is no vCPU.
    Task(i32),
}

pub(super) trait Take {
    /// From `at_ns` of the trace's clock on, the lane shows `look`; `detail` says more, or is empty. In order for each lane.
    fn piece(&mut self, whose: Whose, at_ns: u64, look: Look, detail: &str);
    /// A chain of the vCPU of thread `tid` is over. In order for each thread.
    fn chain(&mut self, tid: i32, chain: &Chain);
}

/// How far the lanes of one trace are told.
pub(super) struct Passing<'a> {
    flow: &'a PartFlow,
    /// Threads that are no vCPUs and have a lane.
    workers: &'a FxHashSet<i32>,
    take: &'a mut dyn Take,
    cpus: Vec<CpuLane>,
    tasks: FxHashMap<i32, TaskLane>,
    /// The most that was kept when it was told.
    #[cfg(test)]
    pub(crate) most_kept: usize,
}

/// First and last event of the trace that `flow` came of, as far as the walk believes them.
pub(super) fn span(flow: &PartFlow) -> Span {
    let Span { from_ns, to_ns } = flow.span;
    Span { from_ns, to_ns: to_ns.min(from_ns.saturating_add(LONGEST_NS)) }
}

/// Pieces of one thread that wait for their exit; a real one has a handful of interrupts inside. What is over it gets no reason.
const MOST_WAITING: usize = 1 << 16;

impl<'a> Passing<'a> {
    /// Nothing is told; lanes are those of all vCPUs, all CPUs and of `workers`.
    pub(super) fn new(flow: &'a PartFlow, workers: &'a FxHashSet<i32>, take: &'a mut dyn Take) -> Self {
        Self {
            flow,
            workers,
            take,
            cpus: Vec::new(),
            tasks: FxHashMap::default(),
            #[cfg(test)]
            most_kept: 0,
        }
    }

    /// Tells what `kept` holds as far as it is final, and forgets it. The trace is read up to `now_ns`, or whole;
    /// a CPU's lane waits for a vCPU `waits` times.
    pub(super) fn pass(&mut self, kept: &mut Keeper, (now_ns, waits): (Option<u64>, u32)) {
        #[cfg(test)]
        {
            self.most_kept = self.most_kept.max(kept.count());
        }
        for thread in &mut kept.threads {
            match self.flow.settled.get(&thread.tid) {
                Some(levels) => {
                    thread.is_vcpu = true;
                    thread.settle(levels);
                    self.vcpu(thread, now_ns.is_none());
                }
                // Its pieces are nobody's.
                None => {
                    thread.pieces.clear();
                    thread.exits.clear();
                    thread.chains.clear();
                }
            }
        }
        self.tasks(kept, now_ns.is_none());
        let needed = self.cpus(kept, (now_ns, waits));
        for thread in kept.threads.iter_mut().filter(|thread| thread.is_vcpu) {
            // Who gets a CPU next asks for the last piece at most.
            let begun = |at_ns: u64| thread.pieces.partition_point(|(from_ns, _)| *from_ns <= at_ns).saturating_sub(1);
            let last = thread.pieces.len().saturating_sub(1);
            let asked = needed.get(&thread.tid).map_or(last, |at_ns| begun(*at_ns));
            thread.forget(asked.min(thread.told).min(last));
        }
    }

    /// Time on CPUs' lanes that is unknown because what a vCPU did there was told too late.
    pub(super) fn left_unknown_ns(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.left_unknown_ns).sum()
    }

    /// Pieces up to the last time that the guest ran: every exit before it is told.
    fn vcpu(&mut self, thread: &mut Thread, is_over: bool) {
        let untold = &thread.pieces[thread.told..];
        let told = if is_over || untold.len() >= MOST_WAITING {
            thread.pieces.len()
        } else {
            let guest = untold.iter().rposition(|(_, state)| matches!(state, State::Guest(_)));
            thread.told + guest.map_or(0, |place| place + 1)
        };
        let whose = Whose::Vcpu(thread.tid);
        let put = &mut |at_ns: u64, look: Look, why: &str| self.take.piece(whose, at_ns, look, why);
        lanes::vcpu(&thread.pieces[thread.told..told], &thread.exits, put);
        thread.told = told;
        for chain in thread.chains.drain(..) {
            self.take.chain(thread.tid, &chain);
        }
    }

    /// All changes of tasks but the last, which the next one may change.
    fn tasks(&mut self, kept: &mut Keeper, is_over: bool) {
        let span = span(self.flow);
        for (tid, track) in &mut kept.tasks.by_tid {
            let last = if is_over { track.len() } else { track.len().saturating_sub(1) };
            if self.workers.contains(tid) {
                let put = &mut |at_ns: u64, look: Look, on: &str| self.take.piece(Whose::Task(*tid), at_ns, look, on);
                self.tasks.entry(*tid).or_default().tell(&track[..last], span, put);
            }
            track.drain(..last);
        }
    }

    /// What CPUs ran. Returns for each thread that some CPU waits for since when its pieces are needed.
    fn cpus(&mut self, kept: &mut Keeper, (now_ns, waits): (Option<u64>, u32)) -> FxHashMap<i32, u64> {
        let Keeper { threads, watch, .. } = kept;
        let by_tid: FxHashMap<i32, &Thread> =
            threads.iter().filter(|thread| thread.is_vcpu).map(|thread| (thread.tid, thread)).collect();
        let holders = watch.cpus.iter().flat_map(|cpu| &cpu.holders).filter_map(|(_, holder)| *holder);
        let names = names(self.flow, holders);
        let around = Around {
            vcpu: &|tid| by_tid.get(&tid).copied(),
            names: &names,
            handlers: &watch.handlers,
            span: span(self.flow),
            now_ns,
            waits,
        };
        self.cpus.resize_with(watch.cpus.len().max(self.cpus.len()), CpuLane::default);
        let mut needed: FxHashMap<i32, u64> = FxHashMap::default();
        for ((number, cpu), lane) in (0..).zip(&mut watch.cpus).zip(&mut self.cpus) {
            if cpu.holders.is_empty() {
                continue;
            }
            let put = &mut |at_ns: u64, look: Look, what: &str| self.take.piece(Whose::Cpu(number), at_ns, look, what);
            let whole = lane.tell(cpu, &around, put);
            // At the end all of it is told.
            cpu.holders.drain(..whole.min(cpu.holders.len() - 1));
            let since_ns = lane.told_ns.unwrap_or(cpu.holders[0].0);
            forget(&mut cpu.above, since_ns);
            for (place, (from_ns, holder)) in cpu.holders.iter().enumerate() {
                let from_ns = if place == 0 { since_ns } else { *from_ns };
                if let Some(tid) = holder {
                    needed.entry(*tid).and_modify(|since_ns| *since_ns = from_ns.min(*since_ns)).or_insert(from_ns);
                }
            }
        }
        needed
    }
}

/// The tasks among `holders` of CPUs, by thread, as slices name them.
pub(super) fn names(flow: &PartFlow, holders: impl Iterator<Item = i32>) -> BTreeMap<i32, String> {
    let mut names = BTreeMap::new();
    for tid in holders {
        names.entry(tid).or_insert_with(|| name(flow, tid));
    }
    names
}

/// What a task is called: by its name if the trace tells it, and its number.
pub(super) fn name(flow: &PartFlow, tid: i32) -> String {
    flow.comms.get(&tid).map_or_else(|| format!("thread {tid}"), |comm| format!("{comm} ({tid})"))
}
