//! Which virtualization features are on, off, absent or unknown at one level?
//!
//! In: the facts of a machine. Out: a row per feature that can exist there: a VMX feature has no row on an AMD machine,
//! unless the processor is not known. Features that a module's parameter decides come from [`super::known`]; the others
//! have a probe in [`PROBES`]; the kernel's log is heard as a second witness (`log`).
//! ```text
//! parameter Y            on          parameter N, flag there      off      module not loaded, vmx there    off
//! parameter N, no flag   absent      no such parameter            absent   file unreadable, no snapshot    unknown
//! ```

mod clock;
mod extensions;
mod here;
mod hygiene;
mod hyperv;
mod log;
mod mitigations;
mod paravirtual;
mod settings;
mod timing;

pub use log::unstable;
pub use mitigations::MITIGATIONS;

use super::model::{Row, Seen};
use host::Virtualization;

/// A feature and how it is recognised.
pub struct Probe {
    pub feature: &'static str,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// Looks; `None` where the feature cannot exist.
    pub look: fn(&Virtualization) -> Option<Seen>,
}

const fn probe(feature: &'static str, meaning: &'static str, look: fn(&Virtualization) -> Option<Seen>) -> Probe {
    Probe { feature, meaning, look }
}

/// Features that no parameter decides, in the order in which they are shown.
#[rustfmt::skip]
pub const PROBES: &[Probe] = &[
    probe("hypervisor_below", "this machine is itself a guest", here::hypervisor_below),
    probe("cpuid_answered_below", "CPUID takes so long that a hypervisor must answer it", timing::answered_below),
    probe("emulated_cpu", "QEMU emulates the CPU instead of using KVM", here::emulated_cpu),
    probe("virtualization", "the CPU offers VMX or SVM at this level", here::virtualization),
    probe("kvm", "KVM is loaded", here::kvm),
    probe("kvm_pvm", "KVM without VMX or SVM", here::kvm_pvm),
    probe("clock_without_exit", "a clock read needs no exit", clock::without_exit),
    probe("stable_clock_for_guests", "KVM can give guests a clock that they can read without a system call", clock::for_guests),
    probe("pmu", "performance counters at this level", here::pmu),
    probe("trace_kvm_exit", "exits can be traced at this level", here::trace_kvm_exit),
    probe("kvm_device", "programs can open /dev/kvm", extensions::device),
    probe("kvm_nested_state", "VMs with nested guests can be saved and migrated", extensions::nested_state),
    probe("kvm_disable_exits", "guests may halt and pause without exits (cpu-pm)", extensions::disable_exits),
    probe("kvm_stats_fd", "KVM has exit counters per vCPU, which bench exits uses", extensions::stats_fd),
    probe("kvm_dirty_ring", "dirty pages are reported in a ring", extensions::dirty_ring),
    probe("kvm_evmcs_for_guests", "Hyper-V in a guest can be offered the enlightened VMCS", extensions::evmcs),
    probe("kvm_pmu_capability", "the PMU can be enabled or disabled per VM", extensions::pmu),
    probe("kvm_clock", "clock page of KVM at the level below", paravirtual::clock),
    probe("kvm_clock_stable", "this clock needs no comparison between CPUs", paravirtual::clock_stable),
    probe("kvm_steal_time", "KVM at the level below reports steal time", paravirtual::steal_time),
    probe("kvm_pv_eoi", "end of interrupt without an exit", paravirtual::eoi),
    probe("kvm_pv_tlb_flush", "TLB flushes of vCPUs that are not running are deferred", paravirtual::tlb_flush),
    probe("kvm_pv_ipi", "many IPIs in one hypercall", paravirtual::ipi),
    probe("kvm_async_pf", "during page faults of the level below, other tasks can run", paravirtual::async_pf),
    probe("kvm_poll_control", "a guest may disable halt polling of its host", paravirtual::poll_control),
    probe("kvm_async_pf_int", "an interrupt reports the end of these faults", paravirtual::async_pf_int),
    probe("kvm_pv_unhalt", "a vCPU that waits for a lock halts, and a hypercall wakes it", paravirtual::unhalt),
    probe("kvm_pv_sched_yield", "a vCPU yields to the target of its IPI", paravirtual::sched_yield),
    probe("kvm_msi_ext_dest_id", "more than 255 vCPUs without interrupt remapping", paravirtual::ext_dest_id),
    probe("kvm_hint_realtime", "each vCPU has a dedicated CPU, so spinning is fine", paravirtual::realtime),
    probe("hyperv_tsc_page", "Hyper-V's clock page", hyperv::tsc_page),
    probe("hyperv_reenlightenment", "Hyper-V notifies of TSC frequency changes", hyperv::reenlightenment),
    probe("hyperv_frequency_msrs", "Hyper-V reports the TSC frequency, so it need not be measured", hyperv::frequency),
    probe("hyperv_cluster_ipi", "Hyper-V accepts many IPIs in one hypercall", hyperv::cluster_ipi),
    probe("hyperv_ex_processor_masks", "such hypercalls reach more than 64 vCPUs", hyperv::ex_masks),
    probe("hyperv_is_nested", "this Hyper-V is itself a guest", hyperv::is_nested),
    probe("hyperv_evmcs_offered", "Hyper-V recommends the enlightened VMCS", hyperv::evmcs),
    probe("hyperv_msr_bitmap", "KVM marks changed MSR bitmaps for Hyper-V with a flag", hyperv::msr_bitmap),
    probe("hyperv_direct_flush", "nested guests flush TLBs directly through Hyper-V", hyperv::direct_flush),
    probe("hyperv_guest_mapping_flush", "Hyper-V flushes second-level tables on request", hyperv::guest_mapping_flush),
    probe("hyperv_enlightened_tlb", "on AMD, Hyper-V flushes nested tables on request", hyperv::enlightened_tlb),
    probe("smt", "two threads of a core share its caches and execution units", hygiene::smt),
    probe("governor_performance", "the governor keeps the frequency high", hygiene::governor),
    probe("isolated_cpus", "some CPUs are excluded from scheduler balancing", hygiene::isolated),
    probe("nohz_full", "some CPUs have no timer tick while only one task runs", hygiene::nohz_full),
    probe("rcu_nocbs", "RCU callbacks of some CPUs run on others", hygiene::rcu_nocbs),
    probe("transparent_huge_pages", "transparent huge pages", hygiene::transparent),
    probe("reserved_huge_pages", "reserved huge pages", hygiene::reserved),
];

/// All features of a machine.
pub fn of(facts: &Virtualization) -> Vec<Row> {
    let row = |feature: &'static str, seen: Seen| Row { feature, state: seen.state, evidence: seen.evidence };
    let (first, rest) =
        PROBES.split_at(PROBES.iter().position(|probe| probe.feature == "clock_without_exit").unwrap_or(0));
    let look = |probe: &Probe| Some(row(probe.feature, (probe.look)(facts)?));
    let mut rows: Vec<Row> = first.iter().filter_map(look).collect();
    rows.extend(settings::rows(facts));
    rows.extend(rest.iter().filter_map(look));
    rows.extend(mitigations::rows(facts));
    log::witness(facts, &mut rows);
    rows
}

/// What a feature is, in a few words.
pub fn meaning(feature: &str) -> &'static str {
    let probed = PROBES.iter().find(|probe| probe.feature == feature).map(|probe| probe.meaning);
    let known = || super::known::KNOWN.iter().find(|known| known.feature == feature).map(|known| known.meaning);
    let mitigated = || MITIGATIONS.iter().find(|known| known.feature == feature).map(|known| known.meaning);
    probed.or_else(known).or_else(mitigated).unwrap_or_default()
}
