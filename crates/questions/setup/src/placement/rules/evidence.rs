//! Evidence that contradicts itself or was taken on an unstable machine.

use super::Rule;
use crate::placement::below;
use crate::placement::checks::{evidence, polling};
use crate::placement::model::UNSTABLE_STEAL;
use base::rule::limit;
use base::{FactKind, Needs};

/// In the order in which equal findings are shown.
pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "EVD-ORDER",
        per: "sample",
        looks_at: "CPU times of the same threads in two samples of top: an earlier sample has less.",
        requires: &[FactKind::Ran],
        why: "The CPU time of a thread never decreases. A sample with more of it was taken later, wherever it appears. Caveat: if the samples are \
              of two boots or two VMs, their times cannot be compared at all.",
        fix: &["date; top -H -b -n 2 -d 5   # with timestamps, twice, before and after each change"],
        source: "top(1), TIME+; Documentation/filesystems/proc.rst, stat (utime, stime)",
        ..Rule::checked_by(evidence::order)
    },
    Rule {
        id: "EVD-MASK",
        per: "VM",
        looks_at: "The CPU on which a thread was last seen, against its affinity mask.",
        requires: &[FactKind::Masks, FactKind::Seen],
        why: "A thread runs only within its mask. If it was seen outside, either it had another mask then, or the \
            samples were taken at different times. Caveat: column P shows only the last CPU, so it can contradict a \
            mask but never prove one.",
        fix: &["for t in /proc/PID/task/*; do grep -H Cpus_allowed_list $t/status; done   # the current masks"],
        source: "top(1), P (last used CPU); sched_setaffinity(2)",
        ..Rule::checked_by(evidence::mask)
    },
    Rule {
        id: "EVD-PINS",
        per: "VM",
        looks_at: "Emulator pins that were reported several times and differ.",
        requires: &[FactKind::Definitions],
        why: "A pin was reported more than once, with different values; only one of them applied at a time. The last \
            one is used. Caveat: findings about the other placement are missing here.",
        fix: &["virsh emulatorpin DOMAIN   # the current setting"],
        source: "virsh(1), emulatorpin",
        ..Rule::checked_by(evidence::pins)
    },
    Rule {
        id: "EVD-CPU",
        per: "CPU",
        looks_at: "Threads that were seen on one CPU, and the CPU time that they used together: more than a CPU can give.",
        requires: &[FactKind::Cpus, FactKind::Masks, FactKind::Ran, FactKind::Waited],
        limits: &[limit(
            "ran, as a share of a CPU, from which a thread has one nearly for itself",
            evidence::WHOLE,
            "share",
        )],
        why: "A CPU gives no more than its own time. Threads that used more of it together were not there all the time, \
            or the numbers are of different moments. Caveat: the last CPU of a thread that may run elsewhere is one \
            sighting; it may just have moved there.",
        fix: &["pidstat -t -p ALL 1 5   # shares and CPUs of the threads, at one time"],
        source: "top(1), P (last used CPU) and %CPU; proc_pid_stat(5), processor",
        ..Rule::checked_by(evidence::crowd)
    },
    Rule {
        id: "EVD-HOSTS",
        per: "VM",
        looks_at: "CPUs in pins that the pasted list of CPUs does not have: it may be of another host.",
        requires: &[FactKind::Cpus, FactKind::Definitions],
        why: "Pins to CPUs that a host does not have cannot be of that host: the texts may be of two hosts, or the list \
            of CPUs is not whole. Caveat: lscpu without --all leaves out offline CPUs.",
        fix: &["hostname; lscpu --all -e; virsh vcpupin DOMAIN   # all on one host"],
        source: "lscpu(1), --all; virsh(1), vcpupin",
        ..Rule::checked_by(evidence::hosts)
    },
    Rule {
        id: "EVD-PMD",
        per: "machine",
        looks_at: "pmd-cpu-mask of Open vSwitch, against the list of its polling threads.",
        requires: &[FactKind::Switch],
        why: "Open vSwitch starts a polling thread on each online CPU of its mask. A list that does not match the \
            mask was taken at another time. Caveat: a switch that is just starting has no polling thread yet.",
        fix: &["ovs-vsctl get Open_vSwitch . other_config; ovs-appctl dpif-netdev/pmd-rxq-show   # both at the same \
            time"],
        source: "ovs-vswitchd.conf.db(5), pmd-cpu-mask, Open vSwitch 3.1",
        ..Rule::checked_by(polling::contradicting)
    },
    Rule {
        id: "PLC-BED",
        per: "host",
        looks_at: "Steal time of each CPU between two samples, and reported limits of VMs on the host below.",
        requires: &[FactKind::Usage],
        limits: &[
            limit("share of a CPU", UNSTABLE_STEAL, "share"),
            limit("by which a guest may be off its limit, of the limit", below::AT_LIMIT, "share"),
            limit("of the periods in which it was throttled", below::FELT, "share"),
        ],
        why: "The hypervisor below this machine took CPU time from it, since others ran there or a quota of this VM was used up: a throttled vCPU is \
            ready and does not run, which is steal. Waiting that this causes looks like contention here. Caveat: until it is gone, none of the other \
            findings can be trusted.",
        fix: &[
            "mpstat -P ALL 2 5   # is it still there?",
            "# only the operator of the host below can end it: dedicated CPUs for this VM (no shared or burstable type), fewer VMs next to it, or another host",
        ],
        needs: Needs::OuterLevel,
        source: "Documentation/filesystems/proc.rst, /proc/stat (steal), Linux 6.12; the threshold of 5 % is our own",
        ..Rule::checked_by(evidence::steal)
    },
];
