//! What is known of the parameters of KVM's modules.
//!
//! Parameters are enumerated generically; a row here attaches knowledge by name, and names that no row knows are listed
//! without. Defaults and meanings: arch/x86/kvm/{x86,vmx/vmx,vmx/nested,svm/svm,svm/avic,mmu/mmu}.c and
//! virt/kvm/kvm_main.c, Linux 6.12; Documentation/admin-guide/kernel-parameters.txt (kvm.*, kvm-intel.*, kvm-amd.*).

/// What is known of one parameter.
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
    /// What it does.
    pub meaning: &'static str,
    /// What happens without it; empty: nothing that costs exits.
    pub without: &'static str,
}

/// How a value is read.
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
    switch(INTEL, "nested", "nested", "", "guests may have guests", "a guest is offered no VMX"),
    switch(INTEL, "enable_shadow_vmcs", "vmcs_shadowing", "shadow_vmcs", "a guest hypervisor reads and writes its VMCS without exits", "each VMREAD and VMWRITE of a guest hypervisor is an exit: 8 to 16 more for each exit of its guest"),
    switch(INTEL, "enlightened_vmcs", "enlightened_vmcs", "", "on Hyper-V the VMCS is plain memory that both sides share", "on Hyper-V each VMREAD and VMWRITE exits: 20,700 cycles for a CPUID of L2 instead of 8,900"),
    switch(INTEL, "ept", "ept", "ept", "second-level page tables by hardware", "shadow paging: up to 4n+8 switches for one fault of a nested guest with n levels of tables"),
    switch(INTEL, "eptad", "ept_ad", "ept_ad", "accessed and dirty bits in second-level tables by hardware", "pages are write-protected to learn what was touched"),
    switch(INTEL, "vpid", "vpid", "vpid", "translations are tagged by vCPU", "the TLB is flushed at each entry and exit"),
    switch(INTEL, "unrestricted_guest", "unrestricted_guest", "unrestricted_guest", "guests run real mode by hardware", "real mode is emulated: firmware of guests is slow"),
    switch(INTEL, "enable_apicv", "apicv", "apicv", "the local APIC and virtual interrupts by hardware", "exits for APIC accesses, EOI and injected interrupts"),
    switch(INTEL, "enable_ipiv", "ipi_virtualization", "ipi_virt", "IPIs between vCPUs by hardware (Sapphire Rapids and later)", "an exit for each IPI that a guest sends"),
    switch(INTEL, "enable_device_posted_irqs", "device_posted_interrupts", "", "interrupts of devices given to a guest reach it without an exit", "exits for interrupts of devices given to a guest"),
    switch(INTEL, "flexpriority", "tpr_shadow", "flexpriority", "the task-priority register by hardware", "exits when a guest changes its task priority"),
    switch(INTEL, "preemption_timer", "preemption_timer", "preemption_timer", "guest timers end a guest's run by hardware", "guest timers need a timer and an interrupt of the host"),
    switch(INTEL, "vnmi", "virtual_nmi", "vnmi", "virtual NMIs by hardware", "exits around NMIs"),
    switch(INTEL, "pml", "page_modification_log", "pml", "hardware lists the pages that a guest writes", "write faults while dirty pages are logged, as in a migration"),
    Known { reads: Reads::Number, default: "128", ..switch(INTEL, "ple_gap", "pause_loop_exiting", "ple", "a vCPU that spins gives way (0 is off; pollers such as DPDK want it off)", "") },
    number(INTEL, "ple_window", "", "4096", "cycles that a vCPU may spin before it gives way"),
    Known { reads: Reads::Words(&["cond", "always"]), default: "auto", ..switch(INTEL, "vmentry_l1d_flush", "l1d_flush", "", "the L1 data cache is flushed before entries, against L1TF", "") },
    Known { default: "N", ..switch(INTEL, "nested_early_check", "", "", "checks a guest hypervisor's VMCS by a trial entry", "") },
    // SVM.
    switch(AMD, "nested", "nested", "", "guests may have guests", "a guest is offered no SVM"),
    switch(AMD, "npt", "npt", "npt", "second-level page tables by hardware", "shadow paging: up to 4n+8 switches for one fault of a nested guest with n levels of tables"),
    Known { default: "N, auto since 6.18", ..switch(AMD, "avic", "avic", "avic", "the local APIC, IPIs and virtual interrupts by hardware", "exits for APIC accesses, IPIs, EOI and injected interrupts") },
    switch(AMD, "vls", "virtual_vmload_vmsave", "v_vmsave_vmload", "a guest hypervisor's VMLOAD and VMSAVE without exits", "two more exits for each exit of a nested guest"),
    switch(AMD, "vgif", "virtual_gif", "vgif", "a guest hypervisor's STGI and CLGI without exits", "two more exits for each exit of a nested guest"),
    switch(AMD, "vnmi", "virtual_nmi", "vnmi", "virtual NMIs by hardware", "exits around NMIs"),
    switch(AMD, "nrips", "next_rip", "nrip_save", "hardware says where the next instruction begins", "instructions that exit are decoded by software"),
    switch(AMD, "lbrv", "lbr_virtualization", "lbrv", "branch records by hardware", ""),
    switch(AMD, "tsc_scaling", "tsc_scaling", "tsc_scale", "a guest's counter may tick at another rate", "after a migration to a CPU of another frequency each rdtsc exits"),
    Known { reads: Reads::Number, default: "3000", ..switch(AMD, "pause_filter_count", "pause_loop_exiting", "pausefilter", "a vCPU that spins gives way (0 is off; pollers such as DPDK want it off)", "") },
    number(AMD, "pause_filter_thresh", "", "128", "cycles between pauses that still count as one loop"),
    // Both.
    number(KVM, "halt_poll_ns", "halt_polling", "200000", "how long KVM spins before a halted vCPU sleeps: shorter wake-ups for burnt CPU"),
    number(KVM, "halt_poll_ns_grow", "", "2", "factor by which that time grows"),
    number(KVM, "halt_poll_ns_grow_start", "", "10000", "where it starts to grow"),
    number(KVM, "halt_poll_ns_shrink", "", "2", "divisor by which it shrinks"),
    switch(KVM, "tdp_mmu", "tdp_mmu", "", "second-level tables are changed by many vCPUs at once", "page faults of one VM wait for each other"),
    switch(KVM, "eager_page_split", "eager_page_split", "", "huge pages are split before dirty logging needs it", "vCPUs split huge pages themselves while a migration runs"),
    Known { default: "auto", ..switch(KVM, "nx_huge_pages", "nx_huge_pages", "", "executable huge pages are split, against an erratum of older Intel CPUs (iTLB multihit)", "") },
    switch(KVM, "mmio_caching", "mmio_caching", "", "hardware distinguishes an access to an emulated device from a page fault", "each access to an emulated device walks memory slots first"),
    switch(KVM, "lapic_timer_advance", "lapic_timer_advance", "", "guest timers end early by the time that an entry takes", "guest timers end late"),
    switch(KVM, "enable_pmu", "vpmu", "", "guests have performance counters", "no cycles, instructions or cache misses in guests"),
    switch(KVM, "enable_apicv", "", "", "APIC virtualization, where the vendor's module has it", ""),
    switch(KVM, "kvmclock_periodic_sync", "", "", "the guests' clocks are corrected every five minutes", ""),
    number(KVM, "pi_inject_timer", "", "-1", "timer interrupts are posted from another CPU: -1 where vCPUs have CPUs of their own"),
    number(KVM, "min_timer_period_us", "", "200", "shortest period of a guest's timer"),
    Known { default: "N", ..switch(KVM, "ignore_msrs", "", "", "unknown MSRs read as 0 instead of a fault", "") },
    number(KVM, "lapic_timer_advance_ns", "", "-1", "by how much guest timers end early: -1 finds out (Linux 6.1; 6.12 has lapic_timer_advance)"),
    number(KVM, "nx_huge_pages_recovery_ratio", "", "60", "how much of the split huge pages is put together again in each round, as 1 of so many"),
    number(KVM, "nx_huge_pages_recovery_period_ms", "", "0", "how often: 0 is an hour divided by the ratio"),
    number(KVM, "tsc_tolerance_ppm", "", "250", "difference of counters from which on a guest's is scaled or trapped"),
    switch(KVM, "vector_hashing", "", "", "interrupts for any of several vCPUs are spread by their vector", ""),
    switch(KVM, "report_ignored_msrs", "", "", "unknown MSRs of guests stand in the kernel's log", ""),
    Known { default: "N", ..switch(KVM, "mitigate_smt_rsb", "", "", "protects returns of sibling threads on some AMD CPUs, at each exit to the VMM", "") },
    number(KVM, "force_emulation_prefix", "", "0", "a prefix that lets tests emulate an instruction"),
    Known { default: "N", ..switch(KVM, "enable_vmware_backdoor", "", "", "VMware's port and counters for guests; guest faults exit for it", "") },
];

/// What is known of a parameter.
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
