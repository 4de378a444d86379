//! Settings of the host, by tuned's profiles for KVM hosts, and rules that contradict each other on it.

use super::Rule;
use crate::placement::checks::{conflicts, knobs};
use base::Needs;

/// In the order in which equal findings are shown.
pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "PLC-TUNED",
        per: "setting",
        looks_at: "Settings of a host with VMs that tuned's profiles throughput-performance and virtual-host change.",
        why: "tuned's profiles for KVM hosts use another value. This is a profile's recommendation, not a \
            measurement on this host. Caveat: each setting has a price: power, memory, fairness. Measure with the \
            real load.",
        source: "tuned 2.28, profiles throughput-performance and virtual-host",
        ..Rule::checked_by(knobs::host)
    },
    Rule {
        id: "PLC-PARTITION",
        per: "setting",
        looks_at: "On a host with isolated CPUs: settings that tuned's profiles cpu-partitioning and network-latency \
            change, kernel work and timer ticks on the isolated CPUs.",
        why: "CPUs are isolated on this host, and this setting still lets the kernel run work on them. This is a \
            profile's recommendation, not a measurement on this host. Caveat: each setting has a price: statistics, \
            watchdogs, fairness of the other CPUs. Measure with the real load.",
        source: "tuned 2.28, profiles cpu-partitioning and network-latency",
        ..Rule::checked_by(knobs::partition)
    },
    Rule {
        id: "PLC-REALTIME",
        per: "setting",
        looks_at: "On a host whose vCPUs have a real-time policy: settings that tuned's profiles realtime and \
            realtime-virtual-host change.",
        why: "vCPUs have a real-time policy on this host, and this setting takes time from them or throttles them. \
            This is a profile's recommendation, not a measurement on this host. Caveat: with sched_rt_runtime_us -1 \
            a vCPU that never sleeps starves everything else on its CPU, including kernel threads.",
        source: "tuned 2.28, profiles realtime-virtual-host and realtime",
        ..Rule::checked_by(knobs::real_time)
    },
    Rule {
        id: "PLC-SPINNING",
        per: "disk",
        looks_at: "Disks of the host that are rotational.",
        why: "Requests of several guests add up to random access, which is slowest on a rotational disk. Caveat: for \
            sequential access by one guest a rotational disk is fast enough.",
        fix: &["lsblk -o NAME,ROTA,SIZE,MOUNTPOINTS   # which disk holds the guests' images?"],
        source: "Migrating the Ciena SIM Environment into the Cloud, December 2016, list of tunings (SSD for the host); Documentation/block/queue-sysfs.rst, rotational",
        ..Rule::checked_by(knobs::disks)
    },
    Rule {
        id: "PLC-THP",
        per: "host",
        looks_at: "Transparent huge pages, where CPUs are isolated and VMs have no <hugepages/>.",
        why: "Two rules disagree here: khugepaged disturbs isolated CPUs, and guests without huge pages of their own \
            depend on those that it makes. Caveat: with never, guests on small pages have more TLB misses.",
        source: "tuned 2.28, profile network-latency (never); Documentation/admin-guide/mm/transhuge.rst, Linux 6.12",
        ..Rule::checked_by(conflicts::huge_pages)
    },
    Rule {
        id: "PLC-BALANCE",
        per: "host",
        looks_at: "Automatic NUMA balancing, where CPUs are isolated and some VMs are pinned and others are not.",
        why: "Two rules disagree here: NUMA balancing faults take time from pinned vCPUs, and unpinned guests need \
            balancing to bring memory close. Caveat: without balancing, memory of unpinned guests stays on the node \
            where it was first touched.",
        source: "tuned 2.28, profile network-latency (0); Documentation/admin-guide/sysctl/kernel.rst, numa_balancing, Linux 6.12",
        ..Rule::checked_by(conflicts::balancing)
    },
    Rule {
        id: "PLC-QUEUES",
        per: "interface",
        looks_at: "Interfaces for which PLC-MQ asks for more queues and PLC-WORKERS for fewer.",
        why: "Two rules disagree here: one queue is too few for these vCPUs, and each further queue adds a worker \
            without a CPU. Caveat: more queues without more CPUs only move the waiting from the queue to the worker.",
        fix: &["kvmscope compare A B   # measure the same load with more queues; no rule can decide it"],
        needs: Needs::Reload,
        source: "PLC-MQ and PLC-WORKERS",
        ..Rule::checked_by(conflicts::queues)
    },
];
