//! CPUs that are kept for real time: from the scheduler, the tick, RCU, interrupts and other programs.

use super::super::checks::{Told, cpus_of};
use super::super::effects::{self, interrupted, offloaded, others, ticks};
use super::super::host::Host;
use super::{Effect, Group, Place, Rule, Want, knob, verified};
use base::rule::limit;
use base::{CpuSet, Needs};

pub(super) const KNOBS: &[Rule] = &[
    Rule {
        id: "LAT-ISOLCPUS",
        looks_at: "Whether the CPUs that real time is for are isolated, and which other tasks ran there.",
        limits: &[limit("another task, share of a CPU", effects::WORTH_TELLING, "share")],
        why: "The scheduler moves no task to an isolated CPU on its own, so that only what is bound to that CPU disturbs a vCPU there. Caveat: \
              nothing balances threads between isolated CPUs either: each vCPU needs its own.",
        needs: Needs::Reboot,
        source: "Documentation/admin-guide/kernel-parameters.txt, isolcpus, Linux 6.12; tuned 2.28, profile cpu-partitioning",
        ..verified(
            knob(
                "isolcpus",
                Group::Isolation,
                Place::Holds {
                    file: "sys/devices/system/cpu/isolated",
                    word: "isolcpus",
                    typed: "isolcpus=managed_irq,domain,CPUS",
                },
            ),
            Effect {
                metric: "share of a CPU that other tasks ran there",
                look: "ps -eLo psr,tid,comm --sort psr   # what runs on CPUS: start it elsewhere, or move it",
                seen: others,
                suffices: false,
            },
        )
    },
    Rule {
        id: "LAT-NOHZ",
        looks_at: "Whether these CPUs are tickless (nohz_full), and how often their local timer interrupts.",
        limits: &[limit("local timer interrupts per second on a busy CPU", effects::TICKS_PER_S, "")],
        why: "Each tick exits the guest for some microseconds, 100 to 1,000 times per second; with one runnable task a \
              tickless CPU has none. Caveat: timers of the guest are local timer interrupts too, and each entry to the kernel \
              costs more on a tickless CPU.",
        needs: Needs::Reboot,
        source: "Documentation/timers/no_hz.rst, Linux 6.12; tuned 2.28, profile cpu-partitioning",
        ..verified(
            knob(
                "nohz_full",
                Group::Isolation,
                Place::Holds {
                    file: "sys/devices/system/cpu/nohz_full",
                    word: "nohz_full",
                    typed: "nohz=on nohz_full=CPUS",
                },
            ),
            Effect {
                metric: "local timer interrupts per second (LOC)",
                look: "ps -eLo psr,stat,comm --sort psr   # more than one runnable task on a CPU of CPUS, and timers, keep its tick",
                seen: ticks,
                suffices: false,
            },
        )
    },
    Rule {
        id: "LAT-RCU",
        looks_at: "Whether RCU callbacks of these CPUs are offloaded (rcu_nocbs, or nohz_full, which implies it), and whether \
              the threads that then run them are there.",
        why: "A callback of RCU runs in a softirq of its CPU, whatever runs there; offloaded, a thread runs it elsewhere. \
              Caveat: the threads (rcuo) need CPU time on the other CPUs.",
        needs: Needs::Reboot,
        source: "Documentation/RCU/Design/Requirements/Requirements.rst and kernel/rcu/tree_nocb.h (rcuog, rcuop), Linux 6.12",
        ..verified(
            knob("rcu_nocbs", Group::Isolation, Place::Told(rcu)),
            Effect {
                metric: "threads rcuo?/CPU",
                look: "grep RCU_NOCB_CPU /boot/config-$(uname -r)   # without it rcu_nocbs is ignored",
                seen: offloaded,
                suffices: true,
            },
        )
    },
    Rule {
        id: "LAT-MANAGED",
        looks_at: "Whether isolcpus has the flag managed_irq.",
        why: "Interrupts of queues that the kernel manages, such as NVMe's, come to isolated CPUs too unless this flag keeps them \
              on others. Caveat: a queue whose CPUs are all isolated still interrupts one of them when a program there uses it.",
        needs: Needs::Reboot,
        source: "Documentation/admin-guide/kernel-parameters.txt, isolcpus=managed_irq, Linux 6.12; tuned 2.28, profile realtime",
        ..knob("the flag managed_irq of isolcpus", Group::Isolation, Place::Told(managed_irqs))
    },
    Rule {
        id: "LAT-IRQAFFINITY",
        looks_at: "CPUs that new interrupts may come to, and device interrupts that came to the CPUs of real time.",
        limits: &[limit("interrupts per second", effects::IRQS_PER_S, "")],
        why: "An interrupt preempts everything on its CPU. Caveat: the default counts for interrupts that are requested \
              later; those that are there have masks of their own, and irqbalance writes them too.",
        source: "Documentation/core-api/irq/irq-affinity.rst and kernel-parameters.txt, irqaffinity, Linux 6.12",
        ..verified(
            knob(
                "default_smp_affinity",
                Group::Isolation,
                Place::Spares { file: "proc/irq/default_smp_affinity", typed: Some("irqaffinity=REST") },
            ),
            Effect {
                metric: "device interrupts per second there",
                look: "grep . /proc/irq/*/effective_affinity_list   # which may come to CPUS; irqbalance moves them again where it runs",
                seen: interrupted,
                suffices: false,
            },
        )
    },
    Rule {
        id: "LAT-PATIENCE",
        looks_at: "How long RCU leaves a tickless CPU alone before it asks for a quiescent state.",
        why: "RCU interrupts a CPU that stays in the kernel or a guest; with patience it waits until that state comes. \
              Caveat: grace periods, and everything that waits for them, take up to a second longer.",
        needs: Needs::Reboot,
        source: "Documentation/admin-guide/kernel-parameters.txt, rcutree.nohz_full_patience_delay, Linux 6.12",
        ..knob(
            "rcutree.nohz_full_patience_delay",
            Group::Isolation,
            Place::File("sys/module/rcutree/parameters/nohz_full_patience_delay", Want::AtLeast(1_000)),
        )
    },
    Rule {
        id: "LAT-RCUNORMAL",
        looks_at: "Whether expedited grace periods of RCU end with the boot.",
        why: "An expedited grace period interrupts every CPU. Caveat: programs that wait for grace periods wait longer.",
        needs: Needs::Reboot,
        source: "Documentation/admin-guide/kernel-parameters.txt, rcupdate.rcu_normal_after_boot, Linux 6.12; tuned 2.28, profile \
              network-latency",
        ..knob(
            "rcupdate.rcu_normal_after_boot",
            Group::Isolation,
            Place::File("sys/module/rcupdate/parameters/rcu_normal_after_boot", Want::Is(&["1", "Y"])),
        )
    },
    Rule {
        id: "LAT-SKEWTICK",
        looks_at: "Whether ticks of CPUs come one after the other (skew_tick).",
        why: "Ticks that come at the same time on all CPUs wait for the same locks. Caveat: CPUs that were idle together wake \
              one after the other, which costs power.",
        needs: Needs::Reboot,
        source: "Documentation/admin-guide/kernel-parameters.txt, skew_tick, Linux 6.12; tuned 2.28, profile network-latency",
        ..knob("skew_tick", Group::Isolation, Place::Boot(&["skew_tick=1"]))
    },
    Rule {
        id: "LAT-PROGRAMS",
        looks_at: "CPUs that the first process may use, whose set every program inherits.",
        why: "A program that was started with these CPUs in its set may bind itself or be woken there. Caveat: isolated CPUs are \
              taken out of it at boot; only without isolcpus has CPUAffinity= of systemd to do it.",
        needs: Needs::Reboot,
        source: "systemd-system.conf(5), CPUAffinity=; tuned 2.28, profile cpu-partitioning",
        ..knob("the set of CPUs of all programs", Group::Isolation, Place::Told(programs))
    },
];

