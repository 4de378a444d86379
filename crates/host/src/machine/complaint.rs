//! Lines of the kernel's log that say what is wrong.

use std::sync::LazyLock;

/// What the kernel says is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Its place in [`COMPLAINTS`].
    pub kind: usize,
    /// Its words, as far as people read them.
    pub line: String,
}

/// Letters of a line that are kept.
const MOST_LETTERS: usize = 120;

/// What the kernel prints, what it means, and what to ask next.
pub struct ComplaintKind {
    /// Every one of these stands in the line, in small letters.
    pub words: Vec<&'static str>,
    pub meaning: &'static str,
    /// Whether it explains lost time by itself.
    pub is_grave: bool,
    pub next: &'static str,
    /// First words of the kind that follows from this one.
    pub explains: Option<&'static str>,
}

/// Sources: Linux 6.12, kernel/time/clocksource.c and arch/x86/kernel/tsc.c; kernel/watchdog.c; kernel/rcu/tree_stall.h; kernel/hung_task.c;
/// kernel/sched/rt.c; net/sunrpc/clnt.c; drivers/scsi/libiscsi.c and scsi_transport_iscsi.c; net/ceph/osdmap.c; drivers/nvme/host/pci.c; block/blk-core.c; drivers/edac/edac_mc.c; kernel/time/hrtimer.c; kernel/events/core.c; arch/x86/kernel/nmi.c; mm/oom_kill.c; arch/x86/kvm/x86.c;
/// arch/x86/kvm/vmx/vmx.c and capabilities; arch/x86/kvm/svm/svm.c (npt); lib/bug.c, kernel/exit.c, arch/x86/mm/extable.c; drivers/thermal/intel/therm_throt.c; kernel/workqueue.c;
/// Documentation/virt/kvm/api.rst, KVM_EXIT_INTERNAL_ERROR; arch/x86/kernel/cpu/mce/core.c and
/// bus_lock.c. QEMU 8.2: migration/savevm.c and ram.c, hw/virtio/virtio.c, target/i386/cpu.c.
pub static COMPLAINTS: LazyLock<Vec<ComplaintKind>> = LazyLock::new(|| {
    let rows = include_str!("complaint.tsv").lines().filter(|line| !line.starts_with("# "));
    let kinds = rows.filter_map(|row| {
        let [words, is_grave, explains, meaning, next] = row.split('\t').collect::<Vec<_>>().try_into().ok()?;
        let (words, is_grave) = (words.split(" + ").collect(), is_grave == "yes");
        let explains = Some(explains).filter(|explains| *explains != "-");
        Some(ComplaintKind { words, meaning, is_grave, next, explains })
    });
    kinds.collect()
});

impl Complaint {
    /// What a line of the log complains of.
    pub fn of(line: &str) -> Option<Self> {
        let small = line.to_ascii_lowercase();
        let has = |kind: &ComplaintKind| kind.words.iter().all(|word| small.contains(word));
        let line = base::plain::beginning(line, MOST_LETTERS).to_owned();
        COMPLAINTS.iter().position(has).map(|kind| Self { kind, line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_kernels_are_told_from_others() {
        for (line, words) in [
            (
                "clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable because the skew is too large:",
                "tsc",
            ),
            ("tsc: Marking TSC unstable due to clocksource watchdog", "tsc"),
            ("clocksource: Switched to clocksource hpet", "switched to clocksource"),
            ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [qemu-system-x86:4242]", "soft lockup"),
            ("watchdog: BUG: soft lockup - CPU#1 stuck for 2471s! [CPU 0/KVM:31664]", "soft lockup"),
            ("rcu: INFO: rcu_sched detected stalls on CPUs/tasks:", "rcu"),
            ("INFO: task qemu-kvm:4242 blocked for more than 120 seconds.", "blocked for more than"),
            ("Out of memory: Killed process 77 (qemu-kvm) total-vm:1kB", "out of memory: killed process"),
            ("mce: [Hardware Error]: Machine check events logged", "[hardware error]"),
            (
                "x86/split lock detection: #AC: CPU 0/KVM/77 took a split_lock trap at address: 0x1",
                "split lock detection",
            ),
            ("workqueue: drain_vmap_area_work hogged CPU for >10000us 4 times", "workqueue:"),
            ("rcu: rcu_preempt kthread starved for 2101 jiffies! g9 f0x0 RCU_GP_WAIT_FQS(5)", "rcu"),
            ("kvm [4242]: vcpu0, guest rIP: 0xffffffff8106 unhandled rdmsr: 0x140", "unhandled"),
            (
                "kvm: SMP vm created on host with unstable TSC; guest TSC will not be reliable",
                "smp vm created on host with unstable tsc",
            ),
            (
                "oom-kill:constraint=CONSTRAINT_MEMORY_POLICY,nodemask=1,cpuset=emulator,mems_allowed=0-1,task=qemu-system-x86",
                "oom-kill:constraint=constraint_memory_policy",
            ),
            ("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=kvm", "oom-kill:constraint=constraint_none"),
            (
                "mce: CPU14: Core temperature is above threshold, cpu clock is throttled",
                "temperature is above threshold",
            ),
            ("EDAC MC2: 1 CE memory read error on CPU_SrcID#1_MC#0_Chan#1_DIMM#0 (channel:1)", "edac mc"),
        ] {
            let complaint = Complaint::of(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(COMPLAINTS[complaint.kind].words[0], words, "{line}");
        }
        for line in [
            "clocksource: Switched to clocksource tsc",
            "tsc: Detected 2100.000 MHz processor",
            "kvm: nested virtualization enabled",
            "x86/split lock detection: #AC: crashing the kernel on kernel split_locks and warning on user-space split_locks",
        ] {
            assert_eq!(Complaint::of(line), None, "{line}");
        }
    }
}
