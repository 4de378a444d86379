//! Lines of the kernel's log that say what is wrong.

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
    pub words: &'static [&'static str],
    pub meaning: &'static str,
    /// Whether it explains lost time by itself.
    pub is_grave: bool,
    pub next: &'static str,
}

const fn kind(
    words: &'static [&'static str],
    is_grave: bool,
    meaning: &'static str,
    next: &'static str,
) -> ComplaintKind {
    ComplaintKind { words, meaning, is_grave, next }
}

/// What RCU's own thread lacked.
const STARVED: &str =
    "RCU's own thread did not get a CPU for many seconds; inside a guest most often a vCPU that the host did not run";

/// What to ask of a VM that KVM gave up on.
const STOPPED: &str = "dmesg | grep -i kvm; uname -r; virsh domstate DOMAIN --reason   # what was where it stopped; the lines below it have the registers";

/// What the kernel did to a VM for want of memory; of the last name, that of Proxmox. Which memory it was is in another line.
const KILLED: &str = "memory ran out, and the kernel killed a QEMU: its VM is gone";

/// Where the kernel says which memory ran out.
const WHOSE: &str = "dmesg | grep -E 'oom-kill:|Node [0-9]+ .* free:'; free -m   # constraint= says whose memory ran out, the lines `Node` what each node had";

/// What to ask of a group without memory.
const GROUP: &str = "grep . /sys/fs/cgroup/GROUP/memory.max /sys/fs/cgroup/GROUP/memory.events   # GROUP: the line `oom-kill:` names it";

