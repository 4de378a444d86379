//! Who may run on these CPUs before a vCPU does.

use super::super::checks::{fifo, hung_tasks, kernel_priorities};
use super::super::effects::throttled;
use super::{Effect, Group, Place, Rule, Want, Words, knob, verified};
use base::Needs;

pub(super) const KNOBS: &[Rule] = &[
    verified(
        knob(
            "LAT-RTRUNTIME",
            Group::Scheduler,
            Place::File("proc/sys/kernel/sched_rt_runtime_us", Want::Is(&["-1"])),
            Needs::Nothing,
            Words {
                name: "sched_rt_runtime_us",
                looks_at: "How much of each period real-time threads may run, and whether any ran up to that.",
                why: "At the limit all real-time threads of a CPU stop until the next period: 50 ms of each second by default. Caveat: \
                    with -1 a vCPU that never sleeps starves everything else on its CPU, including kernel threads.",
                source: "Documentation/scheduler/sched-rt-group.rst, Linux 6.12; tuned 2.28, profile realtime",
            },
        ),
        Effect {
            metric: "share of the CPU that real-time threads ran",
            look: "cat /proc/sys/kernel/sched_rt_runtime_us",
            seen: throttled,
            suffices: false,
        },
        &[],
    ),
    knob(
        "LAT-FIFO",
        Group::Scheduler,
        Place::Told(fifo),
        Needs::Nothing,
        Words {
            name: "vcpusched",
            looks_at: "The scheduling policy of vCPU threads on the CPUs of real time.",
            why: "A thread of normal policy that is woken there takes turns with the vCPU. Caveat: a vCPU of real-time policy that \
                never halts keeps kernel threads of its CPU from running, which may hang the host; set it for guests that need it.",
            source: "libvirt.org/formatdomain.html, vcpusched; tuned 2.28, profile realtime-virtual-host; sched(7)",
        },
    ),
    knob(
        "LAT-KTHREADS",
        Group::Scheduler,
        Place::Told(kernel_priorities),
        Needs::Nothing,
        Words {
            name: "priorities of kernel threads",
            looks_at: "On a PREEMPT_RT kernel: policies and priorities of ksoftirqd, ktimers and rcuc of these CPUs.",
            why: "Timers and callbacks of a CPU run in threads there; below a vCPU of real-time policy they never run, and what waits \
                for them, the vCPU included, waits for ever. Caveat: at a higher priority than the vCPU's own they preempt \
                it; these are the lowest above priority 1.",
            source: "tuned 2.28, profile realtime (ksoftirqd f:2, ktimers f:2, rcuc f:4); KVM4NFV (ksoftirqd 2, rcuc 3)",
        },
    ),
    knob(
        "LAT-BALANCING",
        Group::Scheduler,
        Place::File("proc/sys/kernel/numa_balancing", Want::Is(&["0"])),
        Needs::Nothing,
        Words {
            name: "numa_balancing",
            looks_at: "Automatic NUMA balancing.",
            why: "It unmaps memory to see who touches it, and each touch of a vCPU is a fault. Caveat: unpinned guests beside this one \
                need it to get their memory close.",
            source: "Documentation/admin-guide/sysctl/kernel.rst, numa_balancing, Linux 6.12; tuned 2.28, profile network-latency",
        },
    ),
    knob(
        "LAT-HUNGTASK",
        Group::Scheduler,
        Place::Told(hung_tasks),
        Needs::Nothing,
        Words {
            name: "hung_task_timeout_secs",
            looks_at: "After how many seconds a task that does not run is reported.",
            why: "Kernel threads below a real-time vCPU may wait long without anything being wrong, and the check walks all tasks. \
                Caveat: a real hang is seen later.",
            source: "Documentation/admin-guide/sysctl/kernel.rst, hung_task_timeout_secs, Linux 6.12; tuned 2.28, profile realtime (600)",
        },
    ),
];
