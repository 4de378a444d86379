//! Which settings change which exits? What a difference of the configuration may be the cause of, as data.
//!
//! A setting that is not here explains nothing, and what it changed stays unexplained.

use crate::compare::configuration::COMMAND;

/// What a setting changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moves {
    /// How often guests of that depth exit for these reasons; depth 1 is a guest of the machine with the setting.
    Rate(u8, &'static [&'static str]),
    /// How long every exit takes.
    Cost,
    /// How long KVM polls for a halted guest.
    Polling,
    /// What the host takes from vCPUs in these states.
    Lost(&'static [&'static str]),
}

/// One setting, or all that begin so where it ends in `*`, end so where it begins with it, have it where both.
pub(super) struct Effect {
    /// As `configuration` names it; empty: any of its area.
    pub setting: &'static str,
    pub area: &'static str,
    /// Of a list of words, those that matter; empty: all.
    pub words: &'static [&'static str],
    pub moves: Moves,
    /// Where the kernel or QEMU does so.
    pub source: &'static str,
}

const fn effect(setting: &'static str, moves: Moves, source: &'static str) -> Effect {
    Effect { setting, area: "", words: &[], moves, source }
}

const fn word(setting: &'static str, words: &'static [&'static str], moves: Moves, source: &'static str) -> Effect {
    Effect { setting, area: "", words, moves, source }
}

const fn area(area: &'static str, moves: Moves, source: &'static str) -> Effect {
    Effect { setting: "", area, words: &[], moves, source }
}

const FAULTS: &[&str] =
    &["EPT_VIOLATION", "EPT_MISCONFIG", "NPF", "PF_EXCP", "CR_ACCESS", "READ_CR3", "WRITE_CR3", "INVLPG"];
const APIC: &[&str] = &[
    "APIC_ACCESS",
    "APIC_WRITE",
    "EOI_INDUCED",
    "TPR_BELOW_THRESHOLD",
    "EXTERNAL_INTERRUPT",
    "INTERRUPT_WINDOW",
    "VINTR",
    "INTR",
    "MSR",
    "MSR_WRITE",
    "AVIC_INCOMPLETE_IPI",
    "AVIC_UNACCELERATED_ACCESS",
    "WRITE_CR8",
];
const IDLE: &[&str] =
    &["HLT", "IDLE_HLT", "MWAIT", "MWAIT_INSTRUCTION", "MONITOR_INSTRUCTION", "PAUSE", "PAUSE_INSTRUCTION"];

/// States in which the host takes time, by [`facts::losses::LostIn::name`]: a CPU that others have, and its interrupts.
const WAITS: &[&str] = &["preempted", "wake_delay"];
const SERVED: &[&str] = &["irq", "softirq"];
const TAKEN: &[&str] = &["preempted", "wake_delay", "irq", "softirq"];

#[rustfmt::skip]
pub(super) const EFFECTS: &[Effect] = &[
    effect("kvm_intel.enable_shadow_vmcs", Moves::Rate(1, &["VMREAD", "VMWRITE"]), "arch/x86/kvm/vmx/nested.c, init_vmcs_shadow_fields, Linux 6.12"),
    word(COMMAND, &["shadow_vmcs=*"], Moves::Rate(1, &["VMREAD", "VMWRITE"]), "lab nested --set shadow_vmcs: the processor that Bochs emulates, and kvm_intel above it"),
    word(COMMAND, &["vgif=*"], Moves::Rate(1, &["STGI", "CLGI"]), "lab nested --set vgif: the processor that QEMU emulates, and kvm_amd above it"),
    effect("kvm_intel.enlightened_vmcs", Moves::Rate(1, &["VMREAD", "VMWRITE"]), "arch/x86/kvm/vmx/hyperv.c, Linux 6.12"),
    effect("kvm_amd.vgif", Moves::Rate(1, &["STGI", "CLGI"]), "arch/x86/kvm/svm/svm.c, init_vmcb, Linux 6.12"),
    effect("kvm_amd.vls", Moves::Rate(1, &["VMLOAD", "VMSAVE"]), "arch/x86/kvm/svm/svm.c, init_vmcb, Linux 6.12"),
    effect("kvm_intel.enable_apicv", Moves::Rate(1, APIC), "arch/x86/kvm/vmx/vmx.c, vmx_refresh_apicv_exec_ctrl, Linux 6.12"),
    effect("kvm_intel.enable_ipiv", Moves::Rate(1, &["MSR_WRITE", "APIC_WRITE"]), "arch/x86/kvm/vmx/vmx.c, vmx_can_use_ipiv, Linux 6.12"),
    effect("kvm_amd.avic", Moves::Rate(1, APIC), "arch/x86/kvm/svm/avic.c, Linux 6.12"),
    effect("kvm_intel.ept", Moves::Rate(1, FAULTS), "arch/x86/kvm/vmx/vmx.c, enable_ept, Linux 6.12"),
    effect("kvm_amd.npt", Moves::Rate(1, FAULTS), "arch/x86/kvm/svm/svm.c, npt_enabled, Linux 6.12"),
    effect("kvm.tdp_mmu", Moves::Rate(1, FAULTS), "arch/x86/kvm/mmu/tdp_mmu.c, Linux 6.12"),
    effect("kvm.nx_huge_pages", Moves::Rate(1, FAULTS), "Documentation/admin-guide/hw-vuln/multihit.rst, Linux 6.12"),
    effect("/sys/kernel/mm/transparent_hugepage/enabled", Moves::Rate(1, FAULTS), "Documentation/admin-guide/mm/transhuge.rst, Linux 6.12"),
    effect("kvm_intel.ple_*", Moves::Rate(1, &["PAUSE_INSTRUCTION"]), "arch/x86/kvm/vmx/vmx.c, grow_ple_window, Linux 6.12"),
    effect("kvm_amd.pause_filter_*", Moves::Rate(1, &["PAUSE"]), "arch/x86/kvm/svm/svm.c, grow_ple_window, Linux 6.12"),
    effect("kvm_intel.preemption_timer", Moves::Rate(1, &["PREEMPTION_TIMER", "EXTERNAL_INTERRUPT"]), "arch/x86/kvm/vmx/vmx.c, vmx_set_hv_timer, Linux 6.12"),
    effect("kvm.halt_poll_ns*", Moves::Polling, "Documentation/virt/kvm/halt-polling.rst, Linux 6.12"),
    word("*command line", &["-overcommit cpu-pm=on"], Moves::Rate(1, IDLE), "qemu(1) 7.2, -overcommit cpu-pm"),
    word("/proc/cmdline", &["idle=poll", "idle=halt", "idle=nomwait"], Moves::Rate(0, IDLE), "Documentation/admin-guide/kernel-parameters.txt, Linux 6.12"),
    effect("/sys/devices/system/clocksource/clocksource0/current_clocksource", Moves::Rate(0, &["IO_INSTRUCTION", "IOIO", "EPT_MISCONFIG", "NPF", "RDTSC", "RDTSCP"]), "Documentation/timers/hpet.rst, Linux 6.12: a clock that is no TSC is a device that the hypervisor emulates"),
    word("/proc/cmdline", &["mitigations=*", "spectre_v2=*", "retbleed=*", "spec_store_bypass_disable=*", "l1tf=*", "mds=*"], Moves::Cost, "Documentation/admin-guide/hw-vuln/, Linux 6.12"),
    effect("kvm_intel.vmentry_l1d_flush", Moves::Cost, "Documentation/admin-guide/hw-vuln/l1tf.rst, Linux 6.12"),
    effect("/sys/devices/system/cpu/vulnerabilities/*", Moves::Cost, "Documentation/admin-guide/hw-vuln/, Linux 6.12"),
    effect("cpu*/cpufreq/*", Moves::Cost, "Documentation/admin-guide/pm/cpufreq.rst, Linux 6.12"),
    effect("/sys/devices/system/cpu/cpufreq/boost", Moves::Cost, "Documentation/admin-guide/pm/cpufreq.rst, Linux 6.12"),
    effect("/sys/devices/system/cpu/intel_pstate/*", Moves::Cost, "Documentation/admin-guide/pm/intel_pstate.rst, Linux 6.12"),
    effect("/sys/devices/system/cpu/smt/control", Moves::Cost, "Documentation/ABI/testing/sysfs-devices-system-cpu, Linux 6.12"),
    effect("microcode", Moves::Cost, "Documentation/arch/x86/microcode.rst, Linux 6.12"),
    area("placement", Moves::Lost(WAITS), "sched_setaffinity(2), Documentation/admin-guide/cgroup-v2.rst, cpuset, Linux 6.12"),
    effect("*: cputune/*", Moves::Lost(WAITS), "libvirt: formatdomain, CPU Tuning"),
    word("/proc/cmdline", &["isolcpus=*", "nohz_full=*"], Moves::Lost(TAKEN), "Documentation/admin-guide/kernel-parameters.txt, Linux 6.12"),
    word("/proc/cmdline", &["irqaffinity=*"], Moves::Lost(SERVED), "Documentation/admin-guide/kernel-parameters.txt, Linux 6.12"),
    effect("kernel.sched_rt_runtime_us", Moves::Lost(WAITS), "Documentation/scheduler/sched-rt-group.rst, Linux 6.12"),
    effect("kernel.osrelease", Moves::Cost, "another kernel takes another way through every exit"),
];

impl Effect {
    /// Whether it is about a setting that differs, and in these words.
    pub(super) fn is_of(&self, setting: &str, area: &str, differing: &[&str]) -> bool {
        let is_named = |name: &str, pattern: &str| match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
            _ if pattern.is_empty() => true,
            (Some(begin), Some(_)) => name.contains(begin.trim_start_matches('*')),
            (Some(begin), None) => name.starts_with(begin),
            (None, Some(end)) => name.ends_with(end),
            (None, None) => name == pattern,
        };
        let has = |text: &&str| {
            self.words.iter().any(|word| match word.strip_suffix('*') {
                Some(begin) => text.split_whitespace().any(|one| one.starts_with(begin)),
                None => text.contains(word),
            })
        };
        let is_of_area = self.area.is_empty() || self.area == area;
        is_of_area && is_named(setting, self.setting) && (self.words.is_empty() || differing.iter().any(has))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_known_by_its_name_or_its_words() {
        let of = |setting: &str, words: &[&str]| EFFECTS.iter().filter(|one| one.is_of(setting, "", words)).count();
        assert_eq!(of("kvm_intel.enable_shadow_vmcs", &["N", "Y"]), 1);
        assert_eq!(of("kvm.halt_poll_ns_grow", &[]), 1);
        assert_eq!(of("/proc/cmdline", &["quiet mitigations=off"]), 1);
        assert_eq!([of("/proc/cmdline", &["quiet"]), of("vm.swappiness", &["60"])], [0, 0]);
        assert_eq!(of("web command line", &["-overcommit cpu-pm=on"]), 1);
        assert_eq!(of("web: cputune/vcpupin[vcpu=0] cpuset", &["2", "3"]), 1);
        let placed = EFFECTS.iter().filter(|one| one.is_of("web vcpu 0", "placement", &["CPUs 2", "CPUs 3"]));
        assert_eq!(placed.count(), 1);
    }

    #[test]
    fn every_effect_has_a_source() {
        assert!(EFFECTS.iter().all(|one| one.source.len() > 10));
    }
}
