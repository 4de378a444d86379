//! One trace, walked once more: every piece of time of every thread and every CPU is kept, as far as that is wanted.

use super::Cut;
use super::keeper::{Bounds, Thread, kept};
use super::tasks::Tasks;
use super::watch::Watch;
use super::woken::Woken;
use crate::Given;
use crate::ledger::model::PartFlow;
use base::Span;
use rustc_hash::FxHashMap;
use walk::Part;
use walk::events::host_interrupts::Handlers;

pub(super) struct Draft {
    threads: Vec<Thread>,
    by_tid: FxHashMap<i32, usize>,
    pub watch: Watch,
    /// Tasks that are no vCPUs.
    pub tasks: Tasks,
    pub woken: Woken,
    /// What interrupts are called that wake: the walk numbers them in its own order.
    pub wakers: Handlers,
    /// First and last event.
    pub span: Span,
    /// CPU, when, how many events, bytes.
    pub losses: Vec<(u32, u64, u64, u64)>,
    /// When enough was kept, and how many pieces of threads came later.
    full: Option<(u64, u64)>,
}

impl Draft {
    /// Walks `part`, whose sums are `flow`.
    pub(super) fn of(
        part: &Part,
        flow: &PartFlow,
        (given, bounds): (&Given, Bounds),
        progress: &mut dyn FnMut(u64, u64),
    ) -> Self {
        let (walk, totals) = kept(part, flow, (given, bounds), None, progress);
        let (from_ns, to_ns) = totals.span_ns.unwrap_or((0, 0));
        let kept = walk.sink;
        // The walk does not believe every time that a damaged file states.
        let to_ns = kept.threads.iter().map(|thread| thread.end_ns).max().filter(|end_ns| *end_ns > 0).unwrap_or(to_ns);
        let by_tid = kept.threads.iter().enumerate().map(|(place, thread)| (thread.tid, place)).collect();
        Self {
            threads: kept.threads,
            by_tid,
            watch: kept.watch,
            tasks: kept.tasks,
            woken: kept.woken.unwrap_or_default(),
            wakers: walk.handlers,
            span: Span { from_ns, to_ns },
            losses: walk.losses,
            full: kept.full,
        }
    }

    /// Where drawing ended; `flow` is that of the trace.
    pub(super) fn cut(&self, flow: &PartFlow) -> Option<Cut> {
        self.full.map(|(at_ns, left_out)| Cut { at_ns: flow.on_axis(at_ns), left_out })
    }

    /// The thread `tid`, if it was met.
    pub(super) fn thread(&self, tid: i32) -> Option<&Thread> {
        self.number(tid).map(|place| &self.threads[place])
    }

    pub(super) fn number(&self, tid: i32) -> Option<usize> {
        self.by_tid.get(&tid).copied()
    }
}
