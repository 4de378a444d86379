//! Work that the kernel does by itself, and where.

use super::super::checks::Told;
use super::super::effects::{self, kernel_work, nmis};
use super::super::host::Host;
use super::{Effect, Group, Place, Rule, Want, knob, verified};
use base::rule::limit;

pub(super) const KNOBS: &[Rule] = &[
    Rule {
        id: "LAT-WATCHDOG",
        looks_at: "The watchdog for soft lockups.",
        why: "It wakes a thread of the highest priority on every CPU every few seconds. Caveat: a CPU that hangs is not reported; \
              tickless CPUs are left out by default (watchdog_cpumask).",
        source: "Documentation/admin-guide/lockup-watchdogs.rst, Linux 6.12; tuned 2.28, profile cpu-partitioning (nosoftlockup)",
        ..knob("watchdog", Group::Noise, Place::File("proc/sys/kernel/watchdog", Want::Is(&["0"])))
    },
    Rule {
        id: "LAT-NMI",
        looks_at: "The watchdog for hard lockups, and non-maskable interrupts on these CPUs.",
        limits: &[limit("NMIs per second", effects::NMIS_PER_S, "")],
        why: "It takes a performance counter of each CPU, whose overflow is an NMI that nothing can hold back. Caveat: a CPU \
              that hangs with interrupts off is not reported; profilers cause NMIs too.",
        source: "Documentation/admin-guide/lockup-watchdogs.rst, Linux 6.12; tuned 2.28, profile network-latency",
        ..verified(
            knob("nmi_watchdog", Group::Noise, Place::File("proc/sys/kernel/nmi_watchdog", Want::Is(&["0"]))),
            Effect {
                metric: "NMIs per second there",
                look: "ps -C perf   # profilers use NMIs too",
                seen: nmis,
                suffices: false,
            },
        )
    },
    Rule {
        id: "LAT-MCE",
        looks_at: "How often each CPU looks for corrected machine checks.",
        why: "The poll runs a timer on every CPU every five minutes, and firmware may raise an SMI for it. Caveat: corrected memory \
              errors, which announce worse ones, are then not logged; uncorrected ones still are.",
        source: "Documentation/arch/x86/x86_64/machinecheck.rst (check_interval, ignore_ce), Linux 6.12; KVM4NFV (mce=off)",
        ..knob("check_interval of machine checks", Group::Noise, Place::Told(machine_checks))
    },
    Rule {
        id: "LAT-VMSTAT",
        looks_at: "How often counters of the memory management are summed up.",
        why: "The sum runs a worker on every CPU that has something to add. Caveat: numbers of vmstat lag behind.",
        source: "Documentation/admin-guide/sysctl/vm.rst, stat_interval, Linux 6.12; tuned 2.28, profile network-latency",
        ..knob("stat_interval", Group::Noise, Place::File("proc/sys/vm/stat_interval", Want::AtLeast(10)))
    },
    Rule {
        id: "LAT-WORKQUEUE",
        looks_at: "CPUs that may run kernel work which is tied to none, and workers (kworker/u) that ran on these.",
        limits: &[limit("a worker, share of a CPU", effects::WORTH_TELLING, "share")],
        why: "Kernel workers run wherever their mask allows. Caveat: work that is queued for a certain CPU runs there all \
              the same.",
        source: "Documentation/core-api/workqueue.rst, affinity, Linux 6.12; tuned 2.28, profile cpu-partitioning",
        ..verified(
            knob(
                "cpumask of workqueues",
                Group::Noise,
                Place::Spares { file: "sys/devices/virtual/workqueue/cpumask", typed: None },
            ),
            Effect {
                metric: "share of a CPU that kworker/u threads ran there",
                look: "ps -eLo psr,tid,comm --sort psr   # which workers run on CPUS",
                seen: kernel_work,
                suffices: false,
            },
        )
    },
    Rule {
        id: "LAT-WRITEBACK",
        looks_at: "CPUs that may write dirty pages back.",
        why: "Writeback takes milliseconds of a CPU at a time. Caveat: disks get their pages from fewer CPUs.",
        source: "Documentation/core-api/workqueue.rst, WQ_SYSFS, Linux 6.12; tuned 2.28, profile cpu-partitioning",
        ..knob(
            "cpumask of writeback",
            Group::Noise,
            Place::Spares { file: "sys/devices/virtual/workqueue/writeback/cpumask", typed: None },
        )
    },
];

fn machine_checks(host: &Host<'_>) -> Option<Told> {
    const FILE: &str = "sys/devices/system/machinecheck/machinecheck0/check_interval";
    if let Some(Some(value @ ("off" | "ignore_ce"))) = host.booted("mce") {
        return Some(Told::new(format!("mce={value}"), "proc/cmdline", true, "0"));
    }
    // The kernel prints it in hexadecimal (device_show_int of older kernels is decimal): 0 is never in both.
    let value = host.last.line(FILE)?.trim().to_owned();
    let fits = value == "0";
    let mut told = Told::new(&value, FILE, fits, "0");
    if !fits {
        told.set(FILE, "0".to_owned(), &value);
    }
    Some(told)
}
