//! CPU time that KVM spends polling for vCPUs that are halted.

use crate::placements::Model;
use crate::signs::Scene;
use base::number::{many, percent, thousands};
use base::{Level, Severity};
use facts::counts::Counted;
use facts::rule::Hit;

/// CPUs that poll all the time from which it matters: our own threshold.
pub(in crate::signs) const MUCH: f64 = 0.5;

/// The same as a part of all CPUs of the host: our own threshold.
pub(in crate::signs) const OF_HOST: f64 = 0.02;

/// For how long a vCPU that halted is polled for at most.
const SETTING: &str = "sys/module/kvm/parameters/halt_poll_ns";

pub(in crate::signs) fn halts(scene: &Scene<'_>) -> Vec<Hit> {
    scene.counts.iter().filter_map(|counted| of_counts(scene, counted)).collect()
}

/// Part of all cycles that the host itself had, from which it is full of its own work: our own threshold.
pub(in crate::signs) const OF_CYCLES: f64 = 0.9;

/// Cycles of the host beside those of host and guests together, where KVM is set to poll.
pub(in crate::signs) fn cycles(scene: &Scene<'_>) -> Vec<Hit> {
    scene.models.iter().filter_map(of_cycles).collect()
}

fn of_cycles(model: &Model) -> Option<Hit> {
    let told = || model.machine.quoted.iter().filter(|told| told.what == "perf stat");
    let sum = |event: &str| -> u64 {
        let own = told().filter(|told| told.subject.split(',').next() == Some(event));
        own.filter_map(|told| told.value.replace(',', "").parse::<u64>().ok()).fold(0, u64::saturating_add)
    };
    let (host, both) = (sum("cycles:H"), sum("cycles:HG").max(sum("cycles:GH")));
    let share = host as f64 / both.max(1) as f64;
    let setting = model.machine.settings.get(SETTING).filter(|told| told.value.trim() != "0")?;
    if both == 0 || !(OF_CYCLES..=1.0).contains(&share) {
        return None;
    }
    let title = format!(
        "the host itself has {} of the cycles that perf counted, its guests the rest, and KVM may poll for halted vCPUs (halt_poll_ns {})",
        percent(share),
        setting.value.trim()
    );
    let mut hit = Hit::new("halt_poll_ns", Severity::Medium, title);
    hit.level = Some(if model.level == Level::Unknown { Level::L0 } else { model.level });
    let first = told().next().map_or("", |told| told.place.as_str());
    hit = hit.seen(format!("cycles:H {}, cycles:HG {}", thousands(host), thousands(both)), first);
    hit = hit.seen(format!("halt_poll_ns is {}", setting.value), &setting.place);
    hit.fix.push("perf top -C CPU   # on that CPU: kvm_vcpu_halt or kvm_vcpu_block at the top is polling".to_owned());
    hit.fix.push("echo 0 > /sys/module/kvm/parameters/halt_poll_ns   # a trial: does the CPU fall idle? Some kernels (5.x to 6.1) take it for VMs that start later alone".to_owned());
    hit.undo.push(format!("echo {} > /sys/module/kvm/parameters/halt_poll_ns", setting.value.trim()));
    Some(hit)
}

/// CPUs that a counter of nanoseconds stands for.
fn cpus(counted: &Counted, name: &str) -> Option<f64> {
    let row = counted.rows.iter().find(|row| row.name == name)?;
    row.per_second.map(|ns| ns / 1e9)
}

fn of_counts(scene: &Scene<'_>, counted: &Counted) -> Option<Hit> {
    let (fail, success) = (cpus(counted, "halt_poll_fail_ns")?, cpus(counted, "halt_poll_success_ns").unwrap_or(0.0));
    let all = fail + success;
    let model = scene.models.iter().find(|model| model.id == counted.machine);
    let host = model.map(|model| model.machine.topology.cpus.len()).filter(|cpus| *cpus > 0);
    if all < MUCH || host.is_some_and(|cpus| all < OF_HOST * cpus as f64) {
        return None;
    }
    let of = host.map_or(String::new(), |cpus| format!(" of {}", many(cpus as u64, "CPU")));
    let title =
        format!("KVM polls for halted vCPUs with {all:.1} CPUs{of} all the time, with {fail:.1} of them for nothing");
    let severity = if fail >= all / 2.0 { Severity::High } else { Severity::Medium };
    let mut hit = Hit::new(counted.machine.as_str(), severity, title);
    hit.level = Some(scene.recording.level_of(&counted.machine));
    for (name, cpus) in [("halt_poll_fail_ns", fail), ("halt_poll_success_ns", success)] {
        hit = hit.seen(format!("{name} grows by {cpus:.2} s each second"), scene.named(&counted.path));
    }
    let idle = model.and_then(|model| model.machine.total_use.last());
    if let Some(idle) = idle {
        let what =
            format!("of all CPUs' time {} is idle: what polls counts as the kernel's", percent(idle.value.shares.idle));
        hit = hit.seen(what, &idle.place);
    }
    match model.and_then(|model| model.machine.settings.get(SETTING)) {
        Some(told) => {
            hit = hit.seen(format!("halt_poll_ns is {}", told.value), &told.place);
            hit.fix.push("echo 50000 > /sys/module/kvm/parameters/halt_poll_ns   # or 0; some kernels (5.x to 6.1) take it for VMs that start later alone. Price: a vCPU that halts wakes later".to_owned());
            hit.undo.push(format!("echo {} > /sys/module/kvm/parameters/halt_poll_ns", told.value.trim()));
        }
        None => hit.fix.push("cat /sys/module/kvm/parameters/halt_poll_ns   # how long it polls at most: less, or 0, costs less and wakes vCPUs later".to_owned()),
    }
    Some(hit)
}
