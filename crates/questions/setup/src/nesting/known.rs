//! What is known of the parameters of KVM's modules.
//!
//! Parameters are enumerated generically; a row here attaches knowledge by name, and names that no row knows are listed
//! without. Defaults and meanings: arch/x86/kvm/{x86,vmx/vmx,vmx/nested,svm/svm,svm/avic,mmu/mmu}.c and
//! virt/kvm/kvm_main.c, Linux 6.12; Documentation/admin-guide/kernel-parameters.txt (kvm.*, kvm-intel.*, kvm-amd.*).

#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Such as `kvm_intel`.
    pub module: &'static str,
    /// Such as `enable_shadow_vmcs`.
    pub name: &'static str,
    /// The feature it decides in table `features`; empty: it decides none and stands in table `parameters` alone.
    pub feature: &'static str,
    /// Its value when nobody sets it.
    pub default: &'static str,
    /// How the file's line reads.
    pub reads: Reads,
    /// The flag of `/proc/cpuinfo` without which the processor cannot; empty: none is needed, or none shows it.
    pub flag: &'static str,
    pub meaning: &'static str,
    /// What happens without it; empty: nothing that costs exits.
    pub without: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// `Y` or `1`, `N` or `0`.
    Switch,
    /// On unless it is 0.
    Number,
    /// On if it is one of these words.
    Words(&'static [&'static str]),
}

const fn switch(
    module: &'static str,
    name: &'static str,
    feature: &'static str,
    flag: &'static str,
    meaning: &'static str,
    without: &'static str,
) -> Known {
    Known { module, name, feature, default: "Y", reads: Reads::Switch, flag, meaning, without }
}

