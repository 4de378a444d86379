//! Clocks that are read without leaving the CPU, and that nobody corrects in between.

use super::super::checks::Told;
use super::super::host::Host;
use super::{Group, Place, Rule, Want, knob};
use base::Needs;
use base::number::list;
use host::processor::Processor;

pub(super) const KNOBS: &[Rule] = &[
    Rule {
        id: "LAT-CLOCKSOURCE",
        looks_at: "The clock source in use.",
        why: "Reading any other clock than the time-stamp counter takes a device or a hypervisor, about a microsecond each time. \
              Caveat: the kernel leaves the counter where it found it unstable; forcing it back gives wrong times.",
        needs: Needs::Reboot,
        source: "Documentation/timers/timekeeping.rst, Linux 6.12",
        ..knob("clocksource", Group::Clock, Place::Told(clock_source))
    },
    Rule {
        id: "LAT-TSC",
        looks_at: "Whether the kernel still checks the time-stamp counter against another clock.",
        why: "The check runs a timer on one CPU after the other, isolated ones too. Caveat: on a machine whose counters do drift \
              this is no longer noticed.",
        needs: Needs::Reboot,
        source: "Documentation/admin-guide/kernel-parameters.txt, tsc, and kernel/time/clocksource.c, Linux 6.12; tuned 2.28, \
              profile network-latency",
        ..knob("tsc=", Group::Clock, Place::Boot(&["tsc=reliable", "tsc=nowatchdog"]))
    },
    Rule {
        id: "LAT-INVARIANT",
        looks_at: "Whether the time-stamp counter runs at one rate in all power states (constant_tsc, nonstop_tsc).",
        why: "A counter that stops or changes its rate is no clock, and guests get none from it. Caveat: a guest has these flags \
              only if its host gives it +invtsc, which forbids migration to most hosts.",
        needs: Needs::OuterLevel,
        source: "Intel SDM vol. 3, 19.17.1 Invariant TSC; arch/x86/include/asm/cpufeatures.h, Linux 6.12",
        ..knob("the time-stamp counter", Group::Clock, Place::Told(invariant))
    },
    Rule {
        id: "LAT-KVMCLOCK",
        looks_at: "Whether KVM brings the clocks of guests up to date every 300 s.",
        why: "The update makes every vCPU of a guest exit at once. Caveat: without it kvm-clock of a guest drifts from the host's \
              corrected time; a guest that uses the TSC does not need it.",
        needs: Needs::Reload,
        source: "arch/x86/kvm/x86.c, kvmclock_periodic_sync, Linux 6.12; tuned 2.28, profile realtime-virtual-host",
        ..knob(
            "kvmclock_periodic_sync",
            Group::Clock,
            Place::File("sys/module/kvm/parameters/kvmclock_periodic_sync", Want::Is(&["N", "0"])),
        )
    },
    Rule {
        id: "LAT-TIMERMIGRATION",
        looks_at: "Whether timers of idle CPUs move to busy ones.",
        why: "A timer that another CPU handles fires later, and disturbs that one. Caveat: idle CPUs wake more often, which costs \
              power.",
        source: "kernel/time/timer.c, Linux 6.12; tuned 2.28, profile network-latency",
        ..knob("timer_migration", Group::Clock, Place::File("proc/sys/kernel/timer_migration", Want::Is(&["0"])))
    },
];

/// On bare metal the time-stamp counter; a guest may have a clock of its hypervisor that is read as cheaply.
fn clock_source(host: &Host<'_>) -> Option<Told> {
    const FILE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let value = host.last.line(FILE)?.trim().to_owned();
    let is_guest = Processor::of(host.last).is_some_and(|processor| processor.flags.contains("hypervisor"));
    let cheap = is_guest && matches!(value.as_str(), "kvm-clock" | "hyperv_clocksource_tsc_page");
    let fits = value == "tsc" || cheap || value == "arch_sys_counter";
    let told = Told::new(value, FILE, fits, "tsc");
    Some(if fits { told } else { told.looking("dmesg | grep -i tsc   # why the kernel left the time-stamp counter") })
}

fn invariant(host: &Host<'_>) -> Option<Told> {
    let processor = Processor::of(host.last)?;
    let lacking: Vec<String> = ["constant_tsc", "nonstop_tsc"]
        .iter()
        .filter(|flag| !processor.flags.contains(**flag))
        .map(|flag| (*flag).to_owned())
        .collect();
    // Processors of other architectures have a counter of their own.
    if !processor.flags.contains("tsc") {
        return None;
    }
    let value = if lacking.is_empty() { "both flags".to_owned() } else { format!("without {}", list(&lacking)) };
    let told = Told::new(value, "proc/cpuinfo, flags", lacking.is_empty(), "constant_tsc and nonstop_tsc");
    Some(match lacking.is_empty() {
        true => told,
        false => told
            .looking("grep -m1 -o 'constant_tsc\\|nonstop_tsc' /proc/cpuinfo   # in a guest: ask its host for +invtsc"),
    })
}
