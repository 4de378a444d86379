//! Collects what vCPU threads lose while the ledger's walk runs.
//!
//! ```text
//! walk --- intervals ---> pieces in order: preempted, waking, blocked, handling, ..    who: not known yet
//!     \--- interrupts --> the piece of the same time gets the handler or softirq
//!      \-- exits -------> handling and userspace since the exit are the host's, or no loss; who sleeps, sleeps because of it
//!       \- shares ------> at the end: who ran while the thread waited for a CPU
//! ```
//! An exit is told when it is over, and shares when the next switch is, so pieces wait where they are.

use super::causes::{BLOCKED, Causes, HANDLING, PREEMPTED, USERSPACE, WAKE_DELAY};
use super::collected::Collected;
use super::holders::Holders;
use super::model::{BEGINS, By, LostIn, PartLosses};
use crate::ledger::model::PartFlow;
use base::Span;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use walk::events::host_interrupts::HostInterrupt;
use walk::events::reasons::Reason;
use walk::faults::Fault;
use walk::state::State;
use walk::thread::{Chain, Exit, Thread};
use walk::{Interruption, Preemptor, Sink, Waker};

/// Collects the losses of one trace.
#[derive(Default, Clone)]
pub struct Collector {
    threads: Vec<Collected>,
    causes: Causes,
    holders: Holders,
    window: Span,
    /// Numbers of vCPU threads by their ids.
    by_tid: FxHashMap<i32, usize>,
}

impl Collector {
    /// The trace begins; what lies outside of `window` is not asked for.
    pub(crate) fn begin(&mut self, window: Span) {
        self.window = window;
    }

    /// The trace is over; the sums know `threads` by their numbers.
    pub(crate) fn end(&mut self, threads: &[Thread]) {
        for (place, thread) in threads.iter().enumerate().filter(|(_, thread)| thread.is_vcpu) {
            self.by_tid.insert(thread.tid, place);
        }
        for (own, thread) in self.threads.iter_mut().zip(threads) {
            own.end(thread.gone, self.window, &mut self.causes);
        }
    }

    #[inline(never)]
    fn rare_interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        let (window, own) = (self.window, &mut self.threads[thread]);
        let span = inside(window, from_ns, to_ns);
        let begins = begins(window, from_ns);
        match state {
            State::Guest(_) => {
                own.runs_vcpu(window, from_ns);
                own.enters(&mut self.causes);
            }
            State::Handling(_) => {
                own.runs_vcpu(window, from_ns);
                own.works(span, HANDLING);
            }
            State::Userspace => {
                own.runs_vcpu(window, from_ns);
                own.works(span, USERSPACE);
            }
            State::Irq | State::Softirq | State::Nmi => {
                own.runs_vcpu(window, from_ns);
                own.interrupted();
            }
            State::HaltPoll | State::Halted => own.runs_vcpu(window, from_ns),
            State::WakeDelay => own.lost(span, WAKE_DELAY | begins),
            State::Preempted => own.lost(span, PREEMPTED),
            State::Blocked if own.takes_stop() => {
                own.lost(span, self.causes.place(LostIn::Blocked, By::Stopped) | begins);
            }
            State::Blocked => own.lost(span, BLOCKED | begins),
            State::Unknown => own.unknown(span),
        }
    }

    #[cold]
    fn meet(&mut self, thread: usize) {
        let window = self.window;
        self.threads.resize_with(thread + 1, || Collected::new(window));
    }

    fn of(&mut self, thread: usize) -> &mut Collected {
        if thread >= self.threads.len() {
            self.meet(thread);
        }
        &mut self.threads[thread]
    }

    /// What of a stretch lies in the window; with [`BEGINS`] if it begins there.
    fn inside(&self, from_ns: u64, to_ns: u64) -> (Span, u32) {
        (inside(self.window, from_ns, to_ns), begins(self.window, from_ns))
    }

    /// Forgets what lies before `before_ns`: of a recording that grows, only windows behind it are asked for.
    pub fn forget(&mut self, before_ns: u64) {
        self.threads.iter_mut().for_each(|own| own.forget(before_ns));
    }

    /// The losses of the vCPUs of `part`, which was walked.
    pub fn of_part(self, part: &PartFlow) -> PartLosses {
        let stuck = part.faults.iter().filter(|(_, fault, _)| *fault == Fault::Repeated);
        let stuck: BTreeMap<i32, Reason> = stuck.filter_map(|(tid, _, seen)| Some((*tid, seen.reason?))).collect();
        let mut losses = self.of_threads(part.vcpus.iter().map(|vcpu| vcpu.tid), part.window, part.span.from_ns);
        // An instruction that makes no progress is its guest's trouble, not the work of the host's memory.
        for (vcpu, of_vcpu) in part.vcpus.iter().zip(&mut losses.vcpus) {
            stuck.get(&vcpu.tid).into_iter().for_each(|reason| of_vcpu.forgive(*reason));
        }
        losses
    }

    /// The losses of threads in `window`, counted from `origin_ns` on.
    pub(crate) fn of_threads(mut self, tids: impl Iterator<Item = i32>, window: Span, origin_ns: u64) -> PartLosses {
        let causes = self.causes.into_all();
        let mut of_vcpu = |tid: i32| {
            let place = self.by_tid.get(&tid).copied();
            let collected = place.and_then(|place| self.threads.get_mut(place)).map(std::mem::take);
            collected.unwrap_or_default().finish(window, origin_ns, &causes)
        };
        PartLosses { vcpus: tids.map(&mut of_vcpu).collect() }
    }
}

