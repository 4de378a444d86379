//! How long did each stage of a virtual interrupt take, and of a guest's timer?
//!
//! ```text
//! host irq --notify--> kvm_msi_set_irq --accept--> kvm_apic_accept_irq --pending--> kvm_inj_virq --enter--> kvm_entry --eoi--> kvm_eoi
//!                                                       |--wake--> the thread has a CPU, or its guest has been stopped
//!                                                       |--masked--> interrupt-window exit, behind which it is injected
//!
//! exit by the write --program--> host timer set ... deadline --expire--> hrtimer, or exit 52 --deliver--> kvm_inj_virq --enter--> kvm_entry
//! ```
//! In:  events, as the walk hands them on. Out: each stage as its end is seen, see [`Told`]; summed up in [`sums`].
//! What a guest's own trace adds, the stages behind the entry, is found where both are on one time line, by whoever relates them.
//! Events are those of arch/x86/kvm/{lapic,x86,irq_comm}.c and kernel/time/hrtimer.c, Linux 6.12.

pub(crate) mod flights;
pub mod sums;
pub(crate) mod timers;

base::named! {
    /// A stage of a virtual interrupt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum IrqStage {
        /// From the host's interrupt handler to KVM being told: `kvm_msi_set_irq`, `kvm_set_irq`.
        Notify = "notify",
        /// From there until the vCPU's local APIC accepted it.
        Accept = "accept",
        /// From accepted until the vCPU's thread had a CPU, or its guest, which ran elsewhere, was stopped.
        Wake = "wake",
        /// From accepted until the guest took interrupts again, where KVM had to wait for that.
        Masked = "masked",
        /// From accepted to first injected.
        Pending = "pending",
        /// From first injected to the entry with which the guest got it.
        Enter = "enter",
        /// From that entry to the guest's handler.
        Guest = "guest",
        /// From that entry until KVM learned of its end.
        Eoi = "eoi",
    }
}

base::named! {
    /// A stage of a timer interrupt: how much later than asked for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum TimerStage {
        /// From the exit by which the guest set its timer until the host's was set. Not a part of the lateness.
        Program = "program",
        /// How late the host's timer was.
        Expire = "expire",
        /// From there until the interrupt was injected.
        Deliver = "deliver",
        /// From injected to the entry with which the guest got it.
        Enter = "enter",
        /// From that entry to the guest's own timer handler.
        Guest = "guest",
        /// From there until the thread ran that it woke.
        Thread = "thread",
        /// What the stages leave of a lateness that was measured in another way.
        Residual = "residual",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A stage that took from one time to another.
    Irq(IrqStage, u64, u64),
    Timer(TimerStage, u64, u64),
    /// Accepted, and the entry with which the guest got it.
    Delivered {
        /// When the local APIC accepted it.
        accepted_ns: u64,
        /// When the guest ran with it.
        entered_ns: u64,
    },
    /// Accepted while it was pending: the APIC's IRR holds one of each vector.
    Merged(u64),
    /// The processor delivered it without an injection: APICv, AVIC.
    Posted(u64),
    /// KVM's own measure of a timer's lateness is none that the stages allow.
    Contradicted(u64),
    /// The guest's counter was changed between setting a timer and its interrupt, so that its deadline is none of the host's.
    Moved(u64),
}
