//! What the host's scheduler, interrupts and losses mean for a vCPU thread (R3, T13 to T19).

use super::{Class, Label, Mode, Surroundings, Thread};
use crate::events::host_interrupts::HostInterrupt;
use crate::state::{State, TracedLevel};
use crate::walk::{Interruption, Sink, Waker};

/// Why a thread is not on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// Ready, but another task runs.
    Preempted,
    Halted,
    Blocked,
    /// Asleep, and the event that would tell why is lost.
    Asleep,
    /// Going to sleep it was woken on its way off the CPU: it waits to run, unless the next event wakes it, for then it
    /// slept after all.
    WokenFirst,
    /// Woken, not yet running.
    Waking,
    /// It ran for the last time.
    Ended,
}

/// A gap in which a thread that is off its CPU may have run unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Doubt {
    pub from_ns: u64,
    pub until_ns: u64,
    /// It is in the story of the CPU that the thread was on, too.
    here: bool,
}

impl Off {
    fn is_asleep(self) -> bool {
        matches!(self, Off::Halted | Off::Blocked | Off::Asleep | Off::WokenFirst)
    }

    pub(super) fn state(self) -> State {
        match self {
            Off::Preempted => State::Preempted,
            Off::Halted => State::Halted,
            Off::Blocked => State::Blocked,
            Off::Asleep | Off::WokenFirst | Off::Ended => State::Unknown,
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
    pub(crate) fn host_event(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
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

    /// From `now_ns` on this thread's CPU serves an interrupt or softirq, or it goes on by itself.
    #[inline]
    pub fn interrupted(
        &mut self,
        now_ns: u64,
        interrupted: Option<Interruption>,
        cx: &mut Surroundings<'_, impl Sink>,
    ) {
        self.host_event(now_ns, cx);
        if self.off.is_some() {
            return;
        }
        self.close(now_ns, cx);
        self.interrupted = interrupted;
    }

    /// An NMI that took `length_ns` ended. A guest that it met stopped when it began.
    pub fn nmi(&mut self, now_ns: u64, length_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        if self.off.is_some() || !self.is_vcpu {
            return;
        }
        let from_ns = now_ns.saturating_sub(length_ns).max(self.ledger.since_ns);
        self.close(from_ns, cx);
        if self.mode == Mode::Guest {
            self.stop_guest();
        }
        let to_ns = now_ns.max(self.ledger.since_ns);
        let nmi = Interruption { by: HostInterrupt::Nmi, begins: true };
        cx.sink.interrupted(cx.me, &nmi, self.ledger.since_ns, to_ns);
        self.ledger.end(Label::Plain(State::Nmi), to_ns, cx);
        self.last_ns = to_ns;
    }

    /// The thread leaves its CPU (T13 to T15).
    pub(crate) fn switch_out(&mut self, now_ns: u64, ready: bool, cx: &mut Surroundings<'_, impl Sink>) {
        if self.off.is_some() {
            self.missed_switch(cx);
        }
        // The scheduler serves no interrupts on the way to the switch, so nothing of this CPU lies between.
        let woken_first = self.woken_running_ns.take().is_some_and(|woken_ns| woken_ns >= self.last_ns);
        self.host_event(now_ns, cx);
        self.close(now_ns, cx);
        self.interrupted = None;
        self.off = Some(match (ready, woken_first) {
            (true, _) => Off::Preempted,
            (false, true) => {
                self.waits(now_ns, cx);
                Off::WokenFirst
            }
            (false, false) => self.asleep(cx),
        });
        if !ready {
            self.woken_for_guest_ns = None;
        }
    }

    /// By its name it runs a vCPU of that number without KVM (T22): whenever it has a CPU, its guest runs.
    pub(super) fn translates(&mut self, vcpu: u32, cx: &mut Surroundings<'_, impl Sink>) {
        (self.is_vcpu, self.is_translated) = (true, true);
        self.vcpu_id = Some(vcpu);
        self.lvl = TracedLevel::L1;
        self.ledger.settle(TracedLevel::L1, cx);
    }

    /// What took it off its CPU just now was a signal or a debugger, so its guest had not halted.
    pub fn is_stopped(&mut self, cx: &mut Surroundings<'_, impl Sink>) {
        self.off = Some(Off::Blocked);
        cx.sink.stopped(cx.me);
    }

    /// It left its CPU just now to end: what follows is nobody's time.
    pub fn ends(&mut self) {
        self.gone = true;
        self.off = Some(Off::Ended);
    }

    /// Why it sleeps, if it does.
    fn asleep(&self, cx: &Surroundings<'_, impl Sink>) -> Off {
        match self.mode {
            _ if self.is_translated => Off::Halted,
            Mode::Kvm if !self.exit_pending && self.guest_halted() => Off::Halted,
            // Where exits are silent no halt will ever be told: a sleep is all that is known of it.
            Mode::Unknown if self.lossy && cx.seen.exit => Off::Asleep,
            _ => Off::Blocked,
        }
    }

    /// The thread is made ready by `waker` (T16); `last_cpu` is where it ran last, if the event says it.
    pub fn waking(&mut self, now_ns: u64, waker: Waker, last_cpu: Option<usize>, cx: &mut Surroundings<'_, impl Sink>) {
        let Some(off) = self.off else {
            self.woken_running_ns = Some(now_ns);
            self.waker = waker;
            return;
        };
        let asleep = off.is_asleep();
        if !asleep && self.doubt.is_none() {
            return;
        }
        if off == Off::WokenFirst {
            self.off = Some(self.asleep(cx));
        }
        let stayed = last_cpu.filter(|_| asleep).map(|last_cpu| self.cpu == Some(last_cpu));
        match self.doubt {
            None if stayed == Some(false) && self.cpu.is_some() => {
                // It ran where the trace does not look, and slept there.
                cx.doubts.unseen_switches += 1;
                let from_ns = self.last_ns;
                self.doubt = Some(Doubt { from_ns, until_ns: now_ns, here: true });
                self.settle_doubt(now_ns, true, cx);
            }
            // What is missing is the story of other CPUs, and it ran on none of them.
            Some(doubt) if stayed == Some(true) && !doubt.here => {
                self.doubt = (now_ns < doubt.until_ns).then_some(Doubt { from_ns: now_ns, ..doubt });
            }
            // Behind a gap it was asleep until now; if it was ready before, it has run unseen and nobody knows why it
            // slept.
            _ => self.settle_doubt(now_ns, !asleep || stayed == Some(false), cx),
        }
        let now_ns = self.close(now_ns, cx);
        self.waker = waker;
        self.is_ready(now_ns);
        self.waits(now_ns, cx);
    }

    fn is_ready(&mut self, now_ns: u64) {
        self.off = Some(Off::Waking);
        self.woken_ns = Some(now_ns);
        self.woken_for_guest_ns = Some(now_ns);
    }

    /// It was pre-empted and has not run yet, whatever comes.
    pub(crate) fn waits_still(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        self.close(now_ns, cx);
    }

    /// The thread gets a CPU (T17).
    pub(crate) fn switch_in(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        if self.off.is_none() && self.first_ns != now_ns {
            self.missed_switch(cx);
        }
        // Ready behind a gap: who woke it, or whether it has run and lost its CPU again, is not known.
        let doubtful = self.doubt.is_some();
        self.settle_doubt(now_ns, true, cx);
        self.doubt = None;
        match self.off.filter(|_| !doubtful) {
            Some(Off::WokenFirst) => self.is_ready(self.ledger.since_ns),
            Some(off) if off.is_asleep() && cx.seen.waking => {
                // Who woke it, and how long it then waited, is not in the trace. No cost contains it either way.
                self.ledger.sums.off_ns += now_ns.saturating_sub(self.ledger.since_ns);
                self.ledger.end(Label::Plain(State::Unknown), now_ns.max(self.ledger.since_ns), cx);
            }
            _ => {}
        }
        let now_ns = self.close(now_ns, cx);
        self.off = None;
        if self.is_translated {
            self.mode = Mode::Translated;
        }
        if let Some(woken_ns) = self.woken_ns.take() {
            cx.sink.ran_after_waking(cx.me, self.waker, self.cpu, woken_ns, now_ns);
        }
    }

    /// `kvm_vcpu_wakeup` (T18): of the last `length_ns`, what came before the first switch-out was polling. Where no switch-out was seen and
    /// KVM says that it `waited`, it slept: how much of that it had polled before is not told.
    pub(crate) fn vcpu_wakeup(
        &mut self,
        now_ns: u64,
        (length_ns, waited): (u64, bool),
        cx: &mut Surroundings<'_, impl Sink>,
    ) {
        if self.off.is_some() || self.mode != Mode::Kvm || self.exit_pending || !self.guest_halted() {
            return;
        }
        let now_ns = self.close(now_ns, cx);
        self.ledger.halted_since(now_ns.saturating_sub(length_ns), waited);
    }

    /// T24: the guest of L0 itself is entered after it halted, and the recording has neither switches nor wake-ups, so that nothing else tells
    /// what KVM did: it waited for something to do.
    #[inline]
    pub(super) fn halted_until(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        if cx.seen.switches || cx.seen.wakeup || self.off.is_some() || self.mode != Mode::Kvm || self.exit_pending {
            return;
        }
        if let Some(open) = self.open_exit.filter(|open| open.class == Class::Halt)
            && matches!(open.exit.level, TracedLevel::Early | TracedLevel::L1)
        {
            self.close(now_ns, cx);
            self.ledger.halted_since(open.exit.at_ns, true);
            // What KVM itself took of that is not told.
            self.finish_exit(None, cx);
        }
    }

    #[inline]
    fn guest_halted(&self) -> bool {
        self.last_exit.is_some_and(|(reason, _)| reason.class() == Class::Halt)
    }

    /// Events of a CPU that it is or may be on were lost between `from_ns` and `until_ns` (T19); `here`: of the one where
    /// it was seen last.
    pub fn lost(&mut self, from_ns: u64, until_ns: u64, here: bool, cx: &mut Surroundings<'_, impl Sink>) {
        if self.off.is_none() {
            self.lossy = true;
            self.forget(from_ns, cx);
            self.drop_position(cx);
            return;
        }
        // It may have run on that CPU unseen; its next event will tell more.
        let from_ns = from_ns.max(self.ledger.since_ns);
        let known = self.doubt.unwrap_or(Doubt { from_ns, until_ns: from_ns, here: false });
        self.doubt = Some(Doubt { until_ns: known.until_ns.max(until_ns), here: known.here || here, ..known });
    }

    /// It is on a CPU and nobody told since when: what it did meanwhile is lost.
    pub(crate) fn missed_switch(&mut self, cx: &mut Surroundings<'_, impl Sink>) {
        cx.doubts.unseen_switches += 1;
        self.lossy = true;
        self.forget(self.doubt.map_or(self.last_ns, |doubt| doubt.from_ns), cx);
        self.drop_position(cx);
    }

    /// From `from_ns` on nothing is known: the piece ends there, and the thread's mode is unknown.
    pub(super) fn forget(&mut self, from_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        self.close(from_ns.max(self.ledger.since_ns), cx);
        self.drop_polling(cx);
        self.ledger.settle(self.level_dropped(), cx);
        self.mode = Mode::Unknown;
        self.off = None;
        self.doubt = None;
        self.exit_pending = false;
        self.interrupted = None;
        self.forget_waking(cx);
    }

    /// It waits for a CPU from now on; most threads run no vCPU, and who keeps them waiting is not asked for.
    fn waits(&self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        if self.is_vcpu {
            cx.sink.waits(cx.me, Some(now_ns));
        }
    }

    fn forget_waking(&mut self, cx: &mut Surroundings<'_, impl Sink>) {
        cx.sink.waits(cx.me, None);
        self.woken_ns = None;
        self.woken_for_guest_ns = None;
        self.woken_running_ns = None;
    }

    /// The event that would have told polling from handling is lost.
    fn drop_polling(&mut self, cx: &Surroundings<'_, impl Sink>) {
        if cx.seen.wakeup && self.guest_halted() {
            self.ledger.handled_or_polled();
        }
    }

    /// The next event of a thread that may have run unseen in a gap. The gap is unknown; so is what follows if nothing
    /// tells that it slept (`all`). A gap that is not over stays one.
    fn settle_doubt(&mut self, now_ns: u64, all: bool, cx: &mut Surroundings<'_, impl Sink>) {
        let Some(doubt) = self.doubt.take() else { return };
        self.lossy = true;
        self.drop_polling(cx);
        self.drop_position(cx);
        self.close(doubt.from_ns.max(self.ledger.since_ns), cx);
        let until_ns = if all { now_ns } else { doubt.until_ns.min(now_ns) };
        self.ledger.end(Label::Plain(State::Unknown), until_ns.max(self.ledger.since_ns), cx);
        self.mode = Mode::Unknown;
        self.forget_waking(cx);
        self.doubt = (now_ns < doubt.until_ns).then_some(Doubt { from_ns: now_ns, ..doubt });
    }
}
