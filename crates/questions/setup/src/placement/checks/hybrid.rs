//! Busy vCPUs on the slow cores of a hybrid processor, while fast ones have nothing to do.

use super::slice;
use crate::page::typed;
use crate::placement::culprits::cpus_named;
use crate::placement::model::Model;
use base::number::{list, many};
use base::{CpuSet, Severity};
use facts::rule::Hit;
use host::Machine;
use host::machine::{Domain, Role};
use std::collections::BTreeMap;
use tongue::groups::cpus;

/// A core whose highest clock is this part of the fastest one's is of another kind: bins of one kind are closer (our own limit).
pub(in crate::placement) const SLOWER: f64 = 0.85;

/// A vCPU that runs for this share of the time is held up by its clock: our own limit.
pub(in crate::placement) const BUSY: f64 = 0.9;

/// What a CPU's clock may reach, in kHz, and what it does at most beside the best one's 1,024.
const KHZ: &str = "cpufreq/cpuinfo_max_freq";
const CAPACITY: &str = "cpu_capacity";

/// What a file of each CPU says, where all CPUs have it.
fn of_each(machine: &Machine, file: &str) -> Option<BTreeMap<u32, f64>> {
    let of = |cpu: u32| {
        let told = machine.settings.get(&format!("sys/devices/system/cpu/cpu{cpu}/{file}"))?;
        Some((cpu, told.value.trim().parse().ok()?))
    };
    machine.topology.online.iter().map(of).collect()
}

/// The slow cores, and what tells them: the kind of Intel's cores by their performance counters, else what each does at most, else
/// its highest clock, in which kinds may be close.
fn slow(machine: &Machine) -> Option<(CpuSet, String)> {
    const ATOM: &str = "sys/devices/cpu_atom/cpus";
    if let Some(atom) = machine.setting(ATOM).and_then(|list| CpuSet::parse(list.trim())) {
        return Some((atom.and(&machine.topology.online), ATOM.to_owned()));
    }
    let of = |file: &str| {
        let told = of_each(machine, file)?;
        let best = told.values().copied().fold(0.0, f64::max);
        let slow: CpuSet = told.iter().filter(|(_, own)| **own <= SLOWER * best).map(|(cpu, _)| *cpu).collect();
        (!slow.is_empty()).then(|| (slow, format!("sys/devices/system/cpu/cpu*/{file}")))
    };
    of(CAPACITY).or_else(|| of(KHZ))
}

