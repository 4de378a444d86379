//! What the events of nesting do to a thread: exits that the guest hypervisor gets, and entries that it asks for
//! (T8 to T11).

use super::chain::OpenChain;
use super::exit::Position;
use super::ledger::Sums;
use super::{Class, Handled, Mode, PendingEntry, Reason, Surroundings, Thread, TracedLevel};
use crate::walk::Sink;

impl Thread {
    /// `kvm_nested_vmexit` (T8).
    pub fn nested_vmexit(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        self.first_nested_sign.get_or_insert(false);
        self.arrive(now_ns, cx);
        self.resolve(Position::NestedVmexit, cx);
        self.lvl = self.contexts.level();
        self.enter_kvm(self.lvl, cx);
    }

    /// `kvm_nested_vmexit_inject` (T9).
    pub fn inject(&mut self, now_ns: u64, reason: Reason, cx: &mut Surroundings<'_, impl Sink>) {
        self.first_nested_sign.get_or_insert(false);
        let now_ns = self.arrive(now_ns, cx);
        self.resolve(Position::Inject, cx);
        self.enter_kvm(TracedLevel::at(2), cx);
        self.give_chain(cx);
        let (start_ns, off_ns) = match &mut self.open_exit {
            Some(open) => {
                open.exit.handled = Handled::Reflected;
                if open.exit.level.is_nested() && open.class == Class::EntryRequest {
                    self.contexts.asks_for_child();
                }
                (open.exit.at_ns, open.off_before_ns)
            }
            None => (now_ns, self.ledger.sums.off_ns),
        };
        self.lvl = TracedLevel::L1;
        self.pend = PendingEntry::None;
        let before = Sums { off_ns, ..self.ledger.sums };
        self.chain = Some(Box::new(OpenChain::begin(reason, start_ns, before, self.contexts.vmcb())));
    }

    /// A nested entry is asked for (T10); `vmcb` names the nested guest.
    pub fn nested_entry(
        &mut self,
        now_ns: u64,
        nested_rip: Option<u64>,
        vmcb: Option<u64>,
        cx: &mut Surroundings<'_, impl Sink>,
    ) {
        self.first_nested_sign.get_or_insert(!self.lossy);
        self.arrive(now_ns, cx);
        self.resolve(Position::Other, cx);
        self.enter_kvm(TracedLevel::L1, cx);
        let asked_by_exit = self.last_exit.is_some_and(|(reason, _)| reason.class() == Class::EntryRequest);
        if !asked_by_exit {
            cx.doubts.restored += 1;
        }
        self.pend = PendingEntry::Asked(nested_rip);
        if let Some(vmcb) = vmcb {
            self.contexts.enter(vmcb);
        }
    }

    /// True while it runs the nested guest behind `vmcb`, or L0 works on an exit that the guest hypervisor has not got.
    pub fn is_inside(&self, vmcb: u64) -> bool {
        self.contexts.vmcb() == Some(vmcb) && self.lvl.is_nested()
    }

    /// Another thread was asked to enter the nested guest behind `vmcb`: if it left this one, its chain is closed late.
    pub fn overtaken(&mut self, vmcb: u64) {
        if let Some(chain) = &mut self.chain {
            chain.overtaken(vmcb);
        }
    }

    /// SVM's intercepts of the nested guest: where no event tells the request, they do.
    pub(crate) fn nested_intercepts(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        self.arrive(now_ns, cx);
        if !matches!(self.pend, PendingEntry::Asked(Some(_))) {
            self.pend = PendingEntry::Asked(None);
        }
    }

    /// `kvm_nested_vmenter_failed` (T11).
    pub(crate) fn nested_entry_failed(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        let now_ns = self.arrive(now_ns, cx);
        cx.doubts.refused_entries += 1;
        if self.mode == Mode::Guest {
            // The hardware refused.
            self.ledger.never_ran();
            self.enter_kvm(TracedLevel::L1, cx);
            self.last_ns = now_ns;
            if let Some(chain) = &mut self.chain {
                chain.reopen();
            }
        }
        self.lvl = TracedLevel::L1;
        self.pend = PendingEntry::None;
    }

    /// Ends the chain, closed or censored.
    pub(super) fn give_chain(&mut self, cx: &mut Surroundings<'_, impl Sink>) {
        if let Some(mut chain) = self.chain.take() {
            cx.sink.chain(cx.me, chain.finish());
        }
    }
}
