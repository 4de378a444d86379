//! Settings of the host, by tuned's profiles for KVM hosts, and rules that contradict each other on it.

use super::Rule;
use crate::placement::checks::{conflicts, knobs};
use base::Needs;

/// In the order in which equal findings are shown.
pub const RULES: &[Rule] = &[
    Rule {
        id: "PLC-TUNED",
        check: knobs::host,
        why: "tuned's profiles for KVM hosts set this otherwise. That is what a profile asks, not what was measured \
              here. If this is wrong: each costs something else: power, memory, fairness. Measure with the load that \
              matters.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "tuned 2.28, profiles throughput-performance and virtual-host",
    },
    Rule {
        id: "PLC-PARTITION",
        check: knobs::partition,
        why: "CPUs are isolated on this host, and this setting still brings work of the kernel to them. That is \
              what a profile asks, not what was measured here. If this is wrong: each costs something else: \
              statistics, watchdogs, fairness of the other CPUs. Measure with the load that matters.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "tuned 2.28, profiles cpu-partitioning and network-latency",
    },
    Rule {
        id: "PLC-REALTIME",
        check: knobs::real_time,
        why: "vCPUs have a real-time policy on this host, and this setting takes time from them or throttles them. \
              That is what a profile asks, not what was measured here. If this is wrong: with sched_rt_runtime_us \
              -1 a vCPU that never sleeps starves everything else on its CPU, threads of the kernel too.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "tuned 2.28, profiles realtime-virtual-host and realtime",
    },
    Rule {
        id: "PLC-SPINNING",
        check: knobs::disks,
        why: "Requests of several guests become requests at random places, for which a turning disk is slowest. If \
              this is wrong: for streams of one guest a turning disk is fast enough.",
        fix: &["lsblk -o NAME,ROTA,SIZE,MOUNTPOINTS   # which disk holds the guests' images?"],
        undo: &[],
        needs: Needs::Nothing,
        source: "Migrating the Ciena SIM Environment into the Cloud, December 2016, list of tunings (SSD for the host); Documentation/block/queue-sysfs.rst, rotational",
    },
    Rule {
        id: "PLC-THP",
        check: conflicts::huge_pages,
        why: "Two rules contradict each other here: khugepaged disturbs isolated CPUs, and guests without huge \
              pages of their own live on those that it makes. If this is wrong: with never, guests on small pages \
              miss the TLB more often.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "tuned 2.28, profile network-latency (never); Documentation/admin-guide/mm/transhuge.rst, Linux 6.12",
    },
    Rule {
        id: "PLC-BALANCE",
        check: conflicts::balancing,
        why: "Two rules contradict each other here: balancing faults take time from pinned vCPUs, and guests that \
              float need it to find their memory. If this is wrong: without balancing, memory of guests that float \
              stays on the node where it was first touched.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "tuned 2.28, profile network-latency (0); Documentation/admin-guide/sysctl/kernel.rst, numa_balancing, Linux 6.12",
    },
    Rule {
        id: "PLC-QUEUES",
        check: conflicts::queues,
        why: "Two rules contradict each other here: one queue is too few for these vCPUs, and each queue more is a \
              worker that has no CPU. If this is wrong: more queues without more CPUs move the waiting from the \
              queue to the worker.",
        fix: &["kvmscope compare A B   # the same load with more queues: that decides, no rule does"],
        undo: &[],
        needs: Needs::Reload,
        source: "PLC-MQ and PLC-WORKERS",
    },
];
