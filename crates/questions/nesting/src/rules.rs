//! What can be wrong with how a machine is set up for nesting: rules as data.
//!
//! Each row says what it is called, why it costs, what to type, what that needs and where the claim comes from; its
//! `check` looks at the machines and returns what it saw. Published costs are those of their sources and nobody else's.

use super::model::Model;
use super::{checks, ratio};
use base::rule::Words;
use base::{FactKind, Needs};
use facts::rule::Hit;

/// A rule about how machines are set up.
type Rule = facts::rule::Rule<fn(&Model) -> Vec<Hit>>;

/// All rules, in the order in which equal findings are shown.
pub const RULES: &[Rule] = &[
    Rule {
        id: "NST-TCG",
        per: "machine",
        looks_at: "CPUID leaf 0x40000000: the signature of QEMU's emulator.",
        requires: &[FactKind::Processor],
        why: "QEMU without KVM emulates every instruction. No time measured here applies to hardware, and everything \
              is about ten times slower than with KVM.",
        fix: &[
            "ls -l /dev/kvm   # on this machine's host: does it exist, and may QEMU open it?",
            "qemu-system-x86_64 -accel kvm -cpu host ...",
        ],
        needs: Needs::OuterLevel,
        source: "QEMU 9.0, target/i386/tcg/sysemu/tcg-cpu.c and cpu.c (signature TCGTCGTCGTCG at CPUID 0x40000000)",
        ..Rule::checked_by(checks::identity::emulated)
    },
    Rule {
        id: "NST-FIRMWARE",
        per: "machine",
        looks_at: "The kernel's log: VMX or SVM disabled by the firmware.",
        requires: &[FactKind::Log],
        why: "The processor has VMX or SVM, but the firmware locked it before the kernel started. QEMU falls back to \
              emulation, which is about ten times slower.",
        fix: &["reboot into the firmware setup and enable Virtualization Technology (Intel) or SVM Mode (AMD)"],
        undo: &["disable it there"],
        needs: Needs::Reboot,
        source: "init_ia32_feat_ctl in arch/x86/kernel/cpu/feat_ctl.c, Linux 6.12; AMD APM vol. 2, 15.30.1 (VM_CR)",
        ..Rule::checked_by(checks::identity::firmware)
    },
    Rule {
        id: "NST-HIDDEN",
        per: "machine",
        looks_at: "The time of CPUID on a machine that reports bare metal.",
        requires: &[FactKind::CpuidTime],
        why: "A hypervisor can hide its CPUID flag, but it cannot avoid the exit at each CPUID. If there is a \
              hypervisor, what is measured here as L0 is L1. A slow processor, or a frequency far below that of the \
              TSC, looks the same.",
        fix: &["kvmscope bench exits --tests cpuid   # the same over several launches, with the spread"],
        source: "Intel SDM volume 3, 26.1.2; V. Kuznetsov, FOSDEM 2018 (180 cycles on bare metal, 1,350 at L1)",
        ..Rule::checked_by(checks::identity::hidden)
    },
    Rule {
        id: "NST-SHADOW",
        per: "machine",
        looks_at: "The feature vmcs_shadowing of a machine whose guests may run nested guests.",
        requires: &[FactKind::Modules],
        why: "Without VMCS shadowing, each VMREAD and VMWRITE of a guest hypervisor exits, and the level below \
              emulates it. KVM in a guest executes 8 to 16 of them per exit of its own guest.",
        needs: Needs::Reload,
        source: "arch/x86/kvm/vmx/vmx.c (enable_shadow_vmcs) and vmcs_shadow_fields.h, Linux 6.12; github.com/intel/haxm pull \
                 request 130 (6-10 VMREAD and 2-6 VMWRITE per exit on average)",
        ..Rule::checked_by(checks::vmx::shadow)
    },
    Rule {
        id: "NST-EVMCS",
        per: "machine",
        looks_at: "Hyper-V's offer of the enlightened VMCS, and the parameter enlightened_vmcs of kvm_intel.",
        requires: &[FactKind::Processor, FactKind::Modules],
        why: "Hyper-V can share the VMCS of a nested guest as plain memory, with a mask of what changed. Without it, \
              each VMREAD and VMWRITE of KVM exits to Hyper-V, and Hyper-V merges the whole VMCS at each entry.",
        needs: Needs::Reload,
        source: "V. Kuznetsov, FOSDEM 2018 (20,700 to 8,900 cycles); commit 773e8a0425c9, Linux 4.17 (18,890 to 8,304); \
                 arch/x86/kvm/vmx/vmx_onhyperv.c, Linux 6.12",
        ..Rule::checked_by(checks::hyperv::evmcs_off)
    },
    Rule {
        id: "NST-EVMCSNONE",
        per: "machine",
        looks_at: "CPUID leaves of Hyper-V on Intel: no enlightened VMCS is offered.",
        requires: &[FactKind::Processor],
        why: "Without the enlightened VMCS, each VMREAD and VMWRITE of KVM exits to Hyper-V. On Intel, Hyper-V has \
              offered it since Windows Server 2016 to VMs with nested virtualization.",
        fix: &["Set-VMProcessor -VMName GUEST -ExposeVirtualizationExtensions $true   # on the Hyper-V host, VM \
            powered off"],
        undo: &["Set-VMProcessor -VMName GUEST -ExposeVirtualizationExtensions $false"],
        needs: Needs::OuterLevel,
        source: "Hyper-V TLFS, \"Nested Virtualization\"; V. Kuznetsov, FOSDEM 2018",
        ..Rule::checked_by(checks::hyperv::evmcs_absent)
    },
    Rule {
        id: "NST-EVMCSON",
        per: "machine",
        looks_at: "The parameter enlightened_vmcs of kvm_intel: in use.",
        requires: &[FactKind::Modules],
        why: "Version 1 of the enlightened VMCS has no fields for posted interrupts, the APIC-access page, \
              virtual-interrupt delivery, PML, pause-loop exiting and the preemption timer, so KVM disables them \
              when it uses version 1. Expect both effects: exits became 2.3 times cheaper, but one kernel build took \
              longer. Measure the real load both ways.",
        needs: Needs::Reload,
        source: "evmcs_sanitize_exec_ctrls in arch/x86/kvm/vmx/hyperv_evmcs.h and hyperv.c, Linux 6.12; V. Kuznetsov, FOSDEM \
                 2018 (26m54.9 to 27m53.1, one run each)",
        ..Rule::checked_by(checks::hyperv::evmcs_on)
    },
    Rule {
        id: "NST-MSRBITMAP",
        per: "machine",
        looks_at: "CPUID leaf 0x4000000a of Hyper-V: no enlightened MSR bitmap.",
        requires: &[FactKind::Processor],
        why: "Without the enlightened MSR bitmap, every MSR access of a nested guest exits, even those that need no \
            exit.",
        fix: &["# ask for a newer Hyper-V: CPUID 0x4000000a eax bit 19 must be set"],
        needs: Needs::OuterLevel,
        source: "commit ceef7d10dfb6, KVM: x86: VMX: hyper-v: Enlightened MSR-Bitmap support (1,300 to 120 cycles)",
        ..Rule::checked_by(checks::hyperv::msr_bitmap)
    },
    Rule {
        id: "NST-FLUSH",
        per: "machine",
        looks_at: "CPUID leaf 0x4000000a of Hyper-V: no direct virtual flush.",
        requires: &[FactKind::Processor],
        why: "With the direct flush, a nested guest asks Hyper-V itself to flush TLBs; without it, each request goes \
            through KVM.",
        fix: &["# ask for a newer Hyper-V: CPUID 0x4000000a eax bit 17 must be set"],
        needs: Needs::OuterLevel,
        source: "Hyper-V TLFS, \"Direct Virtual Flush\"; arch/x86/kvm/vmx/vmx.c (hv_enable_l2_tlb_flush), Linux 6.12",
        ..Rule::checked_by(checks::hyperv::direct_flush)
    },
    Rule {
        id: "NST-PAGING",
        per: "parameter",
        looks_at: "The parameters kvm_intel.ept and kvm_amd.npt.",
        requires: &[FactKind::Modules],
        why: "Without second-level page tables, KVM shadows every page table of every guest. A fault of a nested \
              guest with n levels of page tables then costs up to 4n+8 world switches, instead of 2n+6.",
        needs: Needs::Reload,
        source: "PVM, SOSP 2023, section 2; arch/x86/kvm/vmx/vmx.c (enable_ept) and svm/svm.c (npt_enabled), Linux 6.12",
        ..Rule::checked_by(checks::settings::paging)
    },
    Rule {
        id: "NST-APIC",
        per: "parameter",
        looks_at: "The parameters kvm_intel.enable_apicv and kvm_amd.avic.",
        requires: &[FactKind::Modules],
        why: "Without it, KVM emulates the local APIC: EOIs, IPIs and each injected interrupt cause exits. AVIC is \
              off by default before Linux 6.18, and inactive while a vCPU runs a nested guest. Before Linux 6.0 guests \
              with x2APIC do not have it, and on Zen 1 and Zen 2 it loses IPIs before 6.17.",
        needs: Needs::Reload,
        source: "arch/x86/kvm/vmx/vmx.c (enable_apicv) and svm/avic.c, Linux 6.12; commits ca2967de5a5b (6.18), 8de4a1c8164e (6.17), \
                 4d1d7942e36a (6.0)",
        ..Rule::checked_by(checks::settings::apic)
    },
    Rule {
        id: "NST-SVM",
        per: "parameter",
        looks_at: "The parameters kvm_amd.vls and kvm_amd.vgif.",
        requires: &[FactKind::Modules],
        why: "A guest hypervisor executes VMLOAD, VMSAVE, STGI and CLGI around each run of its guest. Each exits \
              unless the CPU executes it in the guest.",
        needs: Needs::Reload,
        source: "AMD APM vol. 2, 15.33; arch/x86/kvm/svm/svm.c (vls, vgif), Linux 6.12",
        ..Rule::checked_by(checks::settings::svm)
    },
    Rule {
        id: "NST-OFF",
        per: "parameter",
        looks_at: "All other parameters of KVM's modules that are on by default and cost exits when they are off.",
        requires: &[FactKind::Modules],
        why: "The setting is on by default; it is off if it was set, or if this level's CPU lacks the feature.",
        needs: Needs::Reload,
        source: "arch/x86/kvm, Linux 6.12; Documentation/admin-guide/kernel-parameters.txt",
        ..Rule::checked_by(checks::settings::others)
    },
    Rule {
        id: "NST-CLOCK",
        per: "machine",
        looks_at: "The clocksource of the machine: one whose reading is an exit.",
        requires: &[FactKind::Clocksource],
        why: "A program that reads the time many thousand times per second causes as many exits.",
        needs: Needs::OuterLevel,
        source: "drivers/clocksource/hyperv_timer.c and acpi_pm.c, arch/x86/kernel/hpet.c, Linux 6.12",
        ..Rule::checked_by(checks::clock::exits)
    },
    Rule {
        id: "NST-KVMCLOCK",
        per: "machine",
        looks_at: "The flag of kvm-clock for stability between CPUs.",
        requires: &[FactKind::Clocksource],
        why: "KVM marks its clock as stable only if its own host uses the TSC, or Hyper-V's TSC page. Otherwise the \
              vDSO cannot use it, and every clock read is a system call.",
        fix: &["cat /sys/devices/system/clocksource/clocksource0/current_clocksource   # at the level below"],
        needs: Needs::OuterLevel,
        source: "kvm_get_time_and_clockread in arch/x86/kvm/x86.c, Linux 6.12; V. Kuznetsov, FOSDEM 2018 (1,500 and 80 cycles)",
        ..Rule::checked_by(checks::clock::unstable)
    },
    Rule {
        id: "NST-CLOCKGUESTS",
        per: "machine",
        looks_at: "The clocksource of a machine that runs guests: one from which KVM cannot make a stable clock for \
            them.",
        requires: &[FactKind::Clocksource],
        why: "KVM passes on a stable clock only if its own host uses the TSC, or since Linux 4.16 Hyper-V's TSC page \
              with notifications of frequency changes. Otherwise guests still have kvm-clock, but each clock read is \
              a system call.",
        source: "kvm_get_time_and_clockread in arch/x86/kvm/x86.c, Linux 6.12; V. Kuznetsov, FOSDEM 2018 (1,500 and 80 cycles)",
        ..Rule::checked_by(checks::clock::for_guests)
    },
    Rule {
        id: "NST-LOST",
        per: "machine",
        looks_at: "CPU flags of a host, against those of its guest (needs the snapshots of both).",
        requires: &[FactKind::Processor],
        why: "A guest can use only what its CPU model offers. A named model (Skylake-Server, EPYC) omits features \
              that the processor has; host-passthrough omits only those that KVM never passes on.",
        fix: &[
            "virsh edit GUEST   # <cpu mode='host-passthrough' migratable='off'/>",
            "qemu-system-x86_64 -cpu host ...   # the same without libvirt",
        ],
        undo: &["virsh edit GUEST   # the <cpu> element as it was"],
        needs: Needs::OuterLevel,
        source: "nested_vmx_setup_ctls_msrs in arch/x86/kvm/vmx/nested.c, svm_set_cpu_caps in svm/svm.c, Linux 6.12",
        ..Rule::checked_by(checks::identity::lost)
    },
    Rule {
        id: "NST-KERNEL",
        per: "kernel change",
        looks_at: "The kernel's release, against the releases that made nesting cheaper on such a machine.",
        requires: &[FactKind::Release],
        why: "The running kernel lacks this change; a newer kernel has it.",
        undo: &["# select the previous kernel in the boot loader menu"],
        needs: Needs::Reboot,
        source: "messages of the cited commits (docs/use/check.md lists them)",
        ..Rule::checked_by(checks::kernel::older)
    },
    Rule {
        id: "NST-FAULT",
        per: "machine",
        looks_at: "The kernel's release, against the fixes that hosts of guest hypervisors need.",
        requires: &[FactKind::Release],
        why: "Bugs in nested virtualization of these releases hang guest hypervisors, or let them corrupt memory or \
              escape their VM. The newest release of each maintained series has the fixes.",
        fix: &["# install the newest release of your series from your distribution, and boot it"],
        undo: &["# select the previous kernel in the boot loader menu"],
        needs: Needs::Reboot,
        source: "records of the kernel's CVE team (cve.org); docs/use/check.md has the list",
        ..Rule::checked_by(checks::kernel::faults)
    },
    Rule {
        id: "NST-NXHUGE",
        per: "machine",
        looks_at: "nx_huge_pages, and whether the processor has the iTLB-multihit erratum.",
        requires: &[FactKind::Modules],
        why: "Executable huge pages are split into 4 KiB pages on processors with the iTLB-multihit erratum. This \
              one is not affected, so the split causes page faults and TLB misses without benefit.",
        source: "Documentation/admin-guide/hw-vuln/multihit.rst, Linux 6.12; counter nx_lpage_splits",
        ..Rule::checked_by(checks::kernel::nx_huge_pages)
    },
    Rule {
        id: "NST-L1D",
        per: "machine",
        looks_at: "vmentry_l1d_flush and the state of the L1TF mitigation.",
        requires: &[FactKind::Modules],
        why: "The flush protects against L1TF, but leaves the guest with an empty cache after each flushed entry. \
            Counter l1d_flush shows how often.",
        fix: &["cat /sys/kernel/debug/kvm/l1d_flush   # how often; read l1tf.rst before you change it"],
        source: "Documentation/admin-guide/hw-vuln/l1tf.rst, Linux 6.12 (kvm-intel.vmentry_l1d_flush)",
        ..Rule::checked_by(checks::kernel::l1d_flush)
    },
    Rule {
        id: "NST-MITIGATION",
        per: "machine",
        looks_at: "sys/devices/system/cpu/vulnerabilities: mitigations with work at entries and exits.",
        requires: &[FactKind::Mitigations],
        why: "These protect against processor vulnerabilities, at the cost of work at each system call, entry or \
              exit. Disabling one is a security decision, so no command is given.",
        needs: Needs::Reboot,
        source: "Documentation/admin-guide/hw-vuln/, Linux 6.12",
        ..Rule::checked_by(checks::kernel::mitigations)
    },
    Rule {
        id: "NST-HVGUEST",
        per: "VM",
        looks_at: "The -cpu of each QEMU command line with some Hyper-V enlightenments, against all that QEMU 9.0 has.",
        why: "Windows, and Hyper-V inside a VM, exit less often with each Hyper-V enlightenment that KVM offers: \
              clocks, timers, interrupts, TLB flushes. hv-evmcs (Intel) makes exits of its guests cheaper but \
              disables posted interrupts: measure with and without it.",
        needs: Needs::Reload,
        source: "docs/system/i386/hyperv.rst, QEMU 9.0",
        ..Rule::checked_by(checks::guests::hyperv)
    },
    Rule {
        id: "NST-NESTED",
        per: "machine",
        looks_at: "The parameter nested of kvm_intel or kvm_amd.",
        requires: &[FactKind::Modules],
        why: "With nested off, KVM offers its guests neither VMX nor SVM. That is right for a host without nested \
            guests.",
        needs: Needs::Reload,
        source: "Documentation/virt/kvm/x86/running-nested-guests.rst, Linux 6.12 (on by default, for Intel since 4.20)",
        ..Rule::checked_by(checks::identity::not_nested)
    },
    Rule {
        id: "NST-PMU",
        per: "machine",
        looks_at: "Performance counters of a guest.",
        requires: &[FactKind::Processor],
        why: "Without a PMU, perf cannot count cycles, instructions or cache misses, so the effect of exits on \
            caches is unknown.",
        needs: Needs::OuterLevel,
        source: "arch/x86/kvm/x86.c (enable_pmu), Linux 6.12; libvirt, domain format, features",
        ..Rule::checked_by(checks::identity::no_pmu)
    },
    Rule {
        id: "NST-TRACE",
        per: "machine",
        looks_at: "Kernel lockdown, and kvm_pvm, under which kvm_exit does not fire.",
        why: "A registered event need not fire, and a kernel in confidentiality lockdown refuses tracing.",
        fix: &["kvmscope check --probe   # runs a test guest and reports which events fire"],
        source: "Documentation/trace/events.rst, kernel_lockdown(7); docs/use/record.md (kvm_pvm)",
        ..Rule::checked_by(checks::identity::no_trace)
    },
];

pub fn words() -> Vec<Words> {
    RULES.iter().map(Rule::words).chain([ratio::WORDS]).collect()
}
