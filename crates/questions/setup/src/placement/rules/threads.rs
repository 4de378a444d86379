//! Threads in each other's way, and pins that do not fit.

use super::Rule;
use crate::placement::checks::{
    caches, cores, covers, few_cores, hybrid, overcommit, overlap, pins, place, quota, real_time, slice, starved,
    together, weights,
};
use crate::placement::culprits;
use crate::placement::model::{BUSY, ROOM};
use base::rule::limit;
use base::{FactKind, Needs};
use facts::starvation;

/// In the order in which equal findings are shown.
pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "PLC-SLICE",
        per: "cgroup",
        looks_at: "Starved threads that use all CPUs their slice or scope allows, while CPUs beyond it are idle.",
        requires: &[FactKind::Waited, FactKind::Groups],
        limits: &[limit("idle, from which a CPU has room", ROOM, "share")],
        why: "A cgroup's set of CPUs bounds every pin below it: libvirt's commands cannot go beyond it, only the owner of the group can widen it. \
              Caveat: it may be set on purpose, to keep the other CPUs for something else.",
        source: "Documentation/admin-guide/cgroup-v2.rst, cpuset, Linux 6.12; systemd.resource-control(5), AllowedCPUs; the threshold is our own",
        ..Rule::checked_by(slice::slices)
    },
    Rule {
        id: "PLC-WEIGHT",
        per: "cgroup",
        looks_at: "Starved threads and one that ran, at the level where their groups differ: the weights of these two groups, in total and \
                   relative to what the threads in each want.",
        requires: &[FactKind::Waited, FactKind::Groups],
        limits: &[limit("times the weight, from which a group is heavier", weights::HEAVIER, "ratio")],
        why: "Two groups that want one CPU share it by their weights, so the lighter one waits however its threads are pinned. Caveat: they may \
              be set on purpose, so that this VM yields.",
        source: "Documentation/admin-guide/cgroup-v2.rst, cpu.weight, Linux 6.12; cpu.shares in version 1; the threshold is our own",
        ..Rule::checked_by(weights::outweighed)
    },
    Rule {
        id: "PLC-COVERS",
        per: "set of CPUs",
        looks_at: "Masks of several CPUs, as the vCPUs of some VMs have them, that take in CPUs to which another VM alone is pinned, where threads of \
            either starve by the other.",
        requires: &[FactKind::Cpus, FactKind::Masks, FactKind::Ran, FactKind::Waited],
        limits: &[limit("waiting, as a share of the time that a thread wanted", starvation::STARVED, "share")],
        why: "A pinned vCPU has no other CPU, so a thread that could run elsewhere but comes there takes half of all it has. The pin is right, \
              and the wider mask is wrong: narrowed, its VM loses nothing that was meant for it. Caveat: the narrowed threads need room on the \
              remaining CPUs.",
        source: "OpenStack Nova, cpu-topologies.rst (cpu_shared_set and cpu_dedicated_set); Red Hat Enterprise Linux 7 Virtualization Tuning and \
                 Optimization Guide, 9.3",
        ..Rule::checked_by(covers::covering)
    },
    Rule {
        id: "PLC-OVERCOMMIT",
        per: "set of CPUs",
        looks_at: "What all threads of VMs want, by run and waiting time, against the CPUs of the host, and against each set of \
            CPUs that is full.",
        requires: &[FactKind::Cpus, FactKind::Ran, FactKind::Waited],
        why: "Where more vCPUs want to run than there are CPUs, some always wait. Caveat: idle vCPUs cost nothing; \
            many idle guests on one host are no problem.",
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Deployment and Administration Guide, overcommitting (5:1 under load)",
        ..Rule::checked_by(overcommit::overcommit)
    },
    Rule {
        id: "PLC-QUOTA",
        per: "VM or cgroup",
        looks_at: "Groups of VMs with a CPU quota (cpu.max, or cpu.cfs_quota_us): in how many of their periods they were throttled, \
            between two samples or since they were made; a group that several VMs are in is one finding.",
        requires: &[FactKind::Quotas],
        limits: &[limit("share of the periods", quota::RARELY, "share")],
        why: "A group that has used up its quota stops until the next period, however idle the CPUs are. Caveat: the \
            limit may be what the VM's owner pays for; raising it takes the time from others.",
        source: "Documentation/scheduler/sched-bwc.rst, cpu.max, cpu.cfs_quota_us and cpu.stat, Linux 6.12; the limits of \
                 20 and 1 % of the periods are our own",
        ..Rule::checked_by(quota::throttled)
    },
    Rule {
        id: "PLC-OVERLAP",
        per: "VM",
        looks_at: "The CPUs on which emulator and vhost threads of a VM may run, against those of its vCPUs; with \
            waiting times, also threads that starve on CPUs that both may use.",
        requires: &[FactKind::Masks],
        limits: &[
            limit("waiting, as a share of the time that a thread wanted", starvation::STARVED, "share"),
            limit("load from which a helper is busy, share of a CPU", BUSY, "share"),
            limit("waited by all victims, from which it is high", overlap::HARM, "CPUs"),
        ],
        why: "A vCPU and the threads that carry its packets cannot run on one CPU at the same time; while one runs, \
            the other waits. Caveat: on a CPU that is already busy, or far from their memory, helpers are slower \
            than before; one command undoes the change.",
        source: "KVM vhost performance tuning to enhance ADC VE throughput, 2017 (x3.15 once); CentOS Stream 9 kernel merge \
                 requests 2813 and 2842 (50-60 % of network throughput)",
        ..Rule::checked_by(overlap::overlap)
    },
    Rule {
        id: "PLC-RTPROGRAM",
        per: "program",
        looks_at: "Programs of the host with SCHED_FIFO or SCHED_RR that ran on CPUs where threads of VMs may run, and what these waited.",
        requires: &[FactKind::Masks, FactKind::Ran],
        limits: &[
            limit("ran with such a policy, share of a CPU", real_time::TAKES, "share"),
            limit("of what was waited, that it ran, and of what it ran, that was waited", culprits::EXPLAINS, "share"),
        ],
        why: "A real-time thread runs before all that have none, and the scheduler spreads what it takes over all CPUs of the threads that it pushed \
            aside: each waits a little, and none for long. Weights, quotas and nice values do nothing to it. Caveat: cluster managers have such a policy so that they answer in time; to take it from \
            them, or to stop them, can cost the node its membership.",
        source: "sched(7), SCHED_FIFO and SCHED_RR; Documentation/scheduler/sched-design-CFS.rst, scheduling classes, Linux 6.12; the limits are our own",
        ..Rule::checked_by(real_time::programs)
    },
    Rule {
        id: starvation::RULE,
        per: "VM",
        looks_at: "What each thread ran and waited between two samples of schedstat, where no rule about its CPUs \
            explains the waiting.",
        requires: &[FactKind::Ran, FactKind::Waited],
        limits: &[
            limit("waiting, as a share of the time that a thread wanted", starvation::STARVED, "share"),
            limit("least that a thread must want of a CPU", starvation::FLOOR, "share"),
        ],
        why: starvation::WHY,
        source: starvation::SOURCE,
        ..Rule::checked_by(starved::starved)
    },
    Rule {
        id: "PLC-STACKED",
        per: "VM",
        looks_at: "vCPUs that are pinned to one and the same CPU, unless one of them is known to be idle.",
        requires: &[FactKind::Masks],
        why: "Two vCPUs on one CPU take turns, but the guest sees two whole CPUs. Caveat: a vCPU that mostly sleeps \
            loses nothing by sharing.",
        source: "virsh(1), vcpupin; the article cited for PLC-OVERLAP shows that two such vCPUs lost 1.3 and 4.0 % \
            of a CPU",
        ..Rule::checked_by(pins::stacked)
    },
    Rule {
        id: "PLC-SMT",
        per: "VM",
        looks_at: "vCPUs of one VM that are pinned to sibling threads, or have a set of fewer cores than vCPUs that want one while whole cores are \
            idle; the guest sees one thread per core.",
        requires: &[FactKind::Cores, FactKind::Masks],
        limits: &[
            limit("wanted by a vCPU that wants a core, share of a CPU", few_cores::WANTS_A_CORE, "share"),
            limit("short on the cores of a set", few_cores::SHORT, "CPUs"),
        ],
        why: "Two threads of one core share its execution units. A guest that does not see siblings schedules on \
            them as if they were cores. Caveat: licences may count a guest with threads differently, and there may \
            be no free cores.",
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, CPU model and topology; Documentation/admin-guide/hw-vuln/core-scheduling.rst",
        ..Rule::checked_by(cores::shared)
    },
    Rule {
        id: "PLC-CORE",
        per: "group of VMs",
        looks_at: "Busy vCPUs of different VMs that are pinned to sibling threads, while whole cores are idle.",
        requires: &[FactKind::Cores, FactKind::Masks, FactKind::Ran],
        why: "Two threads of one core share its execution units, so two busy vCPUs there do less than on cores of their \
            own, and neither is seen to wait. Caveat: what two siblings do together, 1.25 times one, is assumed here \
            and not measured; measure before and after.",
        source: "Documentation/admin-guide/hw-vuln/core-scheduling.rst, Linux 6.12; docs/read/placement.md, score",
        ..Rule::checked_by(cores::strangers)
    },
    Rule {
        id: "PLC-CACHE",
        per: "VM",
        looks_at: "vCPUs that are bound to CPUs of one node behind several last-level caches, while those behind one have room for \
            all of them; does not fire for idle VMs, or for guests with virtual nodes, or several sockets or dies of several CPUs.",
        requires: &[FactKind::Caches, FactKind::Masks],
        limits: &[limit("load from which a vCPU is busy, share of a CPU", BUSY, "share")],
        why: "What threads of a guest pass to each other comes from the cache that they share, else over the link from another one; \
            the guest's scheduler knows of no such groups and cannot help. Caveat: threads that share little, and need much \
            cache each, do better with several; what the guest gains is not measured here.",
        source: "Documentation/core-api/workqueue.rst, affinity scopes (cache), Linux 6.12; docs/read/placement.md, score: the weight is \
                 our own",
        ..Rule::checked_by(caches::apart)
    },
    Rule {
        id: "PLC-WORKERS",
        per: "VM",
        looks_at: "vhost workers of a VM against the CPUs on which they may run and no vCPU is pinned.",
        requires: &[FactKind::Masks],
        why: "Each queue pair has a worker thread in the kernel. Workers without a CPU of their own wait for each \
            other and for the vCPUs. Caveat: idle workers need no CPU; count those that run.",
        fix: &["virsh edit DOMAIN   # fewer: <driver name='vhost' queues='N'/>, or give the emulator more CPUs"],
        undo: &["virsh edit DOMAIN   # queues as it was"],
        needs: Needs::Reload,
        source: "drivers/vhost/net.c, Linux 6.12; QEMU 9.0, net/tap.c (one vhost device for each pair of queues)",
        ..Rule::checked_by(overlap::workers)
    },
    Rule {
        id: "PLC-OFFLINE",
        per: "VM",
        looks_at: "CPUs in vcpupin and emulatorpin that are not online; where threads wait, CPUs of the host that are not, and maxcpus= or nr_cpus= of its \
            boot.",
        requires: &[FactKind::Cpus, FactKind::Definitions],
        why: "The kernel silently ignores offline CPUs in a pin, or refuses the pin when none is left. Caveat: the \
            CPU may be offline only temporarily.",
        fix: &["cat /sys/devices/system/cpu/online"],
        source: "kernel/sched/syscalls.c, __sched_setaffinity (mask and cpuset), Linux 6.12",
        ..Rule::checked_by(pins::offline)
    },
    Rule {
        id: "PLC-ISOL",
        per: "VM",
        looks_at: "Threads of VMs whose mask has several isolated CPUs.",
        requires: &[FactKind::Masks, FactKind::Isolated],
        why: "The scheduler does not balance isolated CPUs: a thread with several of them in its mask stays on the \
            one where it started. Caveat: the same file also lists cpuset partitions, which do balance their CPUs.",
        source: "Documentation/admin-guide/kernel-parameters.txt, isolcpus=domain, Linux 6.12",
        ..Rule::checked_by(pins::isolated)
    },
    Rule {
        id: "PLC-HOUSEKEEPING",
        per: "VM",
        looks_at: "Isolated CPUs on which no thread of a VM may run, while pinned vCPUs may not run on isolated CPUs.",
        requires: &[FactKind::Cpus, FactKind::Masks, FactKind::Isolated],
        why: "CPUs were isolated for a purpose, and the kernel and all programs run on the others, where they \
            interrupt vCPUs. Caveat: the isolated CPUs may be reserved for another VM, or for a switch that is not \
            running now.",
        source: "tuned 2.28, profile cpu-partitioning; Documentation/admin-guide/kernel-parameters.txt, isolcpus, Linux 6.12",
        ..Rule::checked_by(pins::housekeeping)
    },
    Rule {
        id: "PLC-FLOAT",
        per: "VM",
        looks_at: "VMs whose threads may run on every CPU, on a host with pinned VMs.",
        requires: &[FactKind::Cpus, FactKind::Masks],
        why: "Threads that may run anywhere also run on CPUs with pinned threads, which cannot move away. Caveat: on \
            a fully pinned host there may be no spare CPU for the unpinned threads.",
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 9.3; OpenStack Nova, cpu-topologies.rst",
        ..Rule::checked_by(pins::floating)
    },
    Rule {
        id: "PLC-LATE",
        per: "VM",
        looks_at: "Masks of vhost threads that differ from the emulatorpin of their VM.",
        requires: &[FactKind::Masks, FactKind::Definitions],
        why: "Since Linux 6.4 vhost workers are threads of QEMU that inherit the mask of the thread that created \
            them. A later pin may not reach them. Caveat: a mask set for one thread is lost when the device is \
            recreated, and at the next start.",
        source: "commit 6e890c5d5021 (vhost: use vhost_tasks for worker threads, 6.4); kernel/vhost_task.c, Linux 6.12",
        ..Rule::checked_by(pins::late)
    },
    Rule {
        id: "PLC-HELPERNODE",
        per: "VM",
        looks_at: "Emulators and vhost workers that are bound to another node than the vCPUs, while that node has room.",
        requires: &[FactKind::Nodes, FactKind::Masks],
        why: "Workers copy packets and the emulator serves disks in the memory of the VM: from another node each access \
            crosses the link between them. Caveat: helpers are better off far away than on busy CPUs; move them only \
            while there is room.",
        source: "Documentation/admin-guide/mm/numaperf.rst, Linux 6.12; pcie-bench, SIGCOMM 2018 (remote reads)",
        ..Rule::checked_by(place::helpers)
    },
    Rule {
        id: "PLC-ONECPU",
        per: "CPU",
        looks_at: "Threads of VMs and polling threads that one list shows on one CPU, which they use whole together.",
        requires: &[FactKind::Seen, FactKind::Ran],
        limits: &[limit("of the CPU, each", together::WORTH, "share"), limit("of it, all", together::WHOLE, "share")],
        why: "Two threads that add up to a CPU most likely want more than it has. Caveat: a list shows where threads ran last, \
              not how long they waited; measure that before anything is moved.",
        source: "psr of ps(1), column P of top(1), procps 4.0",
        ..Rule::checked_by(together::on_one_cpu)
    },
    Rule {
        id: "PLC-HYBRID",
        per: "VM",
        looks_at: "Busy vCPUs that are bound to cores with a lower highest clock than others, which are idle.",
        requires: &[FactKind::TopClocks, FactKind::Masks, FactKind::Ran],
        limits: &[limit("of the fastest core's clock", hybrid::SLOWER, "share"), limit("busy", hybrid::BUSY, "share")],
        why: "Hybrid processors have cores of two kinds. The host's scheduler prefers the fast ones for busy threads; a pin removes that choice. \
              Caveat: a fast core that belongs to a VM is lost to the host.",
        source: "cpuinfo_max_freq, Documentation/admin-guide/pm/cpufreq.rst; arch/x86/kernel/itmt.c, Linux 6.12",
        ..Rule::checked_by(hybrid::slow_cores)
    },
    Rule {
        id: "PLC-ESCAPE",
        per: "VM",
        looks_at: "vhost threads in the root cgroup whose VM has its own cgroup.",
        requires: &[FactKind::Groups],
        why: "Vhost threads outside the VM's cgroup ignore its CPU set and its weight: emulatorpin has no effect on \
            them. Caveat: on hosts with saturated CPUs, moving them back cost 50-60 % of network throughput.",
        fix: &["cat /proc/TID/cgroup   # 0::/ is the root"],
        source: "CentOS Stream 9 kernel merge requests 2813 and 2842",
        ..Rule::checked_by(pins::escaped)
    },
];
