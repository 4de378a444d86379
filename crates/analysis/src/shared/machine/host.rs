//! What the host's scheduler, interrupts and losses mean for a vCPU thread (R3, T13 to T19).

use super::{Class, Cx, Label, Mode, Thread};
use crate::shared::state::State;
use crate::shared::walk::Sink;

/// Why a thread is not on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// Ready, but another task runs.
    Preempted,
    /// Its guest halted.
    Halted,
    /// Asleep.
    Blocked,
    /// Asleep, and the event that would tell why is lost.
    Asleep,
    /// Woken, not yet running.
    Waking,
}

impl Off {
    fn is_asleep(self) -> bool {
        matches!(self, Off::Halted | Off::Blocked | Off::Asleep)
    }

    pub(super) fn state(self) -> State {
        match self {
            Off::Preempted => State::Preempted,
            Off::Halted => State::Halted,
            Off::Blocked => State::Blocked,
            Off::Asleep => State::Unknown,
            Off::Waking => State::WakeDelay,
        }
    }
}

impl Thread {
    /// Where it is off the CPU, if it is.
    pub fn off(&self) -> Option<Off> {
        self.off
    }

    /// R3: the host worked on this thread's CPU, so its guest had stopped.
    #[inline]
    pub fn host_event(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        if self.off.is_some() {
            return;
        }
        if self.mode == Mode::Guest {
            self.close(now_ns, cx);
            self.stop_guest();
        }
        self.last_ns = self.last_ns.max(now_ns);
    }

    fn stop_guest(&mut self) {
        self.mode = Mode::Kvm;
        self.exit_pending = true;
    }

    /// A host interrupt or softirq begins (`by` = 1) or ends (`by` = -1) on this thread's CPU.
    #[inline]
    pub fn overlay(&mut self, now_ns: u64, softirq: bool, by: i32, cx: &mut Cx<'_, impl Sink>) {
        self.host_event(now_ns, cx);
        if self.off.is_some() {
            return;
        }
        self.close(now_ns, cx);
        let depth = if softirq { &mut self.softirq } else { &mut self.irq };
        *depth = depth.saturating_add_signed(by);
    }

    /// An NMI that took `length_ns` ended. A guest that it met stopped when it began.
    pub fn nmi(&mut self, now_ns: u64, length_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        if self.off.is_some() || self.mode == Mode::Unknown {
            return;
        }
        let from_ns = now_ns.saturating_sub(length_ns).max(self.ledger.since_ns);
        self.close(from_ns, cx);
        if self.mode == Mode::Guest {
            self.stop_guest();
        }
        self.ledger.end(Label::Plain(State::Nmi), now_ns.max(from_ns), cx);
        self.last_ns = now_ns.max(from_ns);
    }

    /// The thread leaves its CPU (T13 to T15).
    pub fn switch_out(&mut self, now_ns: u64, ready: bool, cx: &mut Cx<'_, impl Sink>) {
        if self.off.is_some() {
            self.missed_switch(cx);
        }
        self.host_event(now_ns, cx);
        self.close(now_ns, cx);
        self.irq = 0;
        self.softirq = 0;
        let halted = self.mode == Mode::Kvm && !self.exit_pending && self.guest_halted();
        self.off = Some(match (ready, halted) {
            (true, _) => Off::Preempted,
            (false, true) => Off::Halted,
            (false, false) if self.lossy && self.mode == Mode::Unknown => Off::Asleep,
            (false, false) => Off::Blocked,
        });
    }

    /// The thread is made ready (T16).
    pub fn waking(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        let asleep = self.off.is_some_and(Off::is_asleep);
        if self.off.is_none() || !asleep && self.doubt.is_none() {
            return;
        }
        // Behind a gap it was asleep until now; if it was ready before, it has run unseen and nobody knows why it slept.
        self.settle_doubt(now_ns, !asleep, cx);
        let now_ns = self.close(now_ns, cx);
        self.off = Some(Off::Waking);
        self.woken_ns = Some(now_ns);
    }

    /// The thread gets a CPU (T17).
    pub fn switch_in(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        if self.off.is_none() && self.first_ns != now_ns {
            self.missed_switch(cx);
        }
        // Ready behind a gap: who woke it, or whether it has run and lost its CPU again, is not known.
        self.settle_doubt(now_ns, true, cx);
        self.doubt = None;
        let now_ns = self.close(now_ns, cx);
        self.off = None;
        if let Some(woken_ns) = self.woken_ns {
            cx.sink.ran_after_waking(cx.me, woken_ns, now_ns);
        }
    }

    /// `kvm_vcpu_wakeup` (T18): of the last `length_ns`, what came before the first switch-out was polling.
    pub fn vcpu_wakeup(&mut self, now_ns: u64, length_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        if self.off.is_some() || self.mode != Mode::Kvm || self.exit_pending || !self.guest_halted() {
            return;
        }
        let now_ns = self.close(now_ns, cx);
        self.ledger.polled_since(now_ns.saturating_sub(length_ns));
    }

    #[inline]
    fn guest_halted(&self) -> bool {
        self.last_exit.is_some_and(|(reason, _)| reason.class() == Class::Halt)
    }

    /// Events of its CPU were lost between `from_ns` and `to_ns` (T19).
    pub fn lost(&mut self, from_ns: u64, to_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        self.lossy = true;
        if self.off.is_some() {
            // It may have run on that CPU unseen; its next event will tell more.
            let first = self.doubt.map_or(from_ns.max(self.ledger.since_ns), |(first, _)| first);
            let last = self.doubt.map_or(to_ns, |(_, last)| last.max(to_ns));
            self.doubt = Some((first, last.max(first)));
            self.drop_polling(cx);
        } else {
            self.forget(from_ns, cx);
        }
        self.drop_position(cx);
    }

    /// It is on a CPU and nobody told since when: what it did meanwhile is lost.
    pub fn missed_switch(&mut self, cx: &mut Cx<'_, impl Sink>) {
        cx.doubts.unseen_switches += 1;
        self.lossy = true;
        self.forget(self.doubt.map_or(self.last_ns, |(from, _)| from), cx);
        self.drop_position(cx);
    }

    /// From `from_ns` on nothing is known: the piece ends there, and the thread's mode is unknown.
    pub(super) fn forget(&mut self, from_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        self.close(from_ns.max(self.ledger.since_ns), cx);
        self.drop_polling(cx);
        self.ledger.settle(self.level_dropped(), cx);
        self.mode = Mode::Unknown;
        self.off = None;
        self.doubt = None;
        self.exit_pending = false;
        self.irq = 0;
        self.softirq = 0;
        self.woken_ns = None;
    }

    /// The event that would have told polling from handling is lost.
    fn drop_polling(&mut self, cx: &Cx<'_, impl Sink>) {
        if cx.seen.wakeup && self.guest_halted() {
            self.ledger.handled_or_polled();
        }
    }

    /// The next event of a thread that may have run unseen in a gap. The gap is unknown; so is what follows if nothing
    /// tells that it slept (`all`). A gap that is not over stays one.
    fn settle_doubt(&mut self, now_ns: u64, all: bool, cx: &mut Cx<'_, impl Sink>) {
        let Some((from_ns, to_ns)) = self.doubt.take() else { return };
        self.close(from_ns.max(self.ledger.since_ns), cx);
        let until_ns = if all { now_ns } else { to_ns.min(now_ns) };
        self.ledger.end(Label::Plain(State::Unknown), until_ns.max(self.ledger.since_ns), cx);
        self.mode = Mode::Unknown;
        self.woken_ns = None;
        self.doubt = (now_ns < to_ns).then_some((now_ns, to_ns));
    }
}
