//! How long does a virtual interrupt wait: from the local APIC's accepting it to the guest's running with it?
//!
//! ```text
//! kvm_apic_accept_irq (any thread, names the vCPU) -> kvm_inj_virq (the vCPU's thread) -> kvm_entry
//! ```
//! First in, first out per vCPU and vector. An accept while the vector is pending is merged, as the APIC's IRR merges
//! it. With APICv or AVIC there is no injection event; then there is nothing to match and no row.
//! Trap: the field `apicid` of `kvm_apic_accept_irq` holds vcpu_id (`__apic_accept_irq` in arch/x86/kvm/lapic.c,
//! Linux 6.12), and no event names the VM: where two VMs have a vCPU of that number, the accept is left out and counted.

/// One interrupt that reached its guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// Its vector.
    pub vector: u8,
    /// When the local APIC accepted it.
    pub accepted_ns: u64,
    /// When KVM put it into the guest's state.
    pub injected_ns: u64,
    /// When the guest ran with it.
    pub entered_ns: u64,
}

/// Interrupts under way.
#[derive(Debug, Clone, Default)]
pub struct Interrupts {
    /// By vCPU thread.
    vcpus: Vec<Pending>,
    /// Accepts of a vector that was pending already.
    pub merged: u64,
    /// Accepts of a vCPU number that several VMs have, or that no thread is known for.
    pub ambiguous: u64,
}

/// Interrupts under way to one vCPU.
#[derive(Debug, Clone, Default)]
struct Pending {
    /// By vector: when it was accepted, if it was not injected yet. Empty until the first.
    accepted: Vec<Option<u64>>,
    /// Injected, not entered: vector, accepted, injected.
    injected: Vec<(u8, u64, u64)>,
}

/// Different vectors.
const VECTORS: usize = 256;

impl Interrupts {
    /// The APIC of `thread`'s vCPU accepted `vector`.
    pub fn accept(&mut self, thread: usize, vector: u8, now_ns: u64) {
        if thread >= self.vcpus.len() {
            self.vcpus.resize_with(thread + 1, Pending::default);
        }
        let accepted = &mut self.vcpus[thread].accepted;
        if accepted.is_empty() {
            accepted.resize(VECTORS, None);
        }
        let pending = &mut accepted[usize::from(vector)];
        self.merged += u64::from(pending.is_some());
        pending.get_or_insert(now_ns);
    }

    /// KVM injects `vector` on `thread`.
    pub fn inject(&mut self, thread: usize, vector: u8, now_ns: u64) {
        let Some(pending) = self.vcpus.get_mut(thread) else { return };
        let accepted_ns = pending.accepted.get_mut(usize::from(vector)).and_then(Option::take);
        pending.injected.extend(accepted_ns.map(|accepted_ns| (vector, accepted_ns, now_ns)));
    }

    /// `thread` enters its guest: what was injected is delivered.
    #[inline(always)]
    pub fn enter(&mut self, thread: usize, entered_ns: u64, mut deliver: impl FnMut(Delivered)) {
        let Some(pending) = self.vcpus.get_mut(thread).filter(|pending| !pending.injected.is_empty()) else { return };
        for (vector, accepted_ns, injected_ns) in pending.injected.drain(..) {
            deliver(Delivered { vector, accepted_ns, injected_ns, entered_ns });
        }
    }

    /// Events were lost: what is under way can no longer be followed.
    pub fn forget(&mut self) {
        self.vcpus.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_followed_from_accept_to_entry_and_a_second_accept_is_merged() {
        let mut interrupts = Interrupts::default();
        let mut delivered = Vec::new();
        interrupts.accept(3, 0xec, 100);
        interrupts.accept(3, 0xec, 150);
        interrupts.inject(3, 0xfd, 160);
        interrupts.enter(3, 170, |one| delivered.push(one));
        interrupts.inject(3, 0xec, 200);
        interrupts.enter(3, 230, |one| delivered.push(one));
        interrupts.enter(3, 400, |one| delivered.push(one));
        assert_eq!(delivered, [Delivered { vector: 0xec, accepted_ns: 100, injected_ns: 200, entered_ns: 230 }]);
        assert_eq!(interrupts.merged, 1);
    }
}
