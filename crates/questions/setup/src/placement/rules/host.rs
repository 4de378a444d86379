//! Settings of the host, by tuned's profiles for KVM hosts, and rules that contradict each other on it.

use super::Rule;
use crate::placement::checks::{
    conflicts, disk_limits, frequency, full_node, halt_polling, holders, kernel_work, knobs, strain, swap, withheld,
};
use base::rule::limit;
use base::{FactKind, Needs};

/// In the order in which equal findings are shown.
pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "PLC-SWAP",
        per: "host",
        looks_at: "Memory swapped to a disk and back, by vmstat.",
        requires: &[FactKind::Paging],
        limits: &[
            limit("in or out", swap::SWAPPING, "bytes a second"),
            limit(
                "available relative to swapped memory, from which on the host is not short of memory",
                swap::LEFT,
                "ratio",
            ),
            limit("of all memory, that guests may have", swap::FOR_GUESTS, "share"),
            limit("of all memory, that a process of no VM has", holders::MUCH, "share"),
        ],
        why: "A guest that touches a swapped-out page stops until it is read back, which nothing inside the guest shows. Either the host has less \
              memory than its guests touch, or other processes have it, or something withholds it: a group's limit, a node that VMs are bound to, \
              unused huge pages. Caveat: \
            vmstat's first line is an average since boot.",
        source: "vmstat(8), si and so; the threshold is our own",
        ..Rule::checked_by(swap::swap)
    },
    Rule {
        id: "PLC-PRESSURE",
        per: "resource",
        looks_at: "The kernel's account of what tasks wait for (/proc/pressure), of the host or of a group; the run queue of \
            all CPUs (vmstat, sar -q), where it is known how many there are; allocations that free pages themselves (/proc/vmstat).",
        requires: &[FactKind::Pressure],
        limits: &[
            limit("of the time", strain::PRESSED, "share"),
            limit("tasks for each CPU", strain::QUEUED, "tasks"),
            limit("allocations that wait for pages", strain::OFTEN, "times per second"),
            limit("a group reaches its limit of memory", withheld::REACHED, "times per second"),
            limit("what a group did of its limit of a disk", disk_limits::AT_LIMIT, "share"),
            limit("huge pages free, of what is available", withheld::UNUSED, "ratio"),
            limit("free of a node that is full", full_node::FULL, "share"),
            limit("free of a node that has room", full_node::ROOMY, "share"),
        ],
        why: "The kernel counts the time in which some tasks were stalled for lack of this resource; its run queue has the tasks that want a CPU, \
              and a vCPU's thread is a task like any other. Caveat: only the files of each group show whose tasks they are (cpu.pressure, \
              memory.pressure).",
        source: "Documentation/accounting/psi.rst, Linux 6.12; vmstat(8), sar(1); the thresholds are our own",
        ..Rule::checked_by(strain::pressure)
    },
    Rule {
        id: "PLC-IOWAIT",
        per: "host",
        looks_at: "The part of all CPUs' time that was idle while tasks waited for disks, and the disks' own numbers.",
        requires: &[FactKind::Disks],
        limits: &[
            limit("of the time", strain::WAITING, "share"),
            limit("busy, of a disk", strain::FULL, "share"),
            limit("a request of it", strain::SLOW_NS, "ns"),
        ],
        why: "Tasks wait for disks while CPUs are idle: more CPUs or other pins gain nothing. Caveat: a CPU with other work hides such waiting, \
              so a small number means little.",
        fix: &["iostat -x 1 5; pidstat -d 1 5   # which disk, and who asks it"],
        source: "Documentation/filesystems/proc.rst, /proc/stat (iowait), Linux 6.12; the threshold is our own",
        ..Rule::checked_by(strain::disks)
    },
    Rule {
        id: "PLC-THROTTLED",
        per: "group",
        looks_at: "cpu.max and cpu.stat of a group of which no thread of a VM is known, as one sees them from within a pod.",
        requires: &[FactKind::Quotas],
        limits: &[limit("throttled, of its periods", strain::THROTTLED, "share")],
        why: "Once a group has used up its time, all of its threads stop until the next period: a guest in it is stopped, which looks like steal \
              time from inside. Caveat: one copy of cpu.stat counts from the start of the group on.",
        fix: &[
            "echo max > /sys/fs/cgroup/GROUP/cpu.max   # by its manager: resources.limits.cpu of a pod, CPUQuota= of a unit",
        ],
        source: "Documentation/admin-guide/cgroup-v2.rst, cpu.max and cpu.stat, Linux 6.12; the threshold is our own",
        ..Rule::checked_by(strain::throttled)
    },
    Rule {
        id: "PLC-WAITED",
        per: "host",
        looks_at: "Sums of what threads of guests ran and waited, as virsh domstats (vcpu.N.delay) and /proc/PID/schedstat have them.",
        requires: &[FactKind::Waited],
        limits: &[limit("of running and waiting", strain::WAITED, "share")],
        why: "A vCPU that is ready and has no CPU is stopped, whatever the guest does. Caveat: one copy of the sums counts from the start of the \
              VM, not just recently; none shows who had the CPU.",
        fix: &[
            "kvmscope snapshot --span 10 -o now && kvmscope check now   # on the host: who waits now, and who has its CPU",
        ],
        source: "libvirt.org/manpages/virsh.html, domstats; Documentation/scheduler/sched-stats.rst, Linux 6.12; the threshold is our own",
        ..Rule::checked_by(strain::waited)
    },
    Rule {
        id: "PLC-SPREAD",
        per: "host",
        looks_at: "numastat of processes that run guests: memory by node.",
        requires: &[FactKind::GuestMemory],
        limits: &[limit("of a process's memory on one node", strain::AT_HOME, "share")],
        why: "Memory on another node takes longer to reach; without a binding it is where it was first touched. Caveat: a guest \
            larger than a node, or than what is free there, has no other choice, and needs its own NUMA cells.",
        fix: &[
            "numactl -H; virsh numatune DOMAIN   # what is free on each node, and what binds it now: a node without room swaps, and on huge pages the VM does not start",
            "virsh numatune DOMAIN --config --mode strict --nodeset N   # the node of its vCPUs, from the next start",
        ],
        undo: &[
            "virsh edit DOMAIN   # <numatune> as `virsh numatune DOMAIN` showed it before; none if it showed no node",
        ],
        needs: Needs::Reload,
        source: "numastat(8); libvirt, domain XML, numatune; the threshold is our own",
        ..Rule::checked_by(strain::spread)
    },
    Rule {
        id: "PLC-KTHREAD",
        per: "kind of thread",
        looks_at: "Threads of the kernel that run for much of a CPU: ksmd, khugepaged, kswapd, kcompactd, ksoftirqd, those that inject idle time.",
        requires: &[FactKind::Ran],
        limits: &[limit("ran", kernel_work::KERNEL_BUSY, "share of a CPU")],
        why: "It takes this time from everything else that may run there. Caveat: its work may be worth it; measure with and without it.",
        source: "Documentation/admin-guide/mm/ksm.rst, transhuge.rst and kernel/softirq.c, Linux 6.12; the threshold is our own",
        ..Rule::checked_by(kernel_work::kernel_threads)
    },
    Rule {
        id: "PLC-HALTPOLL",
        per: "host",
        looks_at: "What KVM polled between two samples for vCPUs that halted (debugfs), and its limit halt_poll_ns.",
        requires: &[FactKind::Cpus, FactKind::Settings],
        limits: &[
            limit("polled, of all CPUs", halt_polling::POLLED, "share"),
            limit("halt_poll_ns, above", halt_polling::USUAL_NS as f64, "ns"),
        ],
        why: "A vCPU that halts polls on its CPU for this long in case it wakes again. No other thread waits for that, as polling ends once one \
              wants the CPU; but a sibling slows down, idle guests look busy, and power is used. Caveat: with less polling, a vCPU that wakes \
              often wakes later; Linux 5.10 to 6.0 read the limit when a VM is created.",
        source: "Documentation/virt/kvm/halt-polling.rst, Linux 6.12; the threshold is our own",
        ..Rule::checked_by(halt_polling::polling)
    },
    Rule {
        id: "PLC-SOFTIRQ",
        per: "host",
        looks_at: "CPUs that spend their time in interrupts and softirqs, where no card with queues to spare is the cause.",
        requires: &[FactKind::Usage],
        limits: &[
            limit("of a CPU's time", kernel_work::INTERRUPTED, "share"),
            limit("of the time of all CPUs, where the CPU is not known", kernel_work::INTERRUPTED_ALL, "share"),
        ],
        why: "A CPU that handles interrupts runs no guest, and a vCPU that is bound to it waits. Caveat: the CPU may be reserved for exactly that.",
        fix: &[
            "cat /proc/softirqs; sleep 1; cat /proc/softirqs   # which kind counts up on that CPU: NET_RX, TIMER, BLOCK",
            "cat /proc/interrupts; sleep 1; cat /proc/interrupts   # whose interrupts come there",
        ],
        source: "Documentation/filesystems/proc.rst, /proc/stat (irq, softirq), Linux 6.12; the threshold is our own",
        ..Rule::checked_by(kernel_work::softirqs)
    },
    Rule {
        id: "PLC-DROPS",
        per: "port and counter",
        looks_at: "Counters of dropped packets that Open vSwitch has of an interface, and two copies of those of a card (ethtool -S).",
        requires: &[FactKind::CardCounters],
        limits: &[limit("of the port's packets", kernel_work::DROPPED, "share")],
        why: "Each counter counts the losses at one point of the path, so it shows which part cannot keep up. Caveat: counters are sums since the \
              port was created; read them twice to see whether it still drops.",
        source: "ovs-vswitchd.conf.db(5), Interface statistics; lib/netdev-dpdk.c, Open vSwitch 3.1; the threshold is our own",
        ..Rule::checked_by(kernel_work::drops)
    },
    Rule {
        id: "PLC-KERNEL",
        per: "kind of line",
        looks_at: "Lines of the kernel's log about faults: clocks, lockups, stalls, memory, heat, KVM; those of QEMU's; containers \
            that the kernel killed for want of memory (kubectl describe pod).",
        requires: &[FactKind::Log],
        why: "The kernel itself reports it, or a program that it informed. Caveat: a line shows when it happened, not that it still does.",
        source: "Linux 6.12; each kind of line with its file in the documentation",
        ..Rule::checked_by(strain::complaints)
    },
    Rule {
        id: "PLC-TUNED",
        per: "setting",
        looks_at: "Settings of a host with VMs that tuned's profiles throughput-performance and virtual-host change, the frequency of its busy CPUs and what caps it.",
        requires: &[FactKind::Settings],
        limits: &[
            limit("busy", frequency::BUSY, "share"),
            limit("frequency, of the highest", frequency::SLOW, "share"),
            limit("frequency that no load explains, of the base", frequency::BELOW_BASE, "share"),
            limit("the same where no base is told, of the highest", frequency::HELD, "share"),
        ],
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
        requires: &[FactKind::Isolated],
        why: "CPUs are isolated on this host, and this setting still allows kernel work on them. This is a \
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
        requires: &[FactKind::Settings],
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
        requires: &[FactKind::Settings],
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
        requires: &[FactKind::Settings, FactKind::Isolated],
        why: "Two rules disagree here: khugepaged disturbs isolated CPUs, and guests without huge pages of their own \
            depend on those that it makes. Caveat: with never, guests on small pages have more TLB misses.",
        source: "tuned 2.28, profile network-latency (never); Documentation/admin-guide/mm/transhuge.rst, Linux 6.12",
        ..Rule::checked_by(conflicts::huge_pages)
    },
    Rule {
        id: "PLC-BALANCE",
        per: "host",
        looks_at: "Automatic NUMA balancing, where CPUs are isolated and some VMs are pinned and others are not.",
        requires: &[FactKind::Settings, FactKind::Isolated, FactKind::Masks],
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
        requires: &[FactKind::Definitions, FactKind::Masks],
        why: "Two rules disagree here: one queue is too few for these vCPUs, and each further queue adds a worker \
            without a CPU. Caveat: more queues without more CPUs only move the waiting from the queue to the worker.",
        fix: &["kvmscope compare A B   # measure the same load with more queues; no rule can decide it"],
        needs: Needs::Reload,
        source: "PLC-MQ and PLC-WORKERS",
        ..Rule::checked_by(conflicts::queues)
    },
];
