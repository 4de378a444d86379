//! What a flow can have wrong with it: rules as data.
//!
//! Each row says what it is called, why it happens, what to type, what that needs, and where the claim comes from; its
//! `check` looks at the numbers and returns what it saw. Limits are choices, not measurements: below them a change
//! would not be noticed.

use super::checks::{
    aligned, apic, damaged, ept_storm, halt_poll, ipi, level_conflicts, lost, pause, preempted, shadow, slow_clocks,
    stale, timer, userspace, vgif, vls,
};
use super::checks::{clocks, exits, faults, nested, storms, waiting};
use base::rule::{Words, limit};
use base::{FactKind, Needs};
use facts::ledger::measure::Measures;
use facts::rule::Hit;

/// A rule about one trace's numbers.
type Rule = facts::rule::Rule<fn(&Measures<'_>) -> Vec<Hit>>;

/// All rules, in the order in which equal findings are shown.
pub const RULES: &[Rule] = &[
    Rule {
        id: "FLW-ENDED",
        per: "VM",
        looks_at: "Reasons for which KVM_RUN returned to the VMM and from which no VMM continues: INTERNAL_ERROR, SHUTDOWN, FAIL_ENTRY; and \
                   errors of KVM_RUN itself.",
        requires: &[FactKind::Exits],
        why: "KVM gave up: an instruction that it cannot emulate (INTERNAL_ERROR), a triple fault of the guest (SHUTDOWN), or a \
              state that the CPU refuses to enter (FAIL_ENTRY). An error is no exit at all: with EFAULT the VMM has not mapped, or has protected, what \
              the guest touched. QEMU pauses the VM or resets it, and writes the registers to \
              its log; the last exits before it show what the guest was doing.",
        source: "include/uapi/linux/kvm.h (KVM_EXIT_*) and Documentation/virt/kvm/api.rst, 5. The kvm_run structure, Linux 6.12",
        ..Rule::checked_by(faults::ended)
    },
    Rule {
        id: "FLW-EMULATION",
        per: "VM",
        looks_at: "kvm_emulate_insn events with failed emulation.",
        why: "The guest executed an instruction on memory that no RAM backs, or that a hypervisor intercepts, and KVM's emulator does \
              not know it. The guest gets #UD, or the VM stops. Causes: a memory region that the VMM did not map, page tables of \
              the guest that point into a device, stale nested state. It is no cost of the host's memory.",
        source: "arch/x86/kvm/x86.c (handle_emulation_failure) and arch/x86/kvm/emulate.c, Linux 6.12",
        ..Rule::checked_by(faults::emulation)
    },
    Rule {
        id: "FLW-STUCK",
        per: "VM",
        looks_at: "Exits for memory in a row from one instruction about one address.",
        requires: &[FactKind::Exits],
        limits: &[limit("exits in a row", walk::faults::REPEATS as f64, "exits")],
        why: "Where the host maps a page, the instruction is executed and the next exit comes from another one. Here the same one \
              stops again and again: the guest makes no progress. Causes: an instruction that is emulated over and over without \
              effect, a page that is mapped and unmapped again, memory attributes that never allow the access.",
        source: "arch/x86/kvm/mmu/mmu.c (kvm_mmu_page_fault), Linux 6.12; docs/read/flow.md, what went wrong",
        ..Rule::checked_by(faults::stuck)
    },
    Rule {
        id: "FLW-EXCEPTION",
        per: "VM",
        looks_at: "Exceptions that KVM injects: any #DF; #UD, #GP and others by their share of a vCPU's exits.",
        limits: &[limit("share of the vCPU's exits", faults::STORM, "share")],
        why: "KVM injects exceptions where the guest did something that the virtual CPU does not have: an instruction or an MSR that \
              the CPU model hides, memory that cannot be accessed. Some at boot are probes; a storm is a guest that keeps doing it.",
        source: "arch/x86/kvm/x86.c (kvm_inject_exception), Linux 6.12; Intel SDM vol. 3, 6.15 Exception and interrupt reference",
        ..Rule::checked_by(faults::exceptions)
    },
    Rule {
        id: "FLW-SHADOW",
        per: "VM",
        looks_at: "VMREAD and VMWRITE exits of L1 in most chains; without chains, their share of all exits.",
        requires: &[FactKind::Exits],
        limits: &[
            limit("per chain", nested::VMCS_PER_CHAIN, "exits per chain"),
            limit("or, where no chain is complete, share of all exits", nested::VMCS_WITHOUT_CHAINS, "share"),
        ],
        why: "Without VMCS shadowing, each VMREAD and VMWRITE of L1 exits, and L0 emulates it. With it, the CPU \
              reads and writes a shadow VMCS; only fields outside KVM's shadow list, such as HOST_RSP, still exit.",
        needs: Needs::Reload,
        source: "arch/x86/kvm/vmx/vmcs_shadow_fields.h and vmx.c (enable_shadow_vmcs), Linux 6.12; Intel SDM vol. 3, \
                 25.6.2 VMCS shadowing",
        ..Rule::checked_by(shadow)
    },
    Rule {
        id: "FLW-VLS",
        per: "VM",
        looks_at: "VMLOAD and VMSAVE exits of L1, where chains are recorded.",
        requires: &[FactKind::Exits],
        limits: &[limit("share of all exits", nested::SVM_SHARE, "share")],
        why: "Without virtual VMLOAD and VMSAVE, each of these instructions of L1 exits, and L0 copies the segment \
              state. CPUs with VLS execute them in the guest.",
        needs: Needs::Reload,
        source: "arch/x86/kvm/svm/svm.c (vls), Linux 6.12; AMD APM vol. 2, 15.33.1 Virtualizing VMLOAD and VMSAVE",
        ..Rule::checked_by(vls)
    },
    Rule {
        id: "FLW-VGIF",
        per: "VM",
        looks_at: "STGI and CLGI exits of L1, where chains are recorded.",
        requires: &[FactKind::Exits],
        limits: &[limit("share of all exits", nested::SVM_SHARE, "share")],
        why: "Without virtual GIF, each STGI and CLGI of L1 exits. CPUs with vGIF execute them in the guest.",
        needs: Needs::Reload,
        source: "arch/x86/kvm/svm/svm.c (vgif), Linux 6.12; AMD APM vol. 2, 15.33.2 Virtualizing STGI and CLGI",
        ..Rule::checked_by(vgif)
    },
    Rule {
        id: "FLW-PAUSE",
        per: "VM",
        looks_at: "PAUSE exits of each VM: their share of its vCPU time, their rate on its busiest vCPU, and short \
            bursts of one vCPU.",
        requires: &[FactKind::Exits],
        limits: &[
            limit("share of the VM's vCPU time", storms::PAUSE.share, "share"),
            limit("or exits per second of one vCPU", storms::PAUSE.per_second, ""),
            limit("or exits of one vCPU in a burst of 10 ms", storms::FEWEST_IN_BURST as f64, ""),
        ],
        why: "A PAUSE exit means that the guest spun longer than KVM's window (4,096 cycles) for a lock. With more runnable \
              vCPUs than CPUs the lock's holder is often preempted, and the waiters burn the CPU that it needs. KVM then \
              yields to another vCPU of the VM.",
        fix: &[
            "kvmscope check   # shows which threads share CPUs: pin vCPUs apart, or give the VM fewer vCPUs",
            "grep . /sys/module/kvm_intel/parameters/ple_* /sys/module/kvm_amd/parameters/pause_filter_*   # the window",
        ],
        source: "kvm_vcpu_on_spin in virt/kvm/kvm_main.c, ple_window in arch/x86/kvm/vmx/vmx.c and pause_filter_count in \
                 arch/x86/kvm/svm/svm.c, Linux 6.12; Intel SDM vol. 3, 25.1.3 PAUSE-loop exiting",
        ..Rule::checked_by(pause)
    },
    Rule {
        id: "FLW-IPI",
        per: "VM",
        looks_at: "Writes of the interrupt command register that exit: as MMIO, by x2APIC MSR, or reported by AVIC.",
        requires: &[FactKind::Exits],
        limits: &[
            limit("share of the VM's vCPU time", storms::IPI.share, "share"),
            limit("or exits per second of one vCPU", storms::IPI.per_second, ""),
        ],
        why: "Each write of the interrupt command register exits unless the hardware virtualizes IPIs (Intel IPI \
              virtualization, AMD AVIC), and the target vCPU is kicked or woken. Frequent wake-ups between a guest's vCPUs \
              are the usual cause.",
        fix: &[
            "perf stat -a -e irq_vectors:reschedule_entry,irq_vectors:call_function_entry -- sleep 5   # in the \
             guest: shows which IPIs",
            "cat /sys/module/kvm_intel/parameters/enable_ipiv /sys/module/kvm_amd/parameters/avic   # at L0: Y if \
             IPIs are virtualized",
        ],
        source: "kvm_apic_send_ipi in arch/x86/kvm/lapic.c, enable_ipiv in arch/x86/kvm/vmx/vmx.c (since 6.0), avic in \
                 arch/x86/kvm/svm/avic.c, Linux 6.12",
        ..Rule::checked_by(ipi)
    },
    Rule {
        id: "FLW-APIC",
        per: "VM",
        looks_at: "Exits for registers of the local APIC, other than its timer.",
        requires: &[FactKind::Exits],
        limits: &[
            limit("share of all exits", exits::APIC_SHARE, "share"),
            limit("and exits per second", exits::APIC_PER_SECOND, ""),
        ],
        why: "The guest accesses its local APIC, and the hardware or its settings require an exit for each access.",
        needs: Needs::Reload,
        source: "Intel SDM vol. 3, 30 APIC virtualization; AMD APM vol. 2, 15.29 AVIC; arch/x86/kvm/lapic.c and \
                 svm/avic.c, Linux 6.12; docs/use/check.md#avic",
        ..Rule::checked_by(apic)
    },
    Rule {
        id: "FLW-TIMER",
        per: "VM",
        looks_at: "Writes of TMICT and TSC_DEADLINE, and expiries of VMX's preemption timer.",
        requires: &[FactKind::Exits],
        limits: &[
            limit("share of the VM's vCPU time", storms::TIMER.share, "share"),
            limit("and exits per second of one vCPU", storms::TIMER_LEAST_PER_SECOND, ""),
            limit("or exits per second of one vCPU, whatever time they take", storms::TIMER.per_second, ""),
        ],
        why: "Each time the guest arms its timer it writes TSC_DEADLINE or TMICT, which exits even with APICv; on \
              Intel each expiry exits as well (VMX preemption timer). Use fewer timers, or fewer ticks of idle \
              vCPUs; the host has no setting for it.",
        fix: &["perf record -e timer:hrtimer_start -ag -- sleep 5 && perf report   # in the guest: shows what arms \
            timers"],
        source: "handle_fastpath_set_tscdeadline in arch/x86/kvm/x86.c, Linux 6.12",
        ..Rule::checked_by(timer)
    },
    Rule {
        id: "FLW-USERSPACE",
        per: "VM",
        looks_at: "Exits that return to the VMM: the time there, and their rate.",
        requires: &[FactKind::Exits],
        limits: &[
            limit("share of vCPU time", exits::USERSPACE_SHARE, "share"),
            limit("and exits per second and vCPU", exits::USERSPACE_LEAST_PER_SECOND, ""),
            limit("or exits per second and vCPU, whatever time they take", exits::USERSPACE_PER_SECOND, ""),
        ],
        why: "An exit that the VMM handles costs several times as much as one that the kernel handles: KVM_RUN \
              returns, the VMM emulates a device, and calls KVM_RUN again.",
        needs: Needs::Reload,
        source: "Documentation/virt/kvm/api.rst (KVM_RUN, KVM_IOEVENTFD, KVM_COALESCED_MMIO), Linux 6.12",
        ..Rule::checked_by(userspace)
    },
    Rule {
        id: "FLW-CLOCK",
        per: "VM",
        looks_at: "Exits for the ACPI PM timer, the PIT, the RTC and the HPET, by port and address: the time that they take.",
        requires: &[FactKind::Exits],
        limits: &[
            limit("share of vCPU time", clocks::CLOCK_SHARE, "share"),
            limit("of all exits, in an excerpt of few", clocks::OF_EXCERPT, "share"),
        ],
        why: "Each reading of an emulated clock is an exit, most of them to the VMM; a guest that has no better one reads it thousands of times \
              per second. kvm-clock, the TSC and Hyper-V's clock are read without an exit.",
        needs: Needs::Reload,
        source: "Documentation/virt/kvm/x86/timekeeping.rst, Linux 6.12; QEMU 9.0, docs/system/i386/hyperv.rst",
        ..Rule::checked_by(slow_clocks)
    },
    Rule {
        id: "FLW-EPT",
        per: "VM",
        looks_at: "EPT violations and nested page faults, by share of all exits and by rate.",
        requires: &[FactKind::Exits],
        limits: &[
            limit("share of all exits", exits::EPT_SHARE, "share"),
            limit("and page faults per second and vCPU", exits::EPT_PER_SECOND, ""),
        ],
        why: "The first access to each guest page, and to each page that the host reclaimed, is an exit that fills \
              one entry of the second-level page table. A huge page replaces 512 of these exits by one; preallocated \
              memory avoids them.",
        source: "arch/x86/kvm/mmu/tdp_mmu.c, Linux 6.12; Documentation/admin-guide/mm/transhuge.rst",
        ..Rule::checked_by(ept_storm)
    },
    Rule {
        id: "FLW-PREEMPT",
        per: "cause",
        looks_at: "vCPUs that were runnable while something else had their CPU, grouped by what ran there longest.",
        requires: &[FactKind::Switches],
        limits: &[limit("share of a vCPU's time", waiting::PREEMPT_SHARE, "share")],
        why: "The vCPU was runnable, but the host's scheduler ran something else on its CPU. The guest loses this \
              time; it shows there as steal time.",
        source: "sched_switch with prev_state R or R+ (include/trace/events/sched.h, Linux 6.12)",
        ..Rule::checked_by(preempted)
    },
    Rule {
        id: "FLW-HALTPOLL",
        per: "VM",
        looks_at: "Time in which KVM polled after a guest had halted.",
        limits: &[limit("share of the VM's vCPU time", storms::POLL_SHARE, "share")],
        why: "When a guest halts, KVM spins up to halt_poll_ns in case an interrupt comes soon. That shortens \
              wake-ups, but uses CPU time that another vCPU could use.",
        source: "Documentation/virt/kvm/halt-polling.rst, Linux 6.12 (x86 default 200,000 ns)",
        ..Rule::checked_by(halt_poll)
    },
    Rule {
        id: "FLW-STALE",
        per: "trace",
        looks_at: "Entries of LTTng's KVM probes with an impossible vcpu_id.",
        why: "LTTng's KVM probes copy the kernel's event prototypes by hand, and the kernel changed them in 5.10 and \
              5.16. These fields were ignored, and the levels were determined without them.",
        fix: &["kvmscope record --seconds 10"],
        source: "lttng-modules ed19c0a include/instrumentation/events/arch/x86/kvm/trace.h against \
                 arch/x86/kvm/trace.h of Linux 6.1",
        ..Rule::checked_by(stale)
    },
    Rule {
        id: "FLW-LOST",
        per: "trace",
        looks_at: "Events that the recorder dropped, as the file counts them and as gaps in its streams show them.",
        why: "The recorder's buffers overflowed, so events are missing. Times around the gaps are unknown, chains \
              across them are excluded from the statistics, and shares are of the recorded events.",
        fix: &["kvmscope record --seconds 10 --buffer-size 64M"],
        source: "Documentation/trace/ftrace.rst (buffer_size_kb), Linux 6.12",
        ..Rule::checked_by(lost)
    },
    Rule {
        id: "FLW-DAMAGE",
        per: "trace",
        looks_at: "Streams that are missing, truncated or unreadable.",
        why: "The file does not have all recorded events: it was truncated or damaged, or the recorder was killed. \
              Unreadable events are ignored, and times that depend on them are unknown.",
        fix: &["kvmscope record --seconds 10"],
        source: "docs/formats/formats.md; docs/read/flow.md, rule T19",
        ..Rule::checked_by(damaged)
    },
    Rule {
        id: "FLW-CONFLICT",
        per: "VM",
        looks_at: "Exits for which the entry before them and the events after them imply different levels.",
        why: "The entry requests before an exit and the events after it disagree about its level. The later event \
              was used. Possible causes: a restored or migrated guest, or unreported lost events.",
        source: "docs/read/flow.md, two witnesses",
        ..Rule::checked_by(level_conflicts)
    },
    Rule {
        id: "FLW-ALIGN",
        per: "machine",
        looks_at: "A guest's own events and exits against those of the level below: events at times when the vCPU did \
            not run, exits that were not reflected, offsets of the TSC that are missing.",
        why: "A guest records its own trace, so its vCPU was running at each event, and the level below reflected \
              each exit that the guest recorded. Where this does not hold, events were lost, the traces are of \
              different runs, or the clocks are aligned wrongly; do not trust times across both traces then.",
        fix: &[
            "kvmscope record --seconds 10 -o host   # on the host",
            "kvmscope record --seconds 10 -o guest --as L1   # in the guest, at the same time",
            "kvmscope join host guest -o both",
        ],
        source: "docs/read/alignment.md; kvm_write_tsc_offset in arch/x86/kvm/trace.h, Linux 6.12",
        ..Rule::checked_by(aligned)
    },
];

pub fn words() -> Vec<Words> {
    RULES.iter().map(Rule::words).collect()
}
