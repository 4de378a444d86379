//! Who may run on these CPUs before a vCPU does.

use super::super::checks::Told;
use super::super::effects::throttled;
use super::super::host::{Host, is_real_time};
use super::super::needs::is_preempt_rt;
use super::{Effect, Group, Place, Rule, Want, knob, verified};
use base::CpuSet;
use base::number::many;
use base::shell::quoted;

/// Threads that are typed one by one.
const MOST_TYPED: usize = 16;

/// Kernel threads of these CPUs on a PREEMPT_RT kernel: name, and the least priority as FIFO.
const KERNEL_THREADS: &[(&str, u32)] = &[("ksoftirqd", 2), ("ktimers", 2), ("rcuc", 4)];

pub(super) const KNOBS: &[Rule] = &[
    Rule {
        id: "LAT-RTRUNTIME",
        looks_at: "How much of each period real-time threads may run, and whether any ran up to that.",
        why: "At the limit all real-time threads of a CPU stop until the next period: 50 ms of each second by default. Caveat: \
              with -1 a vCPU that never sleeps starves everything else on its CPU, including kernel threads.",
        source: "Documentation/scheduler/sched-rt-group.rst, Linux 6.12; tuned 2.28, profile realtime",
        ..verified(
            knob(
                "sched_rt_runtime_us",
                Group::Scheduler,
                Place::File("proc/sys/kernel/sched_rt_runtime_us", Want::Is(&["-1"])),
            ),
            Effect {
                metric: "share of the CPU that real-time threads ran",
                look: "cat /proc/sys/kernel/sched_rt_runtime_us",
                seen: throttled,
                suffices: false,
            },
        )
    },
    Rule {
        id: "LAT-FIFO",
        looks_at: "The scheduling policy of vCPU threads on the CPUs of real time.",
        why: "A thread of normal policy that is woken there takes turns with the vCPU. Caveat: a vCPU of real-time policy that \
              never halts keeps kernel threads of its CPU from running, which may hang the host; set it for guests that need it.",
        source: "libvirt.org/formatdomain.html, vcpusched; tuned 2.28, profile realtime-virtual-host; sched(7)",
        ..knob("vcpusched", Group::Scheduler, Place::Told(fifo))
    },
    Rule {
        id: "LAT-KTHREADS",
        looks_at: "On a PREEMPT_RT kernel: policies and priorities of ksoftirqd, ktimers and rcuc of these CPUs.",
        why: "Timers and callbacks of a CPU run in threads there; below a vCPU of real-time policy they never run, and what waits \
              for them, the vCPU included, waits for ever. Caveat: at a higher priority than the vCPU's own they preempt \
              it; these are the lowest above priority 1.",
        source: "tuned 2.28, profile realtime (ksoftirqd f:2, ktimers f:2, rcuc f:4); KVM4NFV (ksoftirqd 2, rcuc 3)",
        ..knob("priorities of kernel threads", Group::Scheduler, Place::Told(kernel_priorities))
    },
    Rule {
        id: "LAT-BALANCING",
        looks_at: "Automatic NUMA balancing.",
        why: "It unmaps memory to see which task touches it, and each touch by a vCPU is a fault. Caveat: unpinned guests on the same host need \
              it to get their memory close.",
        source: "Documentation/admin-guide/sysctl/kernel.rst, numa_balancing, Linux 6.12; tuned 2.28, profile network-latency",
        ..knob("numa_balancing", Group::Scheduler, Place::File("proc/sys/kernel/numa_balancing", Want::Is(&["0"])))
    },
    Rule {
        id: "LAT-HUNGTASK",
        looks_at: "After how many seconds a task that does not run is reported.",
        why: "Kernel threads below a real-time vCPU may wait long without anything being wrong, and the check walks all tasks. \
              Caveat: a real hang is seen later.",
        source: "Documentation/admin-guide/sysctl/kernel.rst, hung_task_timeout_secs, Linux 6.12; tuned 2.28, profile realtime (600)",
        ..knob("hung_task_timeout_secs", Group::Scheduler, Place::Told(hung_tasks))
    },
];

