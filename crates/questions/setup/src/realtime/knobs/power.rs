//! Frequencies and idle states: what a CPU needs to be awake and fast.

use super::super::checks::Told;
use super::super::effects::{self, deep_sleep, frequency};
use super::super::host::Host;
use super::{Effect, Group, Place, Rule, Want, knob, verified};
use base::number::percent;
use base::rule::limit;
use base::{CpuSet, Needs};

/// A sibling that is busier than this takes its part of the core: our own limit.
const BUSY_SIBLING: f64 = 0.05;

pub(super) const KNOBS: &[Rule] = &[
    Rule {
        id: "LAT-GOVERNOR",
        looks_at: "The frequency governor of each of these CPUs, and whether its frequency moved between two samples.",
        limits: &[limit("of the frequency, by which two samples differ", effects::FREQUENCY_MOVES, "share")],
        why: "A change of frequency stops the CPU for some microseconds, and code runs slower until it has happened. Caveat: \
              fixed high frequencies cost power, and heat may then lower them all.",
        source: "Documentation/admin-guide/pm/cpufreq.rst, Linux 6.12; tuned 2.28, profile realtime",
        ..verified(
            knob(
                "scaling_governor",
                Group::Power,
                Place::EachCpu("cpufreq/scaling_governor", Want::Is(&["performance"])),
            ),
            Effect {
                metric: "scaling_cur_freq of both samples",
                look: "cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_{min,cur,max}_freq   # heat and turbo move it as well",
                seen: frequency,
                suffices: false,
            },
        )
    },
    Rule {
        id: "LAT-MINPERF",
        looks_at: "The lowest performance that intel_pstate may choose.",
        why: "Below 100 % the processor may lower its frequency, whatever the governor is called. Caveat: it costs power, and heat may lower the frequency in turn.",
        source: "Documentation/admin-guide/pm/intel_pstate.rst, Linux 6.12; tuned 2.28, profile throughput-performance",
        ..knob(
            "min_perf_pct",
            Group::Power,
            Place::File("sys/devices/system/cpu/intel_pstate/min_perf_pct", Want::AtLeast(100)),
        )
    },
    Rule {
        id: "LAT-ENERGY",
        looks_at: "What the processor prefers where it chooses the frequency itself.",
        why: "With another preference the processor raises its frequency late. Caveat: it costs power, also while nothing runs.",
        source: "Documentation/admin-guide/pm/intel_pstate.rst, energy_performance_preference, Linux 6.12",
        ..knob(
            "energy_performance_preference",
            Group::Power,
            Place::EachCpu("cpufreq/energy_performance_preference", Want::Is(&["performance"])),
        )
    },
    Rule {
        id: "LAT-ENERGYBIAS",
        looks_at: "The bias of each of these CPUs between performance (0) and energy (15).",
        why: "By it the processor decides how fast it raises frequencies and leaves idle states. Caveat: it costs power, also while \
              nothing runs; processors of AMD have none.",
        source: "Documentation/admin-guide/pm/intel_epb.rst, Linux 6.12; tuned 2.28, profile network-latency (energy_perf_bias)",
        ..knob("energy_perf_bias", Group::Power, Place::EachCpu("power/energy_perf_bias", Want::Is(&["0"])))
    },
    Rule {
        id: "LAT-CSTATE",
        looks_at: "Whether deep idle states are forbidden at boot, and how often these CPUs entered one.",
        limits: &[
            limit("us to leave a state", effects::DEEP_US, ""),
            limit("entries per second", effects::SLEEPS_PER_S, ""),
        ],
        why: "A CPU needs tens to hundreds of microseconds to leave a deep idle state, before it handles the interrupt that \
              woke it. Caveat: a program may hold /dev/cpu_dma_latency at 0 instead of the boot parameter, which only the use of the states \
              shows; a CPU that never sleeps costs power, and its sibling gets less of the core.",
        needs: Needs::Reboot,
        source: "Documentation/admin-guide/pm/cpuidle.rst and Documentation/power/pm_qos_interface.rst, Linux 6.12; tuned 2.28, \
              force_latency",
        ..verified(
            knob(
                "processor.max_cstate",
                Group::Power,
                Place::Boot(&[
                    "processor.max_cstate=1",
                    "idle=poll",
                    "idle=halt",
                    "processor.max_cstate=0",
                    "intel_idle.max_cstate=0",
                    "cpuidle.off=1",
                ]),
            ),
            Effect {
                metric: "entries per second of idle states that take long to leave",
                look: "fuser -v /dev/cpu_dma_latency   # who holds it; with 0 in it, and kept open, no deep state is entered",
                seen: deep_sleep,
                suffices: true,
            },
        )
    },
    Rule {
        id: "LAT-PLATFORM",
        looks_at: "The power profile of the firmware.",
        why: "The firmware limits power and frequency by this profile, whatever the kernel asks for. Caveat: it costs power, and fans are louder.",
        source: "Documentation/ABI/testing/sysfs-platform_profile, Linux 6.12",
        ..knob(
            "platform_profile",
            Group::Power,
            Place::File("sys/firmware/acpi/platform_profile", Want::Is(&["performance"])),
        )
    },
    Rule {
        id: "LAT-SIBLING",
        looks_at: "The other threads of the cores that real time is for, and how busy they were.",
        why: "A busy sibling takes execution units and cache of the core from one instruction to the next, which nothing on this \
              CPU shows. Caveat: two vCPUs of one guest that it sees as siblings share a core on purpose.",
        source: "Documentation/admin-guide/hw-vuln/core-scheduling.rst, Linux 6.12; tuned 2.28, profile realtime",
        ..knob("the siblings of real-time CPUs", Group::Power, Place::Told(siblings))
    },
];

/// The other threads of the cores, those of real time apart.
fn siblings(host: &Host<'_>) -> Option<Told> {
    let topology = &host.machine.topology;
    if host.cpus.is_empty() || topology.cores_unknown {
        return None;
    }
    let of = |cpu: u32| topology.cpus.get(&cpu).map(|about| topology.of_core(about.core)).unwrap_or_default();
    let siblings = host.cpus.iter().fold(CpuSet::default(), |all, cpu| all.or(&of(cpu)));
    let siblings = siblings.without(&host.cpus).and(&topology.online);
    if siblings.is_empty() {
        return Some(Told::new("none", "sys/devices/system/cpu/cpu*/topology", true, "none, or idle"));
    }
    let busy = |cpu: u32| Some((cpu, 1.0 - host.machine.cpu_use.get(&cpu)?.idle));
    let (cpu, most) = siblings.iter().filter_map(busy).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let value = format!("CPU {cpu} was busy for {}", percent(most));
    let told = Told::new(value, "proc/stat", most <= BUSY_SIBLING, format!("idle siblings, CPUs {siblings}"));
    Some(match most <= BUSY_SIBLING {
        true => told,
        false => told.looking(format!(
            "ps -eLo psr,tid,comm --sort psr   # what runs on CPUs {siblings}: start it elsewhere, or move it"
        )),
    })
}
