//! Evidence that contradicts itself or was taken on an unstable machine.

use super::Rule;
use crate::placement::checks::{evidence, polling};
use base::Needs;

/// In the order in which equal findings are shown.
pub const RULES: &[Rule] = &[
    Rule {
        id: "EVD-ORDER",
        check: evidence::order,
        why: "CPU time of a thread never falls. A screen with more of it was taken later, whatever its place says. If \
              this is wrong: if the screens are of two boots or two VMs, their times do not compare at all.",
        fix: &["date; top -H -b -n 2 -d 5   # with the date, twice, before and after each change"],
        undo: &[],
        needs: Needs::Nothing,
        source: "top(1), TIME+; Documentation/filesystems/proc.rst, stat (utime, stime)",
    },
    Rule {
        id: "EVD-MASK",
        check: evidence::mask,
        why: "A thread runs within its mask only. Seen outside, either another mask held at that moment, or the \
              pieces of evidence are of different moments. If this is wrong: column P names the last CPU only, so it \
              can contradict a mask and never prove one.",
        fix: &["for t in /proc/PID/task/*; do grep -H Cpus_allowed_list $t/status; done   # the masks in force, now"],
        undo: &[],
        needs: Needs::Nothing,
        source: "top(1), P (last used CPU); sched_setaffinity(2)",
    },
    Rule {
        id: "EVD-PINS",
        check: evidence::pins,
        why: "A pin was reported more than once, with different values; only one of them held at a time. The last one is taken. \
              If this is wrong: findings about the other placement are missing here.",
        fix: &["virsh emulatorpin DOMAIN   # what is asked for, now"],
        undo: &[],
        needs: Needs::Nothing,
        source: "virsh(1), emulatorpin",
    },
    Rule {
        id: "EVD-PMD",
        check: polling::contradicting,
        why: "The switch makes a polling thread on each CPU of its mask that runs. A list that does not fit the mask is of \
              another moment. If this is wrong: a switch that is just starting has no polling thread yet.",
        fix: &["ovs-vsctl get Open_vSwitch . other_config; ovs-appctl dpif-netdev/pmd-rxq-show   # both, now"],
        undo: &[],
        needs: Needs::Nothing,
        source: "ovs-vswitchd.conf.db(5), pmd-cpu-mask, Open vSwitch 3.1",
    },
    Rule {
        id: "PLC-BED",
        check: evidence::steal,
        why: "The machine below took time from this one. Waiting that it causes looks like contention here. If this \
              is wrong: none of the other findings can be trusted before this one is gone.",
        fix: &["mpstat -P ALL 2 5   # is it still there?"],
        undo: &[],
        needs: Needs::OuterLevel,
        source: "Documentation/filesystems/proc.rst, /proc/stat (steal), Linux 6.12; the threshold of 5 % is our own",
    },
];
