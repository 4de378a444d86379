//! Threads in each other's way, and pins that do not fit.

use super::Rule;
use crate::placement::checks::{overlap, pins, starved};
use crate::shared::starvation;
use base::Needs;

/// In the order in which equal findings are shown.
pub const RULES: &[Rule] = &[
    Rule {
        id: "PLC-OVERLAP",
        check: overlap::overlap,
        why: "A vCPU and the threads that carry its packets cannot run at once on one CPU; while one runs, the other \
              waits. If this is wrong: helpers on a CPU that is busy already, or far from their memory, are slower \
              than before; the change is undone by one command.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "KVM vhost performance tuning to enhance ADC VE throughput, 2017 (x3.15 once); CentOS Stream 9 kernel merge \
                 requests 2813 and 2842 (50-60 % of network throughput)",
    },
    Rule {
        id: starvation::RULE,
        check: starved::starved,
        why: starvation::WHY,
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: starvation::SOURCE,
    },
    Rule {
        id: "PLC-STACKED",
        check: pins::stacked,
        why: "Two vCPUs on one CPU take turns; to the guest both look like whole CPUs. If this is wrong: a vCPU that \
              mostly sleeps loses nothing by sharing.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "virsh(1), vcpupin; the article named at PLC-OVERLAP shows 1.3 and 4.0 % of a CPU lost by two such vCPUs",
    },
    Rule {
        id: "PLC-SMT",
        check: pins::siblings,
        why: "Two threads of one core share its execution units. A guest that is shown no siblings schedules on them \
              as if they were cores. If this is wrong: a guest that is shown threads may be counted differently by \
              licences, and separate cores may not be free.",
        fix: &[
            "virsh edit DOMAIN   # <cpu><topology sockets='1' cores='N' threads='2'/></cpu>, or pin to separate cores",
        ],
        undo: &["virsh edit DOMAIN   # the <topology> element as it was"],
        needs: Needs::Reload,
        source: "libvirt.org/formatdomain.html, CPU model and topology; Documentation/admin-guide/hw-vuln/core-scheduling.rst",
    },
    Rule {
        id: "PLC-WORKERS",
        check: overlap::workers,
        why: "Each pair of queues has a worker thread in the kernel. Workers without a CPU of their own wait for each \
              other and for the vCPUs. If this is wrong: workers that sleep need no CPU; count those that run.",
        fix: &["virsh edit DOMAIN   # fewer: <driver name='vhost' queues='N'/>, or give the emulator more CPUs"],
        undo: &["virsh edit DOMAIN   # queues as it was"],
        needs: Needs::Reload,
        source: "drivers/vhost/net.c, Linux 6.12; QEMU 9.0, net/tap.c (one vhost device for each pair of queues)",
    },
    Rule {
        id: "PLC-OFFLINE",
        check: pins::offline,
        why: "A pin that names CPUs which do not run is cut down to the others without a word, or refused when none \
              is left. If this is wrong: the CPU may have been switched off for a moment only.",
        fix: &["cat /sys/devices/system/cpu/online"],
        undo: &[],
        needs: Needs::Nothing,
        source: "kernel/sched/syscalls.c, __sched_setaffinity (mask and cpuset), Linux 6.12",
    },
    Rule {
        id: "PLC-ISOL",
        check: pins::isolated,
        why: "No balancing reaches isolated CPUs: a thread with several of them in its mask stays on the one where it \
              began. If this is wrong: isolation by cpuset partitions, which balance inside, shows in the same \
              file.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "Documentation/admin-guide/kernel-parameters.txt, isolcpus=domain, Linux 6.12",
    },
    Rule {
        id: "PLC-HOUSEKEEPING",
        check: pins::housekeeping,
        why: "CPUs were isolated for somebody, and work of the kernel and of all programs goes to the others: vCPUs there \
              are interrupted by it. If this is wrong: the isolated CPUs wait for another VM, or for a switch that is \
              not running now.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "tuned 2.28, profile cpu-partitioning; Documentation/admin-guide/kernel-parameters.txt, isolcpus, Linux 6.12",
    },
    Rule {
        id: "PLC-FLOAT",
        check: pins::floating,
        why: "Threads that may run anywhere also run on CPUs that others were pinned to, and those cannot move away. \
              If this is wrong: a pinned host without spare CPUs leaves the unpinned nowhere to go.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "Red Hat Enterprise Linux 7 Virtualization Tuning and Optimization Guide, 9.3; OpenStack Nova, cpu-topologies.rst",
    },
    Rule {
        id: "PLC-OVERCOMMIT",
        check: pins::overcommit,
        why: "Where more vCPUs want to run than there are CPUs, some of them always wait. If this is wrong: vCPUs \
              that sleep cost nothing: a crowded host of idle guests is no fault.",
        fix: &[],
        undo: &[],
        needs: Needs::Reload,
        source: "Red Hat Enterprise Linux 7 Virtualization Deployment and Administration Guide, overcommitting (5:1 under load)",
    },
    Rule {
        id: "PLC-LATE",
        check: pins::late,
        why: "Since Linux 6.4 vhost workers are threads of QEMU that take the mask of the thread that made them. A \
              pin made later need not reach them. If this is wrong: a mask set for one thread is lost when the device \
              is made anew, and at the next start.",
        fix: &[],
        undo: &[],
        needs: Needs::Nothing,
        source: "commit 6e890c5d5021 (vhost: use vhost_tasks for worker threads, 6.4); kernel/vhost_task.c, Linux 6.12",
    },
    Rule {
        id: "PLC-ESCAPE",
        check: pins::escaped,
        why: "Vhost threads outside of the VM's cgroup ignore its CPU set and its weight: emulatorpin has no effect \
              on them. If this is wrong: on hosts whose CPUs are full, putting them back cost 50-60 % of network \
              throughput.",
        fix: &["cat /proc/TID/cgroup   # 0::/ is the root"],
        undo: &[],
        needs: Needs::Nothing,
        source: "CentOS Stream 9 kernel merge requests 2813 and 2842",
    },
];