/// VMs with busy vCPUs that are bound to slow cores, where fast cores have room.
pub(crate) fn slow_cores(model: &Model) -> Vec<Hit> {
    let machine = &model.machine;
    let (Some((slow, place)), Some(now)) = (slow(machine), model.proposal.now()) else { return Vec::new() };
    let khz = of_each(machine, KHZ).unwrap_or_default();
    let best = khz.values().copied().fold(0.0, f64::max);
    let mut free = idle_cores(model, &slow);
    let mut hits = Vec::new();
    for domain in &machine.domains {
        let units = model.proposal.task.units.iter().zip(&model.proposal.subjects).enumerate();
        let of_it = units.filter(|(_, (_, subject))| subject.vm == domain.name);
        let busy = |role: Role| {
            let own = machine.threads_of(&domain.name).find(|thread| thread.role == role);
            own.and_then(|thread| thread.run_share.as_ref()).is_some_and(|run| run.value >= BUSY)
        };
        let mut plan = now.clone();
        let mut moved: Vec<(usize, u32, CpuSet)> = Vec::new();
        // By a group that has slow cores alone: no pin reaches beyond it.
        let mut held: Vec<(u32, CpuSet)> = Vec::new();
        for (at, (unit, subject)) in of_it {
            let Role::Vcpu(vcpu) = subject.role else { continue };
            let bound = unit.now.as_ref().filter(|set| !set.is_empty() && set.is_within(&slow));
            let (Some(bound), true, false) = (bound, busy(subject.role), unit.kept) else { continue };
            let node = |cpu: u32| machine.topology.cpus.get(&cpu).and_then(|about| about.node);
            let near = |cpu: u32| bound.first().is_some_and(|now| node(now) == node(cpu));
            let allowed = |cpu: &&u32| near(**cpu) && unit.limit.as_ref().is_none_or(|limit| limit.contains(**cpu));
            let Some(cpu) = free.iter().find(allowed).copied() else {
                held.extend(unit.limit.as_ref().filter(|limit| limit.is_within(&slow)).map(|_| (vcpu, bound.clone())));
                continue;
            };
            free.retain(|other| *other != cpu);
            plan.places[at] = CpuSet::one(cpu);
            moved.push((at, vcpu, bound.clone()));
        }
        let group = if moved.is_empty() { group_of(model, domain, held.len(), &free) } else { None };
        if moved.is_empty() && group.is_none() {
            continue;
        }
        let told: Vec<(u32, CpuSet)> =
            if group.is_some() { held } else { moved.iter().map(|(_, vcpu, set)| (*vcpu, set.clone())).collect() };
        let from = told.iter().fold(CpuSet::default(), |all, (_, bound)| all.or(bound));
        let of_plan = || moved.iter().filter_map(|(at, ..)| plan.places[*at].first()).collect::<CpuSet>();
        let to = group.as_ref().map_or_else(of_plan, |(.., to)| to.clone());
        free.retain(|cpu| !to.contains(*cpu));
        let own = from.iter().filter_map(|cpu| khz.get(&cpu)).copied().fold(0.0, f64::max);
        let clocks = if own > 0.0 { format!(": {:.1} of {:.1} GHz", own / 1e6, best / 1e6) } else { String::new() };
        let title = format!(
            "{} of {} {} bound to slow cores ({}{clocks}), while {} {} idle",
            many(told.len() as u64, "busy vCPU"),
            domain.name,
            if told.len() == 1 { "is" } else { "are" },
            cpus_named(&from),
            cpus_named(&to),
            if to.len() == 1 { "is" } else { "are" }
        );
        let vcpus: Vec<String> = told.iter().map(|(vcpu, _)| vcpu.to_string()).collect();
        let mut hit = Hit::new(&domain.name, Severity::Medium, title).of_domain(&domain.name);
        hit = hit.seen(format!("vCPUs {} may run there alone", list(&vcpus)), "table threads");
        hit = hit.seen(format!("slow cores: {slow}"), place.as_str());
        if let Some((path, limit, to)) = &group {
            hit = hit.seen(format!("{path} has CPUs {limit}"), "table threads");
            typed(&mut hit, cpus(&model.machine, path, to, limit));
        }
        hit.changes = moved.iter().flat_map(|(at, ..)| model.proposal.changes(&plan, *at)).collect();
        hits.push(hit);
    }
    hits
}

/// The group that has slow cores alone, its CPUs, and as many fast ones that are idle. What Kubernetes gives a pod
/// its CPU manager chooses.
fn group_of<'a>(
    model: &'a Model,
    domain: &'a Domain,
    busy: usize,
    free: &[u32],
) -> Option<(&'a str, &'a CpuSet, CpuSet)> {
    let machine = &model.machine;
    let thread = machine.threads_of(&domain.name).find(|thread| matches!(thread.role, Role::Vcpu(_)))?;
    let (path, limit) = machine.limit_of(thread).filter(|(path, _)| busy > 0 && !path.contains("kubepods"))?;
    let path = slice::top_of(machine, path, &limit.value);
    let taken = slice::taken(machine, path);
    let to: CpuSet = free.iter().copied().filter(|cpu| !taken.contains(*cpu)).take(limit.value.len()).collect();
    // Others may be in it, so it gets no fewer than it had.
    (to.len() == limit.value.len()).then_some((path, &limit.value, to))
}

/// The first CPU of each fast core that has room whole.
fn idle_cores(model: &Model, slow: &CpuSet) -> Vec<u32> {
    let free = model.spare().without(slow);
    let cores = model.machine.topology.cores().into_values();
    let whole = cores.filter(|cpus| cpus.is_within(&free) && cpus.iter().all(|cpu| model.has_room(cpu)));
    let mut first: Vec<u32> = whole.filter_map(|cpus| cpus.first()).collect();
    first.sort_unstable();
    first
}