/// What of a stretch lies in the window.
fn inside(window: Span, from_ns: u64, to_ns: u64) -> Span {
    Span { from_ns: from_ns.max(window.from_ns), to_ns: to_ns.min(window.to_ns) }
}

/// [`BEGINS`] for what begins in the window.
fn begins(window: Span, from_ns: u64) -> u32 {
    if (window.from_ns..window.to_ns).contains(&from_ns) { BEGINS } else { 0 }
}

impl Sink for Collector {
    #[inline(always)]
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        if thread >= self.threads.len() {
            self.meet(thread);
        }
        let own = &mut self.threads[thread];
        own.reaches(to_ns);
        // Nearly all are one of these two.
        match state {
            State::Guest(_) if !own.entry_is_news() => {}
            State::Handling(_) if own.is_known() => own.works(inside(self.window, from_ns, to_ns), HANDLING),
            _ => self.rare_interval(thread, state, from_ns, to_ns),
        }
    }

    #[inline(always)]
    fn exit(&mut self, thread: usize, exit: &Exit) {
        if thread >= self.threads.len() {
            self.meet(thread);
        }
        self.threads[thread].exit(exit, self.window, &mut self.causes);
    }

    fn chain(&mut self, _: usize, _: &Chain) {}

    fn preempted(&mut self, thread: usize, by: &Preemptor, from_ns: u64, to_ns: u64) {
        let by_task = match by.tid {
            Some(0) => By::Throttled,
            Some(tid) => By::Task(tid),
            None => By::Unknown,
        };
        let cause = self.causes.place(LostIn::Preempted, by_task);
        let (span, begins) = self.inside(from_ns, to_ns);
        self.of(thread).share(span, if by.took { cause | begins } else { cause });
    }

    fn interrupted(&mut self, thread: usize, by: &Interruption, from_ns: u64, to_ns: u64) {
        let state = match by.by {
            HostInterrupt::Irq(_) | HostInterrupt::Vector(_) => LostIn::Irq,
            HostInterrupt::Softirq(_) => LostIn::Softirq,
            HostInterrupt::Nmi => LostIn::Nmi,
        };
        let cause = self.causes.place(state, By::Interrupt(by.by));
        let (span, begins) = self.inside(from_ns, to_ns);
        self.of(thread).interrupt(span, from_ns == to_ns, if by.begins { cause | begins } else { cause });
    }

    fn serves(&mut self, thread: usize, at_ns: u64) {
        let window = self.window;
        self.of(thread).runs_vcpu(window, at_ns);
    }

    fn has_cpu(&mut self, cpu: usize, tid: Option<i32>, at_ns: u64) {
        self.holders.has_cpu(cpu, tid, at_ns);
    }

    fn waits(&mut self, thread: usize, since_ns: Option<u64>) {
        self.holders.waits(thread, since_ns);
    }

    fn stopped(&mut self, thread: usize) {
        self.of(thread).stops();
    }

    fn ran_after_waking(&mut self, thread: usize, _: Waker, cpu: Option<usize>, woken_ns: u64, ran_ns: u64) {
        self.holders.waits(thread, None);
        let Some(cpu) = cpu else { return };
        let held = self.holders.before(cpu, Span { from_ns: woken_ns, to_ns: ran_ns });
        for (number, (tid, held)) in held.into_iter().enumerate() {
            let cause = self.causes.place(LostIn::WakeDelay, tid.map_or(By::Unknown, By::Task));
            let (span, begins) = self.inside(held.from_ns, held.to_ns);
            self.of(thread).share(span, if number == 0 { cause | begins } else { cause });
        }
    }
}
