//! Programs with a real-time policy where threads of VMs run: they take their CPU whenever they want it, whatever anything weighs.

use super::programs::{is_fixed, room};
use crate::placement::culprits::{EXPLAINS, is_program, is_real_time, starves};
use crate::placement::model::Model;
use base::number::{many, percent};
use base::shell::{printable, quoted};
use base::{Cost, CostKind, Setting, Severity};
use facts::rule::Hit;
use facts::starvation::UNIT;
use host::machine::{Role, Thread, unit_of};
use std::collections::{BTreeMap, BTreeSet};

/// A program that runs for less of a CPU is not what keeps threads of VMs waiting: our own limit.
pub(in crate::placement) const TAKES: f64 = 0.2;

/// Programs that took as much of CPUs of VMs as threads there waited, by the names of the programs.
pub(crate) fn programs(model: &Model) -> Vec<Hit> {
    let runs = |thread: &&Thread| thread.run_share.as_ref().is_some_and(|run| run.value >= TAKES);
    let all =
        model.machine.threads.iter().filter(|thread| is_program(thread) && is_real_time(thread) && !is_fixed(thread));
    let mut by_name: BTreeMap<&str, Vec<&Thread>> = BTreeMap::new();
    all.filter(runs).for_each(|thread| by_name.entry(&thread.name).or_default().push(thread));
    by_name.into_iter().filter_map(|(name, threads)| hit(model, name, &threads)).collect()
}

fn hit(model: &Model, name: &str, threads: &[&Thread]) -> Option<Hit> {
    let took: f64 = threads.iter().filter_map(|thread| Some(thread.run_share.as_ref()?.value)).sum();
    // Whoever may run where it ran was pushed aside there, or waits elsewhere for those that were.
    let meets = |thread: &&Thread| {
        let set = thread.affinity.as_ref().map(|set| &set.value);
        let there = |program: &&Thread| {
            program.last_cpu.as_ref().is_some_and(|cpu| set.is_some_and(|set| set.contains(cpu.value)))
        };
        thread.vm.is_some() && !is_real_time(thread) && threads.iter().any(there)
    };
    let victims: Vec<&Thread> = model.machine.threads.iter().filter(meets).collect();
    let waited: f64 = victims.iter().filter_map(|thread| Some(thread.wait_share.as_ref()?.value)).sum();
    if waited < EXPLAINS * took || took < EXPLAINS * waited {
        return None;
    }
    let is_named = |thread: &&Thread| {
        let of = model
            .verdicts
            .all()
            .iter()
            .find(|verdict| std::ptr::eq(&raw const model.machine.threads[verdict.victim], *thread));
        let by = of.and_then(|verdict| verdict.winner());
        by.is_some_and(|winner| winner.threads.iter().any(|rival| model.machine.threads[*rival].name == name))
    };
    // PLC-STARVED names it already where it is all that its victims wait for.
    let mut starved = victims.iter().filter(|thread| starves(thread)).peekable();
    if starved.peek().is_some() && starved.all(is_named) {
        return None;
    }
    let policy = if threads[0].policy == Some(1) { "SCHED_FIFO" } else { "SCHED_RR" };
    let vms: BTreeSet<&str> = victims.iter().filter_map(|thread| thread.vm.as_deref()).collect();
    let of =
        if vms.len() == 1 { vms.first().copied().unwrap_or_default().to_owned() } else { format!("{} VMs", vms.len()) };
    let waiting =
        victims.iter().filter(|thread| thread.wait_share.as_ref().is_some_and(|wait| wait.value > 0.0)).count();
    let title = format!(
        "{} ran {} of a CPU with {policy}, before all others, where {} of {of} {} {waited:.2} CPUs short",
        printable(name),
        percent(took),
        many(waiting as u64, "thread"),
        if waiting == 1 { "is" } else { "are" },
    );
    let mut hit = Hit::new(name, Severity::High, title);
    for thread in threads {
        let cpu = thread.last_cpu.as_ref().map_or(String::new(), |cpu| format!(", last on CPU {}", cpu.value));
        let run = thread.run_share.as_ref().map_or("", |run| run.place.as_str());
        hit = hit.seen(format!("{} {} has {policy}{cpu}", printable(name), thread.tid.unwrap_or(0)), run);
    }
    for thread in victims.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_))).take(MOST_TOLD) {
        let (Some(wait), Some(set)) = (&thread.wait_share, &thread.affinity) else { continue };
        hit = hit
            .seen(format!("{} waited {} and may run on {}", thread.role, percent(wait.value), set.value), &wait.place);
    }
    hit.cost = Cost::of(CostKind::Measured, waited, UNIT);
    hit.explains =
        vms.iter().flat_map(|vm| ["PLC-STARVED", "PLC-OVERLAP"].map(|rule| format!("{rule}@{vm}"))).collect();
    moved(model, threads, &mut hit);
    Some(hit)
}

/// What sends them to CPUs of no VM, and what its unit keeps.
fn moved(model: &Model, threads: &[&Thread], hit: &mut Hit) {
    let free = room(model, threads[0]);
    let unit = threads[0].time_group.as_deref().and_then(|group| unit_of(group).filter(|unit| group.ends_with(unit)));
    if free.is_empty() {
        let tid = threads[0].tid.map_or("TID".to_owned(), |tid| tid.to_string());
        hit.fix.push(format!("taskset -cp CPUS {tid}   # no CPU without a VM has room: the VMs are to leave it one"));
        return;
    }
    for thread in threads {
        let (Some(id), Some(from)) = (thread.id(), &thread.affinity) else { continue };
        hit.changes.push(Setting::TaskAffinity(id).change(free.to_string(), Some(from.value.to_string())));
    }
    if let Some(unit) = unit {
        hit.fix.push(format!(
            "# until it restarts; to keep it: systemctl set-property {} AllowedCPUs={free}",
            quoted(unit)
        ));
    }
}

/// vCPUs that are named.
const MOST_TOLD: usize = 8;
