//! Threads that carry a guest's packets, against the guest's own vCPUs.

use super::starved::with_victims;
use crate::placement::culprits::{Reporter, Verdict, cpus_named};
use crate::placement::model::{BUSY, Demand, Model};
use crate::placement::proposal::Subject;
use base::CpuSet;
use base::number::{list, many};
use base::{Cost, CostKind, Evidence, Severity};
use facts::rule::Hit;
use host::machine::{Domain, Interface, Role, Thread};

/// CPUs that all victims together must wait for before a finding is `high`: our own floor.
pub(in crate::placement) const HARM: f64 = 0.05;

/// CPUs that are no gain: what two digits do not show.
const NOTHING: f64 = 0.005;

/// Helpers whose CPUs are all CPUs of vCPUs; or that meet them and starve.
pub(crate) fn overlap(model: &Model) -> Vec<Hit> {
    model.machine.domains.iter().filter_map(|domain| overlapping(model, domain)).collect()
}

fn overlapping(model: &Model, domain: &Domain) -> Option<Hit> {
    let topology = &model.machine.topology;
    let helpers: Vec<&Thread> = model.helpers(domain).collect();
    let sets: Vec<&CpuSet> = helpers.iter().filter_map(|thread| Some(&thread.affinity.as_ref()?.value)).collect();
    let set = sets.iter().fold(CpuSet::default(), |all, set| all.or(set));
    let vcpus = model.vcpus(domain).filter_map(|thread| Some(&thread.affinity.as_ref()?.value));
    let vcpus = vcpus.fold(CpuSet::default(), |all, set| all.or(set));
    let anywhere = topology.online.is_within(&set) && !topology.online.is_empty();
    if !set.meets(&vcpus) {
        return None;
    }
    let own = |verdict: &&Verdict| model.machine.threads[verdict.victim].vm.as_deref() == Some(&domain.name);
    let victims: Vec<&Verdict> = model.verdicts.of_reporter(Reporter::Overlap).filter(own).collect();
    let waited: f64 = victims.iter().map(|verdict| verdict.waited).sum();
    // Who may run everywhere is kept apart by the scheduler as far as there is room; only waiting shows that there is none.
    if (anywhere || !set.is_within(&vcpus)) && waited < HARM {
        return None;
    }
    let meets = |thread: &&Thread| thread.affinity.as_ref().is_some_and(|own| own.value.meets(&set));
    let beside: Vec<&Thread> = model.vcpus(domain).filter(meets).collect();
    let count = beside.len() + helpers.len();
    let (least, most) = domain.workers();
    let or_more = if most > least { " or more" } else { "" };
    let theirs = beside.iter().filter_map(|thread| thread.affinity.as_ref());
    let all = theirs.fold(set.clone(), |all, own| all.or(&own.value));
    let cores = topology.cores_of(&all).len();
    let on = if cores > 0 {
        format!("{} ({})", many(cores as u64, "core"), many(all.len() as u64, "CPU"))
    } else {
        format!("CPUs {all}")
    };
    let free = if anywhere { CpuSet::default() } else { model.unbound() };
    let unused = unused_nodes(model, &free);
    let title = format!("{count}{or_more} threads of {} share {on}{unused}", domain.name);
    let measured = helpers.iter().all(|thread| thread.wait_share.is_some());
    let severity = match (victims.is_empty(), measured) {
        (false, _) if waited >= HARM => Severity::High,
        (false, _) => Severity::Low,
        // Whoever starves has another cause.
        (true, true) => Severity::Low,
        (true, false) => by_load(&helpers, count > all.len()),
    };
    let mut hit = Hit::new(&domain.name, severity, title);
    let told = helpers.iter().find_map(|thread| thread.affinity.as_ref());
    let same = if set == vcpus {
        "the same set as its vCPUs".to_owned()
    } else if set.is_within(&vcpus) {
        "part of its vCPUs' set".to_owned()
    } else {
        format!("its vCPUs on {}", cpus_named(&set.and(&vcpus)))
    };
    hit = hit.seen(
        format!(
            "{} may run on {set}, {same}",
            match helpers.iter().any(|thread| thread.role == Role::Vhost) {
                true => "emulator and vhost threads",
                false => "its helpers",
            }
        ),
        told.map_or("", |pin| pin.place.as_str()),
    );
    if cores > 0 {
        let factor = count as f64 / cores as f64;
        hit = hit.seen(
            format!("{count}{or_more} threads on {}: {factor:.1} per core", many(cores as u64, "core")),
            &topology.place,
        );
    }
    hit = hit.with(Evidence::in_table(shares(&helpers), "placement.threads").key("vm", domain.name.as_str()));
    hit = with_victims(model, hit, &victims);
    if severity > Severity::Low && helpers.iter().any(|thread| thread.role == Role::Vhost) {
        hit.cost = Cost::of(
            CostKind::Published,
            3.15,
            "times the throughput in one published case; expect a gain here, of unknown size",
        );
    }
    let is_helper = |of: &Subject| of.vm == domain.name && !matches!(of.role, Role::Vcpu(_));
    hit.changes = model.proposal.part(|_, of| is_helper(of));
    // Who hardly runs is in nobody's way, and another place for it only narrows it.
    let wanted: f64 = helpers.iter().map(|thread| Demand::of(thread).high).sum();
    if wanted <= BUSY && model.proposal.gain(&hit.changes).is_some_and(|gain| gain < NOTHING) {
        hit.changes.clear();
        hit.fix
            .push("kvmscope check   # its helpers hardly run, and moving them helps no thread (modelled)".to_owned());
        return Some(hit);
    }
    if hit.changes.is_empty() && !victims.is_empty() {
        // Where the vCPUs make room, the helpers stay.
        hit.changes = model.proposal.part(|_, of| of.vm == domain.name);
    }
    if hit.changes.is_empty() {
        hit.fix.push(model.proposal.why_none());
        return Some(hit);
    }
    if let Some(plan) = model.proposal.advised() {
        for (unit, _) in model.proposal.subjects.iter().enumerate().filter(|(_, of)| is_helper(of)) {
            hit = with_price(model, hit, unit, &plan.places[unit]);
        }
    }
    hit.fix.push(
        "kvmscope check --json   # after the move: if a vhost thread still waits more than 20 %, this was not the \
         cause"
            .into(),
    );
    Some(hit)
}

