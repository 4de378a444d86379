//! Are there CPUs of which more is wanted than they have, whatever runs where?
//!
//! ```text
//! the host           threads of VMs want more CPUs than it has
//! a set of its CPUs  vCPUs that may run nowhere else want more than that
//! ```
//! The set is full if nothing of it stays idle: then no placement within it helps, and each starved thread in it has this one cause.

use super::only_cpu;
use crate::placement::held::held;
use crate::placement::model::Demand;
use base::CpuSet;
use host::Machine;
use host::machine::{Role, Thread};
use std::collections::BTreeSet;

/// A set of CPUs that is idle for less than this is full: our own limit.
const IDLE: f64 = 0.2;

/// Sets that are looked at: a host of many VMs has few.
const MOST_SETS: usize = 64;

/// CPUs of which more is wanted than they have.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub cpus: CpuSet,
    pub host: bool,
    /// vCPUs that may run nowhere else.
    pub vcpus: u64,
    /// Other threads of VMs that are counted.
    pub others: u64,
    pub vms: BTreeSet<String>,
    pub wanted: f64,
    /// The idle share of these CPUs, where it is known.
    pub idle: Option<f64>,
}

impl Pool {
    /// Whether no CPU of it is left to use.
    pub(crate) fn is_full(&self) -> bool {
        self.idle.is_none_or(|idle| idle <= IDLE)
    }
}

/// The host, if more is wanted than it has; else the full sets that starved vCPUs are bound to, the largest first, none within another.
pub(super) fn pools(machine: &Machine, starved: &[usize]) -> Vec<Pool> {
    let online = &machine.topology.online;
    if online.is_empty() {
        return Vec::new();
    }
    let host = pool(machine, online);
    if host.as_ref().is_some_and(Pool::is_full) {
        return host.into_iter().collect();
    }
    let bound = starved.iter().filter_map(|position| Some(&machine.threads[*position].affinity.as_ref()?.value));
    let mut sets: Vec<CpuSet> = Vec::new();
    for set in bound.map(|set| set.and(online)).filter(|set| set.len() > 1 && set.len() < online.len()) {
        if sets.len() < MOST_SETS && !sets.contains(&set) {
            sets.push(set);
        }
    }
    // Where a VM starves on CPUs that are its own, and others may run there as well, their mask is the cause.
    let own = held(machine);
    let starves_at_home = |cpu: u32| {
        let mut threads = starved.iter().map(|position| &machine.threads[*position]);
        threads.any(|thread| thread.vm.as_deref() == own.get(&cpu).copied() && only_cpu(thread) == Some(cpu))
    };
    sets.retain(|set| {
        !set.iter().any(|cpu| own.contains_key(&cpu) && starves_at_home(cpu)) || is_one_vms(machine, set)
    });
    sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
    let mut found: Vec<Pool> = host.into_iter().collect();
    for pool in sets.iter().filter_map(|set| pool(machine, set)).filter(Pool::is_full) {
        if !found.iter().any(|larger| !larger.host && pool.cpus.is_within(&larger.cpus)) {
            found.push(pool);
        }
    }
    found
}

/// Whether all vCPUs that may run in a set are of one VM.
fn is_one_vms(machine: &Machine, set: &CpuSet) -> bool {
    let there = machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_)));
    let there = there.filter(|thread| thread.affinity.as_ref().is_some_and(|own| own.value.meets(set)));
    there.map(|thread| thread.vm.as_deref()).collect::<BTreeSet<_>>().len() <= 1
}

fn pool(machine: &Machine, cpus: &CpuSet) -> Option<Pool> {
    let online = &machine.topology.online;
    let host = cpus == online;
    let inside = |thread: &&Thread| thread.affinity.as_ref().map_or(host, |set| set.value.and(online).is_within(cpus));
    let is_vcpu = |thread: &&Thread| matches!(thread.role, Role::Vcpu(_));
    let of_vms =
        || machine.threads.iter().filter(|thread| thread.vm.is_some() || thread.role == Role::Pmd).filter(inside);
    let known = |thread: &&Thread| thread.run_share.is_some() && thread.wait_share.is_some();
    if of_vms().filter(is_vcpu).any(|thread| !known(&thread)) {
        return None;
    }
    // Others wait as well where they run together with vCPUs that have the whole set, and fill it: whoever takes it is one of them.
    let has_all = |thread: &&Thread| thread.affinity.as_ref().is_some_and(|set| set.value.and(online) == *cpus);
    let ran: f64 = of_vms().filter_map(|thread| Some(thread.run_share.as_ref()?.value)).sum();
    let is_theirs = of_vms().filter(is_vcpu).all(|thread| has_all(&thread)) && ran >= (1.0 - IDLE) * cpus.len() as f64;
    let counted: Vec<&Thread> =
        of_vms().filter(|thread| is_vcpu(thread) || (host || is_theirs) && known(thread)).collect();
    let wanted: f64 = counted.iter().map(|thread| Demand::of(thread).likely).sum();
    if wanted <= cpus.len() as f64 {
        return None;
    }
    let vcpus = counted.iter().filter(|thread| is_vcpu(thread)).count() as u64;
    let idle: Option<f64> = cpus.iter().map(|cpu| machine.cpu_use.get(&cpu).map(|usage| usage.idle)).sum();
    Some(Pool {
        cpus: cpus.clone(),
        host,
        vcpus,
        others: counted.len() as u64 - vcpus,
        vms: counted.iter().filter_map(|thread| thread.vm.clone()).collect(),
        wanted,
        idle: idle.map(|idle| idle / cpus.len().max(1) as f64),
    })
}
