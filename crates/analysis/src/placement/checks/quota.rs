//! Threads of VMs that a CPU quota throttles.

use super::starved::with_victims;
use crate::facts::starvation::STARVED;
use crate::placement::culprits::{Reporter, Verdict, name};
use crate::placement::model::Model;
use crate::rule::Hit;
use base::number::{list, many, percent};
use base::{Cost, CostKind, Severity};
use host::machine::{Quota, Thread, Throttled};
use std::collections::BTreeMap;

/// A group that is throttled in fewer of its periods has room: our own limit.
pub(in crate::placement) const RARELY: f64 = 0.01;

/// Threads that are told one by one.
const MOST_TOLD: usize = 8;

/// VMs of which groups were throttled, between two samples or since they were made.
pub fn throttled(model: &Model) -> Vec<Hit> {
    let mut of_vm: BTreeMap<&str, BTreeMap<&String, (&Quota, Vec<&Thread>)>> = BTreeMap::new();
    for thread in &model.machine.threads {
        let Some(vm) = thread.vm.as_deref() else { continue };
        for (path, quota) in model.machine.quotas_of(thread).filter(|(_, quota)| share(quota) > RARELY) {
            of_vm.entry(vm).or_default().entry(path).or_insert((quota, Vec::new())).1.push(thread);
        }
    }
    of_vm.into_iter().map(|(vm, groups)| hit(model, vm, &groups)).collect()
}

/// The part of the periods in which a group was throttled: measured, else since it was made.
fn share(quota: &Quota) -> f64 {
    let measured = quota.measured.as_ref().map(|measured| measured.value);
    measured.or(quota.since_start).map_or(0.0, |throttled| throttled.share())
}

fn hit(model: &Model, vm: &str, groups: &BTreeMap<&String, (&Quota, Vec<&Thread>)>) -> Hit {
    let worst = groups.values().map(|(quota, _)| share(quota)).fold(0.0, f64::max);
    let measured: Vec<Throttled> =
        groups.values().filter_map(|(quota, _)| Some(quota.measured.as_ref()?.value)).collect();
    let mut names: Vec<String> =
        groups.values().flat_map(|(_, threads)| threads.iter().map(|thread| name(thread))).collect();
    names.sort_unstable();
    names.dedup();
    let (quotas, verb) = if groups.len() == 1 { ("a CPU quota", "throttles") } else { ("CPU quotas", "throttle") };
    let least = groups.values().map(|(quota, _)| share(quota)).fold(1.0, f64::min);
    let up_to = if worst - least < 0.005 { "" } else { "up to " };
    let when = if measured.is_empty() { " since they were made" } else { "" };
    let title = format!(
        "{quotas} {verb} {} of {vm} in {up_to}{} of the periods{when}",
        many(names.len() as u64, "thread"),
        percent(worst)
    );
    let severity = match (measured.is_empty(), worst > STARVED) {
        (false, true) => Severity::High,
        (true, true) => Severity::Medium,
        (_, false) => Severity::Low,
    };
    let mut hit = Hit::new(vm, severity, title).of_domain(vm);
    for (path, (quota, threads)) in groups.iter().take(MOST_TOLD) {
        let cpus = quota.cpus.value;
        let threads = many(threads.len() as u64, "thread");
        hit = hit.seen(format!("{path} may use {cpus:.2} CPUs, with {threads} of the VM in it"), &quota.cpus.place);
        if let Some(counted) = &quota.measured {
            let Throttled { periods, throttled, cpus, .. } = counted.value;
            let what = format!("throttled in {throttled} of {}, {cpus:.2} CPUs lost", many(periods, "period"));
            hit = hit.seen(what, &counted.place);
        } else if let Some(Throttled { periods, throttled, .. }) = quota.since_start {
            let what = format!(
                "throttled in {throttled} of {} since it was made; whether it is now was not measured",
                many(periods, "period")
            );
            hit = hit.seen(what, &quota.cpus.place);
        }
    }
    hit = hit.seen(
        format!("under them run {}", list(&names.iter().take(MOST_TOLD).cloned().collect::<Vec<_>>())),
        "proc/*/task/*/cgroup",
    );
    let own = |verdict: &&Verdict| model.machine.threads[verdict.victim].vm.as_deref() == Some(vm);
    let victims: Vec<&Verdict> = model.verdicts.of_reporter(Reporter::Quota).filter(own).collect();
    hit = with_victims(model, hit, &victims);
    if !measured.is_empty() {
        let lost = measured.iter().map(|throttled| throttled.cpus).sum();
        hit.cost = Cost::of(CostKind::Measured, lost, "CPUs lost to the quota");
    }
    hit
}
