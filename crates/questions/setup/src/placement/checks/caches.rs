//! vCPUs of one VM behind several last-level caches, though one would do.

use super::pins::who;
use crate::placement::culprits::{cpus_named, starves};
use crate::placement::model::{BUSY, Demand, Model};
use crate::placement::solver::Kind;
use base::number::{list, many};
use base::{Change, CpuSet, Evidence, Severity};
use facts::rule::Hit;
use host::machine::{Domain, Thread};
use std::collections::BTreeMap;

/// Domains whose vCPUs keep to CPUs behind several caches of one node, while those behind one of them would hold all.
pub(crate) fn apart(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let caches = topology.last_caches();
    let known = topology.cpus.values().all(|about| about.last_cache.is_some());
    let domains = model.machine.domains.iter().filter(|domain| known && !domain.shows_groups());
    domains.filter_map(|domain| of_domain(model, &caches, domain)).collect()
}

fn of_domain(model: &Model, caches: &BTreeMap<u32, CpuSet>, domain: &Domain) -> Option<Hit> {
    let topology = &model.machine.topology;
    let (mut behind, mut own): (BTreeMap<u32, Vec<&Thread>>, CpuSet) = (BTreeMap::new(), CpuSet::default());
    for thread in model.vcpus(domain) {
        let set = &thread.affinity.as_ref()?.value;
        let one = one_each(model, domain, thread);
        // What may run behind several is brought together by the scheduler, as long as there is a choice.
        let at = one.as_ref().unwrap_or(set);
        let (cache, _) = caches.iter().find(|(_, cpus)| !at.is_empty() && at.is_within(cpus))?;
        behind.entry(*cache).or_default().push(thread);
        own = own.or(set);
    }
    let vcpus = || behind.values().flatten();
    let busy = vcpus().any(|thread| Demand::of(thread).likely > BUSY);
    if behind.len() < 2 || topology.nodes_of(&own).len() > 1 || !busy {
        return None;
    }
    let holding = holding(model, caches, &own, vcpus().count())?;
    let title = format!(
        "the vCPUs of {} are behind {}; they fit behind one",
        domain.name,
        many(behind.len() as u64, "last-level cache")
    );
    let measured = vcpus().all(|thread| thread.wait_share.is_some());
    let waits = vcpus().any(|thread| starves(thread));
    let severity = if measured && !waits { Severity::Info } else { Severity::Low };
    let mut hit = Hit::new(&domain.name, severity, title).of_domain(&domain.name);
    for (cache, threads) in &behind {
        let names: Vec<String> = threads.iter().map(|thread| who(thread, &domain.name)).collect();
        let cpus = caches.get(cache).map(cpus_named).unwrap_or_default();
        hit = hit.seen(format!("{cpus} share a cache: {}", list(&names)), &topology.place);
    }
    hit = hit.seen(format!("{} share one, and have room for all", cpus_named(holding)), &topology.place);
    if severity == Severity::Info {
        let what = "measured: none of the vCPUs is starved; what they wait for memory is not measured";
        hit = hit.with(Evidence::in_table(what, "placement.threads"));
    }
    hit.changes = gathered(model, caches, domain);
    if hit.changes.is_empty() && vcpus().any(|thread| one_each(model, domain, thread).is_some()) {
        hit.changes = brought(model, domain, holding, &own);
    }
    if hit.changes.is_empty() {
        hit.fix.push(model.proposal.why_none());
    }
    Some(hit)
}

/// The CPU of a vCPU whose VM has no more CPUs than busy vCPUs: each of them carries one, whichever it is.
fn one_each(model: &Model, domain: &Domain, thread: &Thread) -> Option<CpuSet> {
    let set = &thread.affinity.as_ref()?.value;
    let with_it = |other: &&Thread| other.affinity.as_ref().is_some_and(|own| own.value == *set);
    let busy = model.vcpus(domain).filter(with_it).filter(|other| Demand::of(other).low > BUSY).count();
    let last = thread.last_cpu.as_ref().filter(|cpu| set.contains(cpu.value))?;
    (set.len() > 1 && busy >= set.len()).then(|| CpuSet::one(last.value))
}

/// CPUs behind one cache of this node that have room for so many vCPUs: a core for each, or a CPU where they share cores already.
fn holding<'a>(model: &Model, caches: &'a BTreeMap<u32, CpuSet>, own: &CpuSet, vcpus: usize) -> Option<&'a CpuSet> {
    let topology = &model.machine.topology;
    let (isolated, node) = (topology.isolated.clone().unwrap_or_default(), topology.nodes_of(own));
    let others = model.unbound();
    let others = if own.is_within(&isolated) { others.and(&isolated) } else { others.without(&isolated) };
    let idle = |cpu: &u32| model.machine.cpu_use.get(cpu).is_none_or(|usage| usage.idle > 0.5);
    let free = own.or(&others.iter().filter(idle).collect());
    let packed = !topology.cores_unknown && topology.cores_of(own).len() < own.len();
    caches.values().filter(|cpus| topology.nodes_of(cpus) == node).find(|cpus| {
        let room = cpus.and(&free);
        let is_by_cpus = packed || topology.cores_unknown;
        vcpus <= if is_by_cpus { room.len() } else { topology.cores_of(&room).len() }
    })
}

/// What gives each vCPU a core behind that cache, where that costs nobody CPU time.
fn brought(model: &Model, domain: &Domain, holding: &CpuSet, own: &CpuSet) -> Vec<Change> {
    let proposal = &model.proposal;
    let idle = |cpu: &u32| own.contains(*cpu) || model.machine.cpu_use.get(cpu).is_some_and(|usage| usage.idle > 0.5);
    let room = holding.and(&own.or(&model.spare()));
    let mut cores = BTreeMap::new();
    for cpu in room.iter().filter(idle) {
        cores.entry(model.machine.topology.cpus.get(&cpu).map(|about| about.core)).or_insert(cpu);
    }
    let units = proposal.task.units.iter().zip(&proposal.subjects).enumerate();
    let vcpus = units.filter(|(_, (unit, subject))| unit.kind == Kind::Vcpu && subject.vm == domain.name);
    let vcpus: Vec<usize> = vcpus.map(|(unit, _)| unit).collect();
    if cores.len() < vcpus.len() {
        return Vec::new();
    }
    let to: Vec<(usize, CpuSet)> = vcpus.into_iter().zip(cores.into_values().map(CpuSet::one)).collect();
    let now = proposal.now().map_or(0.0, |now| proposal.missing(now));
    proposal.moving(&to).filter(|(_, missing)| *missing <= now).map(|(changes, _)| changes).unwrap_or_default()
}

/// What the placement changes of the VM's vCPUs, if it brings them behind one cache.
fn gathered(model: &Model, caches: &BTreeMap<u32, CpuSet>, domain: &Domain) -> Vec<Change> {
    let proposal = &model.proposal;
    let Some(plan) = proposal.advised() else { return Vec::new() };
    let units = proposal.task.units.iter().zip(&proposal.subjects).zip(&plan.places);
    let vcpus = units.filter(|((unit, subject), _)| unit.kind == Kind::Vcpu && subject.vm == domain.name);
    let there = vcpus.fold(CpuSet::default(), |all, (_, place)| all.or(place));
    if !caches.values().any(|cpus| there.is_within(cpus)) {
        return Vec::new();
    }
    proposal.part(|unit, subject| unit.kind == Kind::Vcpu && subject.vm == domain.name)
}
