//! Where the fields of an event stand: places in the lists of `ROWS`, by what the event is.

/// Places of the fields of `kvm_exit` and `kvm_nested_vmexit`.
pub mod exit {
    /// Reason as a number.
    pub const REASON: usize = 0;
    pub const RIP: usize = 1;
    pub const ISA: usize = 2;
    /// VMX exit qualification, SVM EXITINFO1.
    pub(crate) const INFO1: usize = 3;
    pub const VCPU: usize = 4;
    /// Reason as text, from text traces.
    pub const REASON_NAME: usize = 5;
    /// VMX: which exception or interrupt it was.
    pub(crate) const INTR_INFO: usize = 6;
}

/// Places of the fields of `kvm_entry`.
pub mod entry {
    pub const VCPU: usize = 0;
    pub const RIP: usize = 1;
}

/// Places of the fields of a nested entry.
pub mod nested_entry {
    /// Where the nested guest will run.
    pub(crate) const NESTED_RIP: usize = 0;
    /// Address of its control block: vmcb12 or vmcs12.
    pub const VMCB: usize = 1;
}

/// Places of the fields of `kvm_nested_vmexit_inject`.
pub mod inject {
    /// Reason as a number.
    pub const REASON: usize = 0;
    pub const ISA: usize = 1;
    pub const REASON_NAME: usize = 2;
}

/// Places of the fields of `sched_switch`.
pub mod switch {
    pub const PREV_TID: usize = 0;
    pub(crate) const PREV_STATE: usize = 1;
    pub const NEXT_TID: usize = 2;
    pub const NEXT_COMM: usize = 3;
    /// Name of the task that leaves.
    pub const PREV_COMM: usize = 4;
    /// State as letters, from text traces.
    pub(crate) const PREV_STATE_TEXT: usize = 5;
}

/// Places of the fields of `sched_waking`.
pub mod waking {
    /// Task that is made ready.
    pub const TID: usize = 0;
    /// CPU that it ran on last: the event comes before the scheduler chooses one for it (try_to_wake_up in
    /// kernel/sched/core.c, Linux 6.12). Not asked for where `sched_wakeup` stands in, which comes after.
    pub(crate) const LAST_CPU: usize = 1;
}

/// Places of the fields of `irq_handler_entry`.
pub mod irq {
    /// The interrupt's number.
    pub const NUMBER: usize = 0;
    /// What its handler is called, as in /proc/interrupts.
    pub const NAME: usize = 1;
}

/// Places of the fields of `softirq_entry`.
pub mod softirq {
    pub const NUMBER: usize = 0;
}

/// Places of the fields of `kvm_apic`.
pub mod apic {
    /// Offset of the register.
    pub(crate) const REGISTER: usize = 0;
    /// Whether it was written.
    pub const WRITE: usize = 1;
    /// The register as the kernel names it, from text traces.
    pub(crate) const REGISTER_NAME: usize = 2;
}

/// Places of the fields of `kvm_apic_accept_irq` and `kvm_apicv_accept_irq`.
pub mod accept {
    /// The vCPU's number, whatever the field is called.
    pub const VCPU: usize = 0;
    pub const VECTOR: usize = 1;
}

/// Places of the fields of `kvm_inj_virq`.
pub(crate) mod inject_virq {
    pub(crate) const VECTOR: usize = 0;
    /// Whether it was injected before.
    pub(crate) const AGAIN: usize = 1;
}

/// Places of the fields of `kvm_set_irq` and `kvm_msi_set_irq`.
pub(crate) mod set_irq {
    /// Whether the line rises or falls; messages have none.
    pub(crate) const LEVEL: usize = 0;
    /// The message, whose lowest 8 bits are the vector.
    pub(crate) const DATA: usize = 1;
    /// The vector, from text traces.
    pub(crate) const VECTOR: usize = 2;
}

/// Places of the fields of `hrtimer_start` and `hrtimer_expire_entry`.
pub mod hrtimer {
    /// Address of the timer.
    pub const TIMER: usize = 0;
    /// CLOCK_MONOTONIC when it shall expire, or when the interrupt began in which it did.
    pub const NS: usize = 1;
}

/// Places of the fields of `kvm_write_tsc_offset`.
pub mod tsc_offset {
    /// Number of the vCPU.
    pub const VCPU: usize = 0;
    /// Guest's counter minus the host's, up to now.
    pub const PREVIOUS: usize = 1;
    pub const NEXT: usize = 2;
}

/// Places of the fields of `kvm_msr`.
pub mod msr {
    pub const NUMBER: usize = 0;
    /// Whether it was written.
    pub const WRITE: usize = 1;
    pub const VALUE: usize = 2;
}

/// Places of the fields of `kvm_emulate_insn`.
pub mod emulate {
    /// Whether it could not be emulated.
    pub(crate) const FAILED: usize = 0;
    pub(crate) const RIP: usize = 1;
    /// The instruction's bytes as text, from text traces.
    pub(crate) const BYTES: usize = 2;
}

/// Places of the fields of `kvm_inj_exception`.
pub mod exception {
    pub(crate) const VECTOR: usize = 0;
    /// The exception as the kernel names it, from text traces.
    pub(crate) const NAME: usize = 1;
}