const fn number(
    module: &'static str,
    name: &'static str,
    feature: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Known {
    Known { module, name, feature, default, reads: Reads::Number, flag: "", meaning, without: "" }
}

const INTEL: &str = "kvm_intel";
const AMD: &str = "kvm_amd";
const KVM: &str = "kvm";

/// Every parameter with knowledge, in the order in which features are shown.
#[rustfmt::skip]
pub const KNOWN: &[Known] = &[
    // VMX.
    switch(INTEL, "nested", "nested", "", "guests may run nested guests", "guests have no VMX"),
    switch(INTEL, "enable_shadow_vmcs", "vmcs_shadowing", "shadow_vmcs", "a guest hypervisor's VMREAD and VMWRITE need no exit", "each VMREAD and VMWRITE of a guest hypervisor exits: 8 to 16 more exits per exit of its guest"),
    switch(INTEL, "enlightened_vmcs", "enlightened_vmcs", "", "on Hyper-V, the VMCS is plain memory shared by both sides", "on Hyper-V, each VMREAD and VMWRITE exits: 20,700 cycles for a CPUID of L2 instead of 8,900"),
    switch(INTEL, "ept", "ept", "ept", "second-level page tables in hardware", "shadow paging: up to 4n+8 world switches per fault of a nested guest with n levels of page tables"),
    switch(INTEL, "eptad", "ept_ad", "ept_ad", "accessed and dirty bits in second-level page tables", "KVM write-protects pages to find out which were used"),
    switch(INTEL, "vpid", "vpid", "vpid", "TLB entries are tagged per vCPU", "the TLB is flushed at each entry and exit"),
    switch(INTEL, "unrestricted_guest", "unrestricted_guest", "unrestricted_guest", "guests run real mode in hardware", "real mode is emulated: guest firmware is slow"),
    switch(INTEL, "enable_apicv", "apicv", "apicv", "local APIC and interrupt delivery in hardware", "exits for APIC accesses, EOI and interrupt injection"),
    switch(INTEL, "enable_ipiv", "ipi_virtualization", "ipi_virt", "IPIs between vCPUs in hardware (Sapphire Rapids and later)", "an exit per IPI that a guest sends"),
    switch(INTEL, "enable_device_posted_irqs", "device_posted_interrupts", "", "interrupts of assigned devices reach the guest without an exit", "exits for interrupts of assigned devices"),
    switch(INTEL, "flexpriority", "tpr_shadow", "flexpriority", "task-priority register in hardware", "exits when a guest changes its task priority"),
    switch(INTEL, "preemption_timer", "preemption_timer", "preemption_timer", "guest timers use the VMX preemption timer", "guest timers need a host timer and its interrupt"),
    switch(INTEL, "vnmi", "virtual_nmi", "vnmi", "virtual NMIs in hardware", "additional exits for NMIs"),
    switch(INTEL, "pml", "page_modification_log", "pml", "hardware logs the pages that a guest writes", "write faults during dirty logging, as in a migration"),
    Known { reads: Reads::Number, default: "128", ..switch(INTEL, "ple_gap", "pause_loop_exiting", "ple", "a spinning vCPU yields (0 is off; pollers such as DPDK want it off)", "") },
    number(INTEL, "ple_window", "", "4096", "cycles that a vCPU may spin before it yields"),
    Known { reads: Reads::Words(&["cond", "always"]), default: "auto", ..switch(INTEL, "vmentry_l1d_flush", "l1d_flush", "", "the L1 data cache is flushed before VM entries, against L1TF", "") },
    Known { default: "N", ..switch(INTEL, "nested_early_check", "", "", "checks a guest hypervisor's VMCS with a test entry", "") },
    // SVM.
    switch(AMD, "nested", "nested", "", "guests may run nested guests", "guests have no SVM"),
    switch(AMD, "npt", "npt", "npt", "second-level page tables in hardware", "shadow paging: up to 4n+8 world switches per fault of a nested guest with n levels of page tables"),
    Known { default: "N, auto since 6.18", ..switch(AMD, "avic", "avic", "avic", "local APIC, IPIs and interrupt delivery in hardware", "exits for APIC accesses, IPIs, EOI and interrupt injection") },
    switch(AMD, "vls", "virtual_vmload_vmsave", "v_vmsave_vmload", "a guest hypervisor's VMLOAD and VMSAVE need no exit", "two more exits per exit of a nested guest"),
    switch(AMD, "vgif", "virtual_gif", "vgif", "a guest hypervisor's STGI and CLGI need no exit", "two more exits per exit of a nested guest"),
    switch(AMD, "vnmi", "virtual_nmi", "vnmi", "virtual NMIs in hardware", "additional exits for NMIs"),
    switch(AMD, "nrips", "next_rip", "nrip_save", "hardware provides the address of the next instruction", "KVM decodes exiting instructions in software"),
    switch(AMD, "lbrv", "lbr_virtualization", "lbrv", "last branch records in guests", ""),
    switch(AMD, "tsc_scaling", "tsc_scaling", "tsc_scale", "a guest's TSC may run at another frequency", "after a migration to a CPU of another frequency, each RDTSC exits"),
    Known { reads: Reads::Number, default: "3000", ..switch(AMD, "pause_filter_count", "pause_loop_exiting", "pausefilter", "a spinning vCPU yields (0 is off; pollers such as DPDK want it off)", "") },
    number(AMD, "pause_filter_thresh", "", "128", "cycles between pauses that still count as one loop"),
    // Both.
    number(KVM, "halt_poll_ns", "halt_polling", "200000", "how long KVM polls before a halted vCPU sleeps: faster wake-ups for more CPU time"),
    number(KVM, "halt_poll_ns_grow", "", "2", "factor by which that time grows"),
    number(KVM, "halt_poll_ns_grow_start", "", "10000", "where it starts to grow"),
    number(KVM, "halt_poll_ns_shrink", "", "2", "divisor by which it shrinks"),
    switch(KVM, "tdp_mmu", "tdp_mmu", "", "many vCPUs update second-level page tables in parallel", "page faults of one VM are serialized"),
    switch(KVM, "eager_page_split", "eager_page_split", "", "huge pages are split before dirty logging starts", "vCPUs split huge pages during a migration"),
    Known { default: "auto", ..switch(KVM, "nx_huge_pages", "nx_huge_pages", "", "executable huge pages are split, against the iTLB-multihit erratum of older Intel CPUs", "") },
    switch(KVM, "mmio_caching", "mmio_caching", "", "hardware distinguishes an access to an emulated device from a page fault", "each access to an emulated device first searches the memory slots"),
    switch(KVM, "lapic_timer_advance", "lapic_timer_advance", "", "guest timers fire early by the time that a VM entry takes", "guest timers fire late"),
    switch(KVM, "enable_pmu", "vpmu", "", "guests have performance counters", "guests cannot count cycles, instructions or cache misses"),
    switch(KVM, "enable_apicv", "", "", "APIC virtualization, where the vendor's module has it", ""),
    switch(KVM, "kvmclock_periodic_sync", "", "", "guest clocks are synchronized every five minutes", ""),
    number(KVM, "pi_inject_timer", "", "-1", "timer interrupts are posted from another CPU; -1: automatic, where vCPUs have dedicated CPUs"),
    number(KVM, "min_timer_period_us", "", "200", "shortest period of a guest timer"),
    Known { default: "N", ..switch(KVM, "ignore_msrs", "", "", "unknown MSRs read as 0 instead of a fault", "") },
    number(KVM, "lapic_timer_advance_ns", "", "-1", "by how much guest timers fire early; -1: automatic (Linux 6.1; 6.12 has lapic_timer_advance)"),
    number(KVM, "nx_huge_pages_recovery_ratio", "", "60", "1/N of the split huge pages is merged again in each round"),
    number(KVM, "nx_huge_pages_recovery_period_ms", "", "0", "period of these rounds; 0: an hour divided by the ratio"),
    number(KVM, "tsc_tolerance_ppm", "", "250", "TSC frequency difference above which a guest's TSC is scaled or trapped"),
    switch(KVM, "vector_hashing", "", "", "lowest-priority interrupts are spread over vCPUs by their vector", ""),
    switch(KVM, "report_ignored_msrs", "", "", "accesses to unknown MSRs are logged", ""),
    Known { default: "N", ..switch(KVM, "mitigate_smt_rsb", "", "", "protects return predictions across sibling threads on some AMD CPUs, at each exit to the VMM", "") },
    number(KVM, "force_emulation_prefix", "", "0", "an instruction prefix with which tests force emulation"),
    Known { default: "N", ..switch(KVM, "enable_vmware_backdoor", "", "", "VMware's backdoor port and counters for guests; it makes guest #GP faults exit", "") },
];

pub fn of(module: &str, name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.module == module && known.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parameter_and_no_feature_of_a_module_stands_twice() {
        for (at, known) in KNOWN.iter().enumerate() {
            for other in &KNOWN[at + 1..] {
                let same_name = (known.module, known.name) == (other.module, other.name);
                let same_feature =
                    !known.feature.is_empty() && (known.module, known.feature) == (other.module, other.feature);
                assert!(!same_name && !same_feature, "{}.{}", known.module, known.name);
            }
            assert!(!known.meaning.is_empty() && !known.default.is_empty());
        }
        assert_eq!(of("kvm_amd", "avic").unwrap().feature, "avic");
        assert!(of("kvm_pvm", "force").is_none());
    }
}