/// Severity where nobody is known to starve: masks show who may compete, and only load shows that somebody does.
fn by_load(helpers: &[&Thread], crowded: bool) -> Severity {
    let ran: Vec<f64> = helpers.iter().filter_map(|thread| Some(thread.run_share.as_ref()?.value)).collect();
    match (ran.iter().any(|share| *share > BUSY), ran.is_empty(), crowded) {
        (true, ..) | (false, true, true) => Severity::Medium,
        (false, ..) => Severity::Low,
    }
}

/// What the other node costs, where helpers would go to one.
fn with_price(model: &Model, hit: Hit, unit: usize, place: &CpuSet) -> Hit {
    let home = model.proposal.task.units[unit].home;
    let nodes = model.machine.topology.nodes_of(place);
    match (home, &nodes[..]) {
        (Some(home), [node]) if home != *node => hit.seen(
            format!(
                "cost of node {node}, remote from the vCPUs' node {home}: throughput of 64 B device reads -9 to -25 \
                 %, 128 B -8 %, 512 B and more about 0, writes 0 (published, another machine)"
            ),
            "pcie-bench, SIGCOMM 2018",
        ),
        _ => hit,
    }
}

fn unused_nodes(model: &Model, free: &CpuSet) -> String {
    let nodes = model.machine.topology.nodes();
    let whole: Vec<String> =
        nodes.iter().filter(|(_, cpus)| cpus.is_within(free)).map(|(node, _)| node.to_string()).collect();
    match whole.len() {
        0 if free.is_empty() => String::new(),
        0 => format!(", none on {}", cpus_named(free)),
        1 => format!(", none on node {}", whole[0]),
        _ => format!(", none on nodes {}", list(&whole)),
    }
}

/// What the helpers ran, as far as that is known.
fn shares(helpers: &[&Thread]) -> String {
    let ran: Vec<f64> = helpers.iter().filter_map(|thread| Some(thread.run_share.as_ref()?.value)).collect();
    if ran.is_empty() {
        return "their CPU use is unknown".to_owned();
    }
    let sum: f64 = ran.iter().sum();
    format!("{} of {} were sampled; their shares add up to {sum:.2} CPUs", ran.len(), helpers.len())
}

/// More workers that may run than CPUs that carry no vCPU.
pub(crate) fn workers(model: &Model) -> Vec<Hit> {
    model.machine.domains.iter().filter_map(|domain| crowded(model, domain)).collect()
}

fn crowded(model: &Model, domain: &Domain) -> Option<Hit> {
    let workers: Vec<&Thread> = model.helpers(domain).filter(|thread| thread.role == Role::Vhost).collect();
    let busy = workers.iter().filter(|thread| thread.run_share.as_ref().is_none_or(|run| run.value > BUSY)).count();
    let told = workers.iter().find_map(|thread| thread.affinity.as_ref())?;
    let masks = workers.iter().filter_map(|thread| Some(&thread.affinity.as_ref()?.value));
    let set = masks.fold(CpuSet::default(), |all, set| all.or(set));
    let of_vcpus = model.of_vcpus();
    let left = set.without(&of_vcpus);
    if busy <= left.len() {
        return None;
    }
    let (least, most) = domain.workers();
    let count = if most > least {
        format!("{least} or {most} vhost workers")
    } else {
        many(workers.len() as u64, "vhost worker")
    };
    let severity = if left.is_empty() { Severity::Medium } else { Severity::Low };
    let free = if left.is_empty() { "no CPU".to_owned() } else { format!("only {}", many(left.len() as u64, "CPU")) };
    let title = format!("{count} of {} may use {free} without a vCPU", domain.name);
    let mut hit = Hit::new(&domain.name, severity, title).of_domain(&domain.name);
    for interface in &domain.interfaces {
        let what = match interface.workers() {
            Some(0) => continue,
            Some(workers) => format!("{}: {}", interface.name, many(u64::from(workers), "worker")),
            None => format!(
                "{}: its driver is not named; {} of the VM run",
                interface.name,
                many(workers.len() as u64, "vhost thread")
            ),
        };
        hit = hit.seen(what, &interface.place);
    }
    // Where each card has one queue there are no fewer.
    let has_several = |interface: &Interface| interface.workers().is_none_or(|workers| workers > 1);
    if !domain.interfaces.is_empty() && !domain.interfaces.iter().any(has_several) {
        hit.nothing_to_change = true;
        hit.fix.push("kvmscope check   # under load: does the worker wait? Then a CPU without a vCPU for the emulator and its workers".to_owned());
    }
    hit = hit.seen(format!("they may run on {set}; vCPUs leave {} of these free", left.len()), &told.place);
    let what = format!("{busy} of {} used more than 5 % of a CPU, or may have", workers.len());
    Some(hit.with(Evidence::in_table(what, "placement.threads").key("vm", domain.name.as_str())))
}
