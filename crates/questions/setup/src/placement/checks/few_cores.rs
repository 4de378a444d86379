//! VMs whose set of CPUs has fewer cores than they have busy vCPUs, while whole cores have nothing to do: no run queue shows it.

use super::slice::{IDLE, owned, taken, top_of};
use crate::page::typed;
use crate::placement::culprits::cpus_named;
use crate::placement::model::{Demand, Model};
use crate::placement::solver::Kind;
use base::number::{counted, many};
use base::{Cost, CostKind, CpuSet, Evidence, Needs, Severity};
use facts::rule::Hit;
use facts::shares::SMT_YIELD;
use host::machine::{Domain, Thread};
use tongue::groups::cpus;

/// A vCPU that wants so much of a CPU wants a core: our own limit.
pub(in crate::placement) const WANTS_A_CORE: f64 = 0.5;

/// CPUs that vCPUs must be short of beside each other: our own limit.
pub(in crate::placement) const SHORT: f64 = 0.2;

/// The set that all vCPUs of a VM have, of several CPUs and less than the host's.
pub(crate) fn sets(model: &Model) -> Vec<Hit> {
    model.machine.domains.iter().filter_map(|domain| crowded(model, domain)).collect()
}

fn crowded(model: &Model, domain: &Domain) -> Option<Hit> {
    let topology = &model.machine.topology;
    // A guest that is shown threads of a core knows what shares one.
    if topology.cores_unknown || domain.topology.as_ref().is_some_and(|shown| shown.value.threads > 1) {
        return None;
    }
    let vcpus: Vec<&Thread> = model.vcpus(domain).collect();
    let first = *vcpus.first()?;
    let told = first.affinity.as_ref()?;
    let limit = model.machine.limit_of(first).filter(|(_, limit)| !topology.online.is_within(&limit.value));
    let set = limit.map_or_else(|| told.value.clone(), |(_, limit)| told.value.and(&limit.value)).and(&topology.online);
    let has_it = |thread: &&Thread| thread.affinity.as_ref().is_some_and(|own| own.value == told.value);
    if set.len() < 2 || topology.online.is_within(&set) || !vcpus.iter().all(has_it) {
        return None;
    }
    let known = |thread: &&Thread| thread.run_share.is_some() && thread.wait_share.is_some();
    if !vcpus.iter().all(known) {
        return None;
    }
    let wishes: Vec<f64> = vcpus.iter().map(|thread| Demand::of(thread).likely).collect();
    let (busy, wanted) = (wishes.iter().filter(|wish| **wish >= WANTS_A_CORE).count(), wishes.iter().sum::<f64>());
    let cores = topology.cores_of(&set);
    let gives = |core: &u32| if topology.of_core(*core).and(&set).len() > 1 { SMT_YIELD } else { 1.0 };
    let short = wanted - cores.iter().map(gives).sum::<f64>();
    let empty = empty_cores(model, first, &set);
    let more: Vec<&CpuSet> = empty.iter().take(busy.saturating_sub(cores.len())).collect();
    if short < SHORT || more.is_empty() || set.len() == cores.len() {
        return None;
    }
    let own = cores.iter().filter_map(|core| topology.of_core(*core).and(&set).first());
    let to: CpuSet = own.chain(more.iter().filter_map(|core| core.first())).collect();
    let title = format!(
        "{busy} busy vCPUs of {} have {} of {} alone, while {} idle",
        domain.name,
        cpus_named(&set),
        many(cores.len() as u64, "core"),
        counted(empty.len() as u64, "whole core is", "whole cores are")
    );
    let mut hit = Hit::new(&domain.name, Severity::Medium, title);
    hit.needs = Some(Needs::Nothing);
    let place = limit.map_or(told.place.as_str(), |(_, limit)| limit.place.as_str());
    hit = hit.seen(format!("its vCPUs may run on {set}"), place).seen(
        format!(
            "these are {}, of which two busy siblings do {SMT_YIELD} times the work of one (assumed)",
            many(cores.len() as u64, "core")
        ),
        &topology.place,
    );
    let idle = more.iter().fold(CpuSet::default(), |all, core| all.or(core));
    hit = hit.seen(format!("no thread is bound to {}, and they were idle", cpus_named(&idle)), "proc/stat");
    hit.cost = Cost::of(CostKind::Modelled, short, "CPUs short beside busy siblings");
    match limit {
        Some((path, _)) if path.contains("kubepods") => return None,
        Some((path, limit)) if !to.is_within(&limit.value) => {
            typed(&mut hit, cpus(&model.machine, top_of(&model.machine, path, &limit.value), &to, &limit.value));
        }
        _ => {
            let units = model.proposal.task.units.iter().zip(&model.proposal.subjects).enumerate();
            let own = units.filter(|(_, (unit, of))| unit.kind == Kind::Vcpu && of.vm == domain.name);
            let places: Vec<(usize, CpuSet)> = own.map(|(unit, _)| (unit, to.clone())).collect();
            let (changes, missing) = model.proposal.moving(&places)?;
            let now = model.proposal.now().map_or(0.0, |now| model.proposal.missing(now));
            let what = format!("CPUs short: {now:.2} now, {missing:.2} with these commands (modelled)");
            hit = hit.with(Evidence::in_table(what, "placement.plans"));
            hit.changes = changes;
        }
    }
    Some(hit)
}

/// Whole cores beyond a set of which nobody has a CPU and that hardly ran, those of its nodes and the idlest first.
fn empty_cores(model: &Model, thread: &Thread, set: &CpuSet) -> Vec<CpuSet> {
    let (machine, topology) = (&model.machine, &model.machine.topology);
    let group = thread.cgroup.as_deref().unwrap_or_default();
    let isolated = topology.isolated.clone().unwrap_or_default();
    let free = model.unbound().without(&isolated).without(&taken(machine, group)).without(&owned(machine, group));
    let free = free.without(set);
    let idle = |cpu: u32| machine.cpu_use.get(&cpu).map_or(0.0, |usage| usage.idle);
    let least = |core: &CpuSet| core.iter().map(idle).fold(1.0, f64::min);
    let mut empty: Vec<CpuSet> = topology
        .cores()
        .into_values()
        .filter(|core| !core.is_empty() && core.is_within(&free) && least(core) >= IDLE)
        .collect();
    let nodes = topology.nodes_of(set);
    let is_far = |core: &CpuSet| !topology.nodes_of(core).iter().all(|node| nodes.contains(node));
    empty.sort_by(|a, b| is_far(a).cmp(&is_far(b)).then(least(b).total_cmp(&least(a))).then(a.first().cmp(&b.first())));
    empty
}