/// Sources: Linux 6.12, kernel/time/clocksource.c and arch/x86/kernel/tsc.c; kernel/watchdog.c; kernel/rcu/tree_stall.h; kernel/hung_task.c;
/// kernel/sched/rt.c; drivers/edac/edac_mc.c; kernel/time/hrtimer.c; kernel/events/core.c; arch/x86/kernel/nmi.c; mm/oom_kill.c; arch/x86/kvm/x86.c;
/// arch/x86/kvm/vmx/vmx.c and capabilities; drivers/thermal/intel/therm_throt.c; kernel/workqueue.c;
/// Documentation/virt/kvm/api.rst, KVM_EXIT_INTERNAL_ERROR; arch/x86/kernel/cpu/mce/core.c and
/// bus_lock.c.
/// What ended a VM comes before what slowed it down, since findings keep this order; of two kinds that fit a line the first counts.
pub const COMPLAINTS: &[ComplaintKind] = &[
    kind(
        &["kvm internal error. suberror: 1"],
        true,
        "KVM could not emulate an instruction of the guest, and stopped the VM",
        STOPPED,
    ),
    kind(
        &["kvm internal error. suberror: 2"],
        true,
        "an exception met another one that KVM could not handle, and stopped the VM",
        STOPPED,
    ),
    kind(
        &["kvm internal error. suberror: 3"],
        true,
        "an exit came while an interrupt or exception was being delivered, for a reason that KVM cannot go on from: it stopped the VM",
        STOPPED,
    ),
    kind(&["kvm internal error"], true, "KVM met what it cannot go on from, and stopped the VM", STOPPED),
    kind(
        &["memory cgroup out of memory", "(qemu-"],
        true,
        "a group reached the limit of its memory, and the kernel killed a QEMU: its VM is gone",
        GROUP,
    ),
    kind(
        &["memory cgroup out of memory", "(kvm)"],
        true,
        "a group reached the limit of its memory, and the kernel killed a QEMU: its VM is gone",
        GROUP,
    ),
    kind(&["out of memory: killed process", "(qemu-system"], true, KILLED, WHOSE),
    kind(&["out of memory: killed process", "(qemu-kvm)"], true, KILLED, WHOSE),
    kind(&["out of memory: killed process", "(kvm)"], true, KILLED, WHOSE),
    kind(
        &["memory cgroup out of memory"],
        true,
        "a group reached the limit of its memory, and the kernel killed a process of it",
        GROUP,
    ),
    kind(&["out of memory: killed process"], true, "memory ran out, and the kernel killed a process", WHOSE),
    kind(
        &["oom-kill:constraint=constraint_memory_policy"],
        true,
        "memory ran out on the nodes that a memory policy allows (`nodemask=`): other nodes may have had memory left",
        "numastat -m; numastat -p PID   # what each node has left, and where a VM's memory lies; numatune says which nodes its policy allows",
    ),
    kind(
        &["oom-kill:constraint=constraint_cpuset"],
        true,
        "memory ran out on the nodes that a cpuset allows (`mems_allowed=`): other nodes may have had memory left",
        "numastat -m; cat /sys/fs/cgroup/GROUP/cpuset.mems.effective   # what each node has left, and which ones the group may use",
    ),
    kind(
        &["oom-kill:constraint=constraint_memcg"],
        true,
        "a group reached the limit of its memory (`oom_memcg=`), whatever the host had left",
        GROUP,
    ),
    kind(
        &["oom-kill:constraint=constraint_none"],
        true,
        "the memory of the whole host ran out: no policy, cpuset or group had limited it",
        "free -m; grep . /proc/pressure/memory   # how much is left now",
    ),
    kind(
        &["smp vm created on host with unstable tsc"],
        false,
        "this host's TSC is not stable, so that of a guest with several vCPUs is not reliable: KVM offers it no stable clock, and programs in the guest read the time by system calls",
        "dmesg | grep -i -E 'tsc|clocksource'   # on the host: who marked it unstable, and why",
    ),
    kind(
        &["tsc", "unstable"],
        true,
        "the kernel does not trust the TSC and reads another clock: inside a guest hpet and acpi_pm cost an exit each time, kvm-clock none",
        "cat /sys/devices/system/clocksource/clocksource0/{current,available}_clocksource   # here, and on the host below",
    ),
    kind(
        &["switched to clocksource", "hpet"],
        true,
        "time is read from the HPET: each reading costs about a microsecond, inside a guest an exit to its VMM",
        "cat /sys/devices/system/clocksource/clocksource0/available_clocksource   # is tsc or kvm-clock there?",
    ),
    kind(
        &["switched to clocksource", "acpi_pm"],
        true,
        "time is read from the ACPI timer: each reading costs about a microsecond, inside a guest an exit to its VMM",
        "cat /sys/devices/system/clocksource/clocksource0/available_clocksource   # is tsc or kvm-clock there?",
    ),
    kind(
        &["soft lockup"],
        true,
        "a CPU ran nothing else for many seconds; inside a guest this is most often a vCPU that the host did not run",
        "mpstat -P ALL 1 5   # inside: %steal; on the host: kvmscope record --seconds 10 -o again",
    ),
    kind(
        &["rcu", "kthread starved"],
        true,
        STARVED,
        "mpstat -P ALL 1 5   # inside: %steal; on the host: kvmscope record --seconds 10 -o again",
    ),
    kind(
        &["rcu", "kthread timer wakeup didn't happen"],
        true,
        STARVED,
        "mpstat -P ALL 1 5   # inside: %steal; on the host: kvmscope record --seconds 10 -o again",
    ),
    kind(
        &["rcu", "stall"],
        true,
        "a CPU did not pass through the scheduler for many seconds; inside a guest most often a vCPU that the host did not run",
        "mpstat -P ALL 1 5   # inside: %steal; on the host: kvmscope record --seconds 10 -o again",
    ),
    kind(
        &["blocked for more than"],
        true,
        "a task waited for minutes without a CPU: for a disk, for memory or for a lock",
        "grep . /proc/pressure/*; iostat -x 1 5   # what is waited for",
    ),
    kind(
        &["rt throttling activated"],
        true,
        "threads with a real-time policy used up their share and were stopped for the rest of the period",
        "sysctl kernel.sched_rt_runtime_us kernel.sched_rt_period_us; ps -eLo cls,rtprio,pcpu,comm | grep -E 'FF|RR'",
    ),
    kind(
        &["hrtimer: interrupt took"],
        false,
        "a timer's interrupt took long: one of its callbacks did, or the CPU was not run meanwhile, by the host below or by firmware",
        "kvmscope bench jitter --seconds 10   # gaps that nothing here explains",
    ),
    kind(
        &["perf: interrupt took too long"],
        false,
        "interrupts of perf take long here, which is usual where a host below emulates the counters",
        "sysctl kernel.perf_event_max_sample_rate   # the rate that is left",
    ),
    kind(
        &["nmi handler", "took too long"],
        false,
        "an NMI took long: its handler did, or the CPU was not run meanwhile, by the host below or by firmware",
        "kvmscope bench jitter --seconds 10   # gaps that nothing here explains",
    ),
    kind(
        &["clock throttled"],
        true,
        "CPUs are slowed down because they are hot",
        "turbostat --show Core,CPU,Bzy_MHz,CoreTmp -i 5   # how fast they run",
    ),
    kind(
        &["temperature is above threshold"],
        true,
        "CPUs are slowed down because they are hot",
        "turbostat --show Core,CPU,Bzy_MHz,CoreTmp -i 5   # how fast they run",
    ),
    kind(
        &["tsc frequency mismatch"],
        false,
        "the guest expects another rate of the TSC than this host's, and the processor cannot scale it: the guest's time goes at the wrong speed where it reads the TSC",
        "grep -c -w tsc_scaling /proc/cpuinfo   # 0: start the VM anew here, or move it to hosts whose TSC has one rate",
    ),
    kind(
        &["[hardware error]"],
        true,
        "the hardware reported an error: of the processor, the memory or a card",
        "ras-mc-ctl --errors; journalctl -k | grep -i -A4 'hardware error'   # which CPU or module, and how often",
    ),
    kind(
        &["edac mc", " ce "],
        false,
        "the memory corrected errors of its own: the line names the module; many of them announce one that cannot be corrected",
        "grep . /sys/devices/system/edac/mc/mc*/ce_count   # how many, and whether they grow",
    ),
    kind(
        &["edac mc", " ue "],
        true,
        "the memory had an error that could not be corrected: the line names the module",
        "grep . /sys/devices/system/edac/mc/mc*/ue_count   # how many",
    ),
    kind(
        &["split lock detection", "trap"],
        false,
        "a program locked memory across two cache lines; the kernel may slow it down for that, and a vCPU with it",
        "sysctl kernel.split_lock_mitigate   # 1: each such access waits; the line names the thread",
    ),
    kind(
        &["workqueue:", "hogged cpu"],
        false,
        "a worker of the kernel kept a CPU for long: who is bound to that CPU waited",
        "cat /sys/devices/virtual/workqueue/cpumask   # CPUs that unbound workers may use; the line names the function",
    ),
    kind(
        &["kvm:", "disabled by bios"],
        true,
        "the firmware has switched virtualization off: VMs are emulated, 10 to 50 times slower",
        "grep -c -w -E 'vmx|svm' /proc/cpuinfo   # 0: switch it on in the firmware's setup, or in the VMM below",
    ),
    kind(
        &["kvm:", "no hardware support"],
        true,
        "the CPU, or the VMM below, offers no virtualization: VMs are emulated, 10 to 50 times slower",
        "grep -c -w -E 'vmx|svm' /proc/cpuinfo   # 0: switch it on in the firmware's setup, or in the VMM below",
    ),
    kind(
        &["reason: oomkilled"],
        true,
        "a container reached its limit of memory and the kernel killed it: in a pod of virt-launcher that ends the VM",
        "kubectl get vmi NAME -o yaml | grep -A8 resources   # the guest's memory and QEMU's own must fit into limits.memory; without that KubeVirt reckons it itself",
    ),
    kind(
        &["unhandled", "msr"],
        false,
        "a guest asks for a register that KVM does not have; each time costs an exit",
        "dmesg | grep -c -i -E 'unhandled (rd|wr)msr'   # how often",
    ),
    kind(
        &["ignored", "msr"],
        false,
        "a guest asks for a register that KVM does not have; each time costs an exit",
        "dmesg | grep -c -i -E 'ignored (rd|wr)msr'   # how often",
    ),
];

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
