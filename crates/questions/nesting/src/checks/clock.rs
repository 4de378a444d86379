//! Checks of what reading the clock costs, here and in guests.

use super::{hit, shown_by};
use crate::features::unstable as log_of_unstable;
use crate::model::{Machine, Model};
use base::figure::Standing;
use base::{Cost, CostKind, Evidence, Needs, Setting, Severity};
use facts::published::value;
use facts::rule::Hit;
use tongue::bootloader::{booted_with, parameter};

const FILE: &str = "devices/system/clocksource/clocksource0/current_clocksource";

/// The clock sources to choose from.
fn available(machine: &Machine) -> Option<String> {
    machine.facts.snapshot.line("sys/devices/system/clocksource/clocksource0/available_clocksource")
}

fn has(available: &Option<String>, name: &str) -> bool {
    available.as_ref().is_some_and(|names| names.split_whitespace().any(|one| one == name))
}

/// What a reading costs more without a clock page, as published.
fn saved() -> Cost {
    let (without, with) = (value("fosdem18.clock.l2"), value("fosdem18.clock.l2.stable"));
    Cost::of(CostKind::Published, without - with, "cycles per clock_gettime")
}

pub(crate) fn exits(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for machine in model.machines.iter().filter(|machine| machine.state("clock_without_exit") == Standing::Off) {
        let now = machine.facts.clocksource().unwrap_or_default();
        let available =
            machine.facts.snapshot.line("sys/devices/system/clocksource/clocksource0/available_clocksource");
        let better = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"].into_iter().find(|better| {
            available.as_ref().is_some_and(|names| names.split_whitespace().any(|name| name == *better))
        });
        let title = format!("Each clock read on {} causes an exit: its clocksource is {now}", machine.id);
        let mut evidence = shown_by(machine, "clock_without_exit");
        evidence.extend(available.map(|names| Evidence::new(format!("available: {names}"), "clocksource0")));
        evidence.extend(log_of_unstable(&machine.facts));
        let mut hit = hit(machine, Severity::High, title, evidence);
        match better {
            Some(to) => {
                hit.changes = vec![Setting::SysfsWrite { path: FILE.into() }.change(to, Some(now))];
                hit.needs = Some(Needs::Nothing);
                booted(machine, &mut hit);
            }
            None => {
                hit.level = Some(machine.level_below());
                let whom = "ask for a clock that a guest can read without an exit";
                hit.fix = vec![format!("{whom}: Hyper-V's TSC page, kvm-clock, an invariant TSC")];
            }
        }
        hits.push(hit);
    }
    hits
}

/// `kvm-clock` that is not stable: each reading is a system call.
pub(crate) fn unstable(model: &Model) -> Vec<Hit> {
    let unstable = model.machines.iter().filter(|machine| {
        machine.facts.clocksource().as_deref() == Some("kvm-clock")
            && machine.state("kvm_clock_stable") == Standing::Absent
    });
    unstable
        .map(|machine| {
            let title = format!("kvm-clock is not stable on {}: each clock read is a system call", machine.id);
            let evidence = [shown_by(machine, "kvm_clock_stable"), shown_by(machine, "clock_without_exit")].concat();
            let mut hit = hit(machine, Severity::Medium, title, evidence);
            hit.level = Some(machine.level_below());
            hit.cost = saved();
            hit
        })
        .collect()
}

/// Where the kernel is booted with a clock, or without the TSC, a change of the running one is gone after the next boot.
fn booted(machine: &Machine, hit: &mut Hit) {
    let line = machine.facts.snapshot.line("proc/cmdline").unwrap_or_default();
    if let Some(clock) = parameter(&line, "clocksource").filter(|clock| *clock != "tsc") {
        hit.evidence.push(Evidence::new(format!("the kernel was booted with clocksource={clock}"), "proc/cmdline"));
        let [fix, undo] = booted_with("clocksource", clock, None);
        hit.fix.push(fix);
        hit.undo.push(undo);
    }
    if let Some(word) = line.split_whitespace().find(|word| matches!(*word, "notsc" | "tsc=unstable")) {
        hit.evidence.push(Evidence::new(format!("the kernel was booted with {word}"), "proc/cmdline"));
        hit.fix.push(format!(
            "# {word} on the kernel's command line is why: it may have been set because the TSC was found to drift"
        ));
    }
}

/// KVM here cannot give its guests a stable clock.
pub(crate) fn for_guests(model: &Model) -> Vec<Hit> {
    let poor = model.machines.iter().filter(|machine| {
        // Where its own readings are exits, that is the finding, with the same cure.
        let is_exit = machine.state("clock_without_exit") == Standing::Off;
        let runs = machine.state("kvm") == Standing::On || machine.runs_guests && !is_exit;
        machine.state("stable_clock_for_guests") == Standing::Off && runs
    });
    poor.map(|machine| {
        let now = machine.facts.clocksource().unwrap_or_default();
        let title =
            format!("Guests of {0} need a system call to read the clock: the clocksource of {0} is {now}", machine.id);
        let mut evidence = shown_by(machine, "stable_clock_for_guests");
        evidence.extend(shown_by(machine, "hyperv_tsc_page"));
        evidence.extend(shown_by(machine, "hyperv_reenlightenment"));
        evidence.extend(log_of_unstable(&machine.facts));
        let mut hit = hit(machine, Severity::Medium, title, evidence);
        hit.cost = saved();
        if machine.facts.below.is_hyperv() {
            hit.level = Some(machine.level_below());
            hit.needs = Some(Needs::OuterLevel);
        } else if has(&available(machine), "tsc") {
            let change = Setting::SysfsWrite { path: FILE.into() }.change("tsc", Some(now));
            hit.changes = vec![change];
            booted(machine, &mut hit);
        } else {
            hit.evidence.extend(available(machine).map(|names| Evidence::new(format!("available: {names}; no tsc"), "clocksource0")));
            hit.fix.push("dmesg | grep -iE 'tsc|clocksource'   # why the kernel has rejected the time-stamp counter: firmware, sockets that differ, a watchdog that was late".to_owned());
            booted(machine, &mut hit);
        }
        hit
    })
    .collect()
}
