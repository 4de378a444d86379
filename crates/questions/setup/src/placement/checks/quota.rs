//! Threads of VMs that a CPU quota throttles.

use super::starved::with_victims;
use crate::placement::culprits::{Reporter, Verdict, name};
use crate::placement::model::Model;
use base::number::{list, many, percent};
use base::shell::quoted;
use base::{Cost, CostKind, Severity};
use facts::rule::Hit;
use facts::starvation::STARVED;
use host::machine::{Container, Quota, Thread, Throttled};
use std::collections::{BTreeMap, BTreeSet};
use tongue::groups::{lifted, unit};

/// A group that is throttled in fewer of its periods has room: our own limit.
pub(in crate::placement) const RARELY: f64 = 0.01;

const MOST_TOLD: usize = 8;

/// Groups that were throttled, between two samples or since they were made, with their threads of VMs.
type Groups<'a> = BTreeMap<&'a String, (&'a Quota, Vec<&'a Thread>)>;

/// VMs of which groups were throttled; a group that several VMs are in is a finding of its own.
pub(crate) fn throttled(model: &Model) -> Vec<Hit> {
    let mut groups: Groups<'_> = BTreeMap::new();
    for thread in model.machine.threads.iter().filter(|thread| thread.vm.is_some()) {
        for (path, quota) in model.machine.quotas_of(thread).filter(|(_, quota)| share(quota) > RARELY) {
            groups.entry(path).or_insert((quota, Vec::new())).1.push(thread);
        }
    }
    let mut subjects: BTreeMap<(&str, bool), Groups<'_>> = BTreeMap::new();
    for (path, (quota, threads)) in groups {
        let vms: BTreeSet<&str> = threads.iter().filter_map(|thread| thread.vm.as_deref()).collect();
        let several = vms.len() > 1;
        let subject = if several { path.as_str() } else { vms.into_iter().next().unwrap_or_default() };
        subjects.entry((subject, several)).or_default().insert(path, (quota, threads));
    }
    subjects.into_iter().map(|((subject, several), groups)| hit(model, subject, several, &groups)).collect()
}

/// The part of the periods in which a group was throttled: measured, else since it was made.
fn share(quota: &Quota) -> f64 {
    let measured = quota.measured.as_ref().map(|measured| measured.value);
    measured.or(quota.since_start).map_or(0.0, |throttled| throttled.share())
}

fn hit(model: &Model, subject: &str, several: bool, groups: &Groups<'_>) -> Hit {
    let threads = || groups.values().flat_map(|(_, threads)| threads.iter());
    let vms: BTreeSet<&str> = threads().filter_map(|thread| thread.vm.as_deref()).collect();
    let whose = if several { many(vms.len() as u64, "VM") } else { subject.to_owned() };
    let worst = groups.values().map(|(quota, _)| share(quota)).fold(0.0, f64::max);
    let measured: Vec<Throttled> =
        groups.values().filter_map(|(quota, _)| Some(quota.measured.as_ref()?.value)).collect();
    let mut names: Vec<String> = threads().map(|thread| name(thread)).collect();
    names.sort_unstable();
    names.dedup();
    let (quotas, verb) = match groups.len() {
        _ if several => (
            format!(
                "the CPU quota of {}",
                Container::of_group(subject).map_or_else(|| subject.to_owned(), |container| container.label())
            ),
            "throttles",
        ),
        1 => ("a CPU quota".to_owned(), "throttles"),
        _ => ("CPU quotas".to_owned(), "throttle"),
    };
    let least = groups.values().map(|(quota, _)| share(quota)).fold(1.0, f64::min);
    let up_to = if worst - least < 0.005 { "" } else { "up to " };
    let when = if measured.is_empty() { " since they were made" } else { "" };
    let title = format!(
        "{quotas} {verb} {} of {whose} in {up_to}{} of the periods{when}",
        many(names.len() as u64, "thread"),
        percent(worst)
    );
    let severity = match (measured.is_empty(), worst > STARVED) {
        (false, true) => Severity::High,
        (true, true) => Severity::Medium,
        (_, false) => Severity::Low,
    };
    let mut hit = Hit::new(subject, severity, title);
    hit.first.push(match several {
        true => Container::of_group(subject).map_or_else(
            || format!("systemctl show -p CPUQuotaPerSecUSec {}   # who set it, and for whom?", unit(subject)),
            |container| container.shown(),
        ),
        false => format!("virsh schedinfo {}   # what is set, and for whom is it meant?", quoted(subject)),
    });
    for (path, (quota, _)) in groups {
        let (fix, undo) = lifted(subject, several, path, quota, model.machine.topology.online.len() as f64);
        if !hit.fix.contains(&fix) {
            hit.fix.push(fix);
            hit.undo.push(undo);
        }
    }
    for (path, (quota, threads)) in groups.iter().take(MOST_TOLD) {
        let cpus = quota.cpus.value;
        let threads = many(threads.len() as u64, "thread");
        let of = if several { whose.as_str() } else { "the VM" };
        hit = hit.seen(format!("{path} may use {cpus:.2} CPUs, with {threads} of {of} in it"), &quota.cpus.place);
        if let Some(counted) = &quota.measured {
            let Throttled { periods, throttled, cpus, .. } = counted.value;
            // Of pasted copies nobody may have told how long lies between them.
            let lost = if cpus > 0.0 { format!(", {cpus:.2} CPUs lost") } else { String::new() };
            let what = format!("throttled in {throttled} of {}{lost}", many(periods, "period"));
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
    let own = |verdict: &&Verdict| {
        let victim = &model.machine.threads[verdict.victim];
        threads().any(|thread| std::ptr::eq(*thread, victim))
    };
    let victims: Vec<&Verdict> = model.verdicts.of_reporter(Reporter::Quota).filter(own).collect();
    hit = with_victims(model, hit, &victims);
    if measured.iter().any(|throttled| throttled.cpus > 0.0) {
        let lost = measured.iter().map(|throttled| throttled.cpus).sum();
        hit.cost = Cost::of(CostKind::Measured, lost, "CPUs lost to the quota");
    }
    hit
}