/// `rcu_nocbs=`, or `nohz_full=`, which implies it.
fn rcu(host: &Host<'_>) -> Option<Told> {
    if host.boot.is_empty() || host.cpus.is_empty() {
        return None;
    }
    let of = |word: &str| match host.booted(word) {
        Some(Some("all")) => host.machine.topology.online.clone(),
        Some(Some(value)) => cpus_of(value),
        Some(None) | None => CpuSet::default(),
    };
    let set = of("rcu_nocbs").or(&of("nohz_full"));
    let fits = host.cpus.is_within(&set);
    let value = if set.is_empty() { "none".to_owned() } else { set.to_string() };
    let told = Told::new(value, "proc/cmdline", fits, host.cpus.to_string());
    Some(if fits { told } else { told.booting(host, &format!("rcu_nocbs={}", host.cpus)) })
}

/// The flag of `isolcpus=`, where that is used.
fn managed_irqs(host: &Host<'_>) -> Option<Told> {
    let value = host.booted("isolcpus")??;
    let fits = value.split(',').any(|flag| flag == "managed_irq");
    let told = Told::new(if fits { "set" } else { "not set" }, "proc/cmdline", fits, "set");
    Some(if fits { told } else { told.booting(host, &format!("isolcpus=managed_irq,domain,{}", cpus_of(value))) })
}

/// The set of the first process.
fn programs(host: &Host<'_>) -> Option<Told> {
    const FILE: &str = "proc/1/task/1/status";
    let status = host.last.read(FILE)?;
    let set = status.lines().find_map(|line| CpuSet::parse(line.strip_prefix("Cpus_allowed_list:")?))?;
    let there = set.and(&host.cpus);
    let told = Told::new(format!("CPUs {set}"), FILE, there.is_empty(), format!("none of CPUs {}", host.cpus));
    Some(match there.is_empty() || host.rest().is_empty() {
        true => told,
        false => told.looking(format!(
            "echo CPUAffinity={} >> /etc/systemd/system.conf   # for programs that systemd starts after the next boot",
            host.rest()
        )),
    })
}
