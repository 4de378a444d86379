//! What the commonest exits and events of KVM mean, in a line: what to look at first.
//!
//! Sources: Intel SDM vol. 3, appendix C; AMD APM vol. 2, appendix C; arch/x86/kvm/trace.h and include/trace/events/kvm.h, Linux 6.12.

/// A name, as any program prints it, and what it means.
const MEANINGS: &[(&[&str], &str)] = &[
    (
        &["HLT", "hlt", "kvm_halt_wakeup", "halt_exits", "halt_wakeup"],
        "the guest has nothing to do: idle, or it wakes too often",
    ),
    (&["PAUSE_INSTRUCTION", "pause", "PAUSE"], "a vCPU spins for a lock, often one whose holder has no CPU"),
    (
        &["EXTERNAL_INTERRUPT", "interrupt", "INTR", "intr", "irq_exits"],
        "interrupts of the host: devices, timers, other CPUs",
    ),
    (
        &["MSR_WRITE", "MSR_READ", "msr", "MSR", "kvm_msr"],
        "most often the guest's timers and interrupts of one vCPU to another",
    ),
    (&["kvm_hv_timer_state", "PREEMPTION_TIMER"], "timers of the guest, such as its tick, which nohz=off keeps up"),
    (
        &["EPT_VIOLATION", "NPF", "npf", "kvm_page_fault", "pf_taken", "pf_fixed"],
        "memory that the host has to map: first touches, ballooning, swapping",
    ),
    (
        &["EPT_MISCONFIG", "kvm_mmio", "mmio_exits"],
        "accesses to memory-mapped devices: emulated ones, or doorbells of virtio",
    ),
    (&["IO_INSTRUCTION", "io", "IOIO", "kvm_pio", "io_exits"], "accesses to ports of emulated devices"),
    (&["kvm_userspace_exit"], "exits that go on to the VMM: emulated devices"),
    (&["VMCALL", "vmmcall", "kvm_hypercall", "hypercalls"], "hypercalls, such as kicks of halted vCPUs"),
    (&["CPUID", "cpuid", "kvm_cpuid"], "the guest asks for its CPU: a serializing instruction in a loop"),
    (&["APIC_WRITE", "APIC_ACCESS", "kvm_apic"], "accesses to the local APIC: without APICv or x2APIC each is an exit"),
    (&["EXCEPTION_NMI", "kvm_inj_exception"], "exceptions of the guest, or NMIs of the host's profiler"),
    (
        &[
            "VMREAD",
            "VMWRITE",
            "VMRESUME",
            "VMLAUNCH",
            "VMPTRLD",
            "vmrun",
            "VMRUN",
            "kvm_nested_vmenter",
            "kvm_nested_vmexit",
        ],
        "the guest is a hypervisor: each exit of its guests costs several",
    ),
    (
        &["halt_poll_fail_ns"],
        "KVM polled for halted vCPUs that did not wake meanwhile: CPU time for nothing, which halt_poll_ns bounds",
    ),
    (&["halt_poll_success_ns"], "KVM polled for halted vCPUs that woke meanwhile: CPU time for shorter wake-ups"),
    (&["kvm_fpu"], "KVM_RUN begins or ends: twice for each return to the VMM"),
];

/// What a name means, where it is a common one.
pub(super) fn meaning(name: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(names, _)| names.contains(&name)).map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_name_has_one_meaning() {
        let names: Vec<&str> = MEANINGS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(meaning("HLT").is_some() && meaning("WBINVD").is_none());
    }
}
