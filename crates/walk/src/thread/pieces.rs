//! How the pieces of a thread's time end, and with them its exits.

use super::{Label, Mode, PendingEntry, Surroundings, Thread, TracedLevel};
use crate::state::State;
use crate::walk::Sink;

impl Thread {
    /// Everything a KVM event of this thread starts with: it is on a CPU, and the piece before it ends.
    #[inline]
    pub(super) fn arrive(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) -> u64 {
        self.is_on_cpu(cx);
        self.close(now_ns, cx)
    }

    /// A KVM event of this thread happens: it is on a CPU.
    #[inline]
    pub(super) fn is_on_cpu(&mut self, cx: &mut Surroundings<'_, impl Sink>) {
        if self.off.is_some() {
            // Its switch-in was not seen; nothing tells how long it has been running.
            self.missed_switch(cx);
        }
        self.is_vcpu = true;
    }

    /// An event of KVM's own work: whatever ran before ran at `level`.
    #[inline]
    pub(super) fn enter_kvm(&mut self, level: TracedLevel, cx: &mut Surroundings<'_, impl Sink>) {
        if self.mode != Mode::Kvm {
            self.mode = Mode::Kvm;
            self.ledger.settle(level, cx);
        }
    }

    /// The state of the piece that ends at `now_ns`.
    #[inline]
    pub(super) fn label(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) -> Label {
        if self.off.is_some() || self.interrupted.is_some() {
            return Label::Plain(self.state_aside(now_ns, cx));
        }
        match self.mode {
            Mode::Guest | Mode::Translated => Label::Guest,
            Mode::Kvm => Label::Handling,
            Mode::User => Label::Plain(State::Userspace),
            Mode::Unknown => Label::Plain(State::Unknown),
        }
    }

    /// The state of a thread that is off its CPU, or interrupted there: who interrupts it is told.
    #[inline(never)]
    pub(super) fn state_aside(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) -> State {
        match (self.off, &mut self.interrupted) {
            (Some(off), _) => off.state(),
            // Until an event tells that it runs a guest, its time is nobody's.
            (None, None) => State::Unknown,
            (None, Some(_)) if !self.is_vcpu => State::Unknown,
            // Whatever it did before: its guest does not run meanwhile.
            (None, Some(interruption)) => {
                cx.sink.interrupted(cx.me, interruption, self.ledger.since_ns, now_ns);
                interruption.begins = false;
                interruption.by.state()
            }
        }
    }

    /// Ends the piece at `now_ns`, and returns the time to use: never before the piece's start.
    #[inline]
    pub(super) fn close(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) -> u64 {
        let now_ns = if now_ns < self.ledger.since_ns {
            cx.doubts.clock_skew += 1;
            self.ledger.since_ns
        } else {
            now_ns
        };
        let label = self.label(now_ns, cx);
        self.ledger.end(label, now_ns, cx);
        self.last_ns = now_ns;
        now_ns
    }

    /// Ends what no longer can be followed: the open exit, the chain, the level.
    pub(super) fn drop_position(&mut self, cx: &mut Surroundings<'_, impl Sink>) {
        let level = self.level_dropped();
        self.ledger.settle(level, cx);
        if let Some(open) = self.open_exit.as_mut().filter(|open| open.unresolved) {
            open.exit.level = level;
        }
        self.finish_exit(None, cx);
        if let Some(chain) = &mut self.chain {
            chain.cut_off();
        }
        self.give_chain(cx);
        self.lvl = TracedLevel::Lost;
        self.pend = PendingEntry::None;
        self.last_exit = None;
    }

    /// T7: what passed since the thread's last event is unknown.
    pub(super) fn unknown_since_last(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        let since_ns = self.ledger.since_ns;
        let last_ns = self.last_ns.clamp(since_ns, now_ns.max(since_ns));
        self.close(last_ns, cx);
        self.ledger.end(Label::Plain(State::Unknown), now_ns.max(last_ns), cx);
    }

    /// The open exit is over: the guest was entered at `entered_ns`, if that was seen.
    #[inline(always)]
    pub(super) fn finish_exit(&mut self, entered_ns: Option<u64>, cx: &mut Surroundings<'_, impl Sink>) {
        let Some(open) = &mut self.open_exit else { return };
        if !self.ledger.is_settled() {
            self.ledger.settle(open.exit.level, cx);
        }
        open.exit.cost_ns = entered_ns.map(|now_ns| {
            let off_ns = self.ledger.sums.off_ns - open.off_before_ns;
            (now_ns - open.exit.at_ns).saturating_sub(off_ns)
        });
        cx.sink.exit(cx.me, &open.exit);
        self.open_exit = None;
    }
}