/// vCPUs of normal policy on CPUs of real time.
fn fifo(host: &Host<'_>) -> Option<Told> {
    let there = |set: &CpuSet| !host.cpus.is_empty() && !set.is_empty() && set.is_within(&host.cpus);
    let vcpus: Vec<_> =
        host.vcpus().filter(|thread| thread.affinity.as_ref().is_some_and(|set| there(&set.value))).collect();
    if vcpus.is_empty() || vcpus.iter().any(|thread| thread.policy.is_none()) {
        return None;
    }
    let normal: Vec<_> = vcpus.iter().filter(|thread| !is_real_time(thread)).collect();
    let count = |many_of: usize| many(many_of as u64, "vCPU");
    let value = match normal.len() {
        0 => format!("{} with a real-time policy", count(vcpus.len())),
        normal => format!("{} of normal policy", count(normal)),
    };
    let told = Told::new(value, "proc/*/task/*/stat, policy", normal.is_empty(), "fifo");
    Some(match normal.first() {
        None => told,
        Some(thread) => told.looking(format!(
            "virsh edit {}   # <cputune><vcpusched vcpus='...' scheduler='fifo' priority='1'/></cputune>",
            quoted(thread.vm.as_deref().unwrap_or("VM"))
        )),
    })
}

fn kernel_priorities(host: &Host<'_>) -> Option<Told> {
    if !is_preempt_rt(host) || host.cpus.is_empty() {
        return None;
    }
    let mut low: Vec<(String, String, u32, String)> = Vec::new();
    let mut seen = 0;
    for pid in host.last.names("proc").into_iter().filter(|name| name.parse::<u32>().is_ok()) {
        let Some(comm) = host.last.line(&format!("proc/{pid}/task/{pid}/comm")) else { continue };
        let Some((name, cpu)) = comm.trim().split_once('/') else { continue };
        let known = KERNEL_THREADS.iter().find(|(known, _)| *known == name);
        let (Some((_, least)), Ok(cpu)) = (known, cpu.parse::<u32>()) else { continue };
        let Some(stat) = host.last.read(&format!("proc/{pid}/task/{pid}/stat")).filter(|_| host.cpus.contains(cpu))
        else {
            continue;
        };
        // Fields 40 and 41 of proc_pid_stat(5), counted from behind the name.
        let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u32>().ok();
        let (Some(priority), Some(policy)) = (number(40), number(41)) else { continue };
        seen += 1;
        if !matches!(policy, 1 | 2) || priority < *least {
            let before = match policy {
                1 => format!("-f -p {priority}"),
                2 => format!("-r -p {priority}"),
                _ => "-o -p 0".to_owned(),
            };
            low.push((comm.trim().to_owned(), pid, *least, before));
        }
    }
    (seen > 0).then_some(())?;
    let value = match low.len() {
        0 => "high enough".to_owned(),
        count => format!("{} too low, {} first", many(count as u64, "thread"), low[0].0),
    };
    let mut told =
        Told::new(value, "proc/*/task/*/stat, rt_priority", low.is_empty(), "ksoftirqd and ktimers f:2, rcuc f:4");
    let low = || low.iter().take(MOST_TYPED);
    told.fix = low().map(|(name, pid, least, _)| format!("chrt -f -p {least} {pid}   # {name}")).collect();
    told.undo = low().map(|(_, pid, _, before)| format!("chrt {before} {pid}")).collect();
    Some(told)
}

/// 0 is never.
fn hung_tasks(host: &Host<'_>) -> Option<Told> {
    const FILE: &str = "proc/sys/kernel/hung_task_timeout_secs";
    let value = host.last.line(FILE)?.trim().to_owned();
    let seconds: u64 = value.parse().ok()?;
    let fits = seconds == 0 || seconds >= 600;
    let mut told = Told::new(&value, FILE, fits, "600");
    if !fits {
        told.set(FILE, "600".to_owned(), &value);
    }
    Some(told)
}
