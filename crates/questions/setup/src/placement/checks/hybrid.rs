//! Busy vCPUs on the slow cores of a hybrid processor, while fast ones have nothing to do.

use crate::placement::culprits::cpus_named;
use crate::placement::model::Model;
use base::number::{list, many};
use base::{CpuSet, Severity};
use facts::rule::Hit;
use host::Machine;
use host::machine::Role;
use std::collections::BTreeMap;

/// A core whose highest clock is this part of the fastest one's is of another kind: bins of one kind are closer (our own limit).
pub(in crate::placement) const SLOWER: f64 = 0.85;

/// A vCPU that runs for this share of the time is held up by its clock: our own limit.
pub(in crate::placement) const BUSY: f64 = 0.9;

/// What a CPU's clock may reach, in kHz, where all CPUs tell.
fn highest_khz(machine: &Machine) -> Option<BTreeMap<u32, f64>> {
    let of = |cpu: u32| {
        let told = machine.settings.get(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"))?;
        Some((cpu, told.value.trim().parse().ok()?))
    };
    machine.topology.online.iter().map(of).collect()
}

/// VMs with busy vCPUs that are bound to slow cores, where fast cores have room.
pub(crate) fn slow_cores(model: &Model) -> Vec<Hit> {
    let machine = &model.machine;
    let (Some(khz), Some(now)) = (highest_khz(machine), model.proposal.now()) else { return Vec::new() };
    let best = khz.values().copied().fold(0.0, f64::max);
    let slow: CpuSet = khz.iter().filter(|(_, own)| **own <= SLOWER * best).map(|(cpu, _)| *cpu).collect();
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
        for (at, (unit, subject)) in of_it {
            let Role::Vcpu(vcpu) = subject.role else { continue };
            let bound = unit.now.as_ref().filter(|set| !set.is_empty() && set.is_within(&slow));
            let (Some(bound), true, false) = (bound, busy(subject.role), unit.kept) else { continue };
            let node = |cpu: u32| machine.topology.cpus.get(&cpu).and_then(|about| about.node);
            let near = |cpu: u32| bound.first().is_some_and(|now| node(now) == node(cpu));
            let allowed = |cpu: &&u32| near(**cpu) && unit.limit.as_ref().is_none_or(|limit| limit.contains(**cpu));
            let Some(cpu) = free.iter().find(allowed).copied() else { continue };
            free.retain(|other| *other != cpu);
            plan.places[at] = CpuSet::one(cpu);
            moved.push((at, vcpu, bound.clone()));
        }
        if moved.is_empty() {
            continue;
        }
        let from = moved.iter().fold(CpuSet::default(), |all, (.., bound)| all.or(bound));
        let to: CpuSet = moved.iter().filter_map(|(at, ..)| plan.places[*at].first()).collect();
        let own = from.iter().filter_map(|cpu| khz.get(&cpu)).copied().fold(0.0, f64::max);
        let title = format!(
            "{} of {} {} bound to slow cores ({}: {:.1} of {:.1} GHz), while {} {} idle",
            many(moved.len() as u64, "busy vCPU"),
            domain.name,
            if moved.len() == 1 { "is" } else { "are" },
            cpus_named(&from),
            own / 1e6,
            best / 1e6,
            cpus_named(&to),
            if to.len() == 1 { "is" } else { "are" }
        );
        let vcpus: Vec<String> = moved.iter().map(|(_, vcpu, _)| vcpu.to_string()).collect();
        let mut hit = Hit::new(&domain.name, Severity::Medium, title).of_domain(&domain.name);
        hit = hit.seen(format!("vCPUs {} may run there alone", list(&vcpus)), "table threads");
        hit = hit.seen("the highest clock of each CPU", "sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_max_freq");
        hit.changes = moved.iter().flat_map(|(at, ..)| model.proposal.changes(&plan, *at)).collect();
        hits.push(hit);
    }
    hits
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
