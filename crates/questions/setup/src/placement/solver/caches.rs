//! VMs near a cache of their own: what of each runs apart from the rest of it, and the group of CPUs that holds it whole.
//!
//! What the threads of a VM pass to each other stays in a last-level cache that they share. Priced are VMs that fit: one group
//! of CPUs behind one cache has a core for each of their vCPUs, or a thread for each where two share a core already. A vCPU on
//! several groups is the scheduler's, which wakes threads near their caches (`select_idle_sibling`, kernel/sched/fair.c, Linux
//! 6.12). Where each node has one cache, distance says it all.

use super::ground::Ground;
use super::starts::cheapest;
use super::{Kind, Score, Task};
use base::CpuSet;
use std::collections::{BTreeMap, BTreeSet};

/// What a CPU's worth of work costs, in points, that runs apart from the rest of its VM: our own weight. Less than half of what
/// it loses at distance 11, the nearest that another node can be.
pub(super) const APART: f64 = 40.0;

/// Groups that are tried for a VM.
const TRIED: usize = 4;

/// Groups of CPUs by their last-level cache, and the VMs that fit into one.
#[derive(Default)]
pub(super) struct Caches {
    /// Group of each CPU, by position; empty where none is told, or none is smaller than its node.
    group: Vec<usize>,
    cpus: Vec<CpuSet>,
    /// The VM of each unit, numbered among those that fit into a group; empty without groups.
    vm: Vec<Option<usize>>,
    /// Of each such VM, whether two of its vCPUs share a core now: the guest may know of it.
    packed: Vec<bool>,
}

impl Caches {
    /// The groups of a task; `allowed` and `now` are of its units.
    pub(super) fn of(task: &Task, allowed: &[CpuSet], now: &[CpuSet]) -> Self {
        let mut known: BTreeMap<(u32, u32), CpuSet> = BTreeMap::new();
        let nodes: BTreeSet<u32> = task.cpus.iter().map(|room| room.node).collect();
        for room in &task.cpus {
            let Some(cache) = room.cache else { return Self::default() };
            known.entry((room.node, cache)).or_default().insert(room.cpu);
        }
        if known.len() == nodes.len() {
            return Self::default();
        }
        let position: BTreeMap<(u32, u32), usize> = known.keys().copied().zip(0..).collect();
        let group = task.cpus.iter().filter_map(|room| position.get(&(room.node, room.cache?)).copied()).collect();
        let core: BTreeMap<u32, u32> = task.cpus.iter().map(|room| (room.cpu, room.core)).collect();
        let cores = |cpus: &CpuSet| cpus.iter().filter_map(|cpu| core.get(&cpu)).collect::<BTreeSet<_>>().len();
        let mut vms: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (unit, about) in task.units.iter().enumerate().filter(|(_, unit)| unit.kind == Kind::Vcpu) {
            vms.entry(about.vm.filter(|vm| !task.scattered.contains(vm)).unwrap_or(usize::MAX)).or_default().push(unit);
        }
        vms.remove(&usize::MAX);
        let (mut number, mut packed): (BTreeMap<usize, usize>, Vec<bool>) = (BTreeMap::new(), Vec::new());
        for (vm, vcpus) in vms {
            let pins = vcpus.iter().filter(|unit| now[**unit].len() == 1);
            let pins = pins.fold(CpuSet::default(), |all, unit| all.or(&now[*unit]));
            let shares_cores = cores(&pins) < pins.len();
            let may = vcpus.iter().fold(task.all(), |all, unit| all.and(&allowed[*unit]));
            let holds = |cpus: &CpuSet| {
                let cpus = cpus.and(&may);
                vcpus.len() <= if shares_cores { cpus.len() } else { cores(&cpus) }
            };
            if known.values().any(holds) {
                number.insert(vm, packed.len());
                packed.push(shares_cores);
            }
        }
        let vm = task.units.iter().map(|unit| number.get(&unit.vm?).copied()).collect();
        Self { group, cpus: known.into_values().collect(), vm, packed }
    }

    /// The VM of a unit, if it fits into a group.
    fn vm(&self, unit: usize) -> Option<usize> {
        self.vm.get(unit).copied().flatten()
    }

    fn only_group(&self, ground: &Ground<'_>, place: &CpuSet) -> Option<usize> {
        let mut positions = ground.positions(place).map(|cpu| self.group[cpu]);
        let first = positions.next()?;
        positions.all(|group| group == first).then_some(first)
    }
}

/// What each VM has in each group, while a placement grows.
pub(super) struct Together {
    /// CPUs' worth of work, by VM and group.
    on: Vec<Vec<f64>>,
    /// The same in all, of vCPUs that keep to a group, and of helpers.
    vcpus: Vec<f64>,
    helpers: Vec<f64>,
    /// Whether a vCPU has one CPU of the core, by VM and core.
    core_used: Vec<Vec<bool>>,
}

impl Together {
    pub(super) fn nothing(ground: &Ground<'_>) -> Self {
        let vms = ground.caches.packed.len();
        Self {
            on: vec![vec![0.0; ground.caches.cpus.len()]; vms],
            vcpus: vec![0.0; vms],
            helpers: vec![0.0; vms],
            core_used: vec![vec![false; ground.cpus.cores]; vms],
        }
    }

    pub(super) fn of(ground: &Ground<'_>, places: &[CpuSet]) -> Self {
        let mut together = Self::nothing(ground);
        places.iter().enumerate().for_each(|(unit, place)| together.add(ground, unit, place));
        together
    }

    pub(super) fn add(&mut self, ground: &Ground<'_>, unit: usize, place: &CpuSet) {
        let (caches, about) = (&ground.caches, &ground.task.units[unit]);
        let Some(vm) = caches.vm(unit) else { return };
        match about.kind {
            Kind::Vcpu => {
                let Some(group) = caches.only_group(ground, place) else { return };
                self.vcpus[vm] += about.demand;
                // To put two vCPUs on one core is no way to bring them together.
                let only = ground.positions(place).next().filter(|_| place.len() == 1);
                let used = only.map(|cpu| &mut self.core_used[vm][ground.cpus.core[cpu]]);
                if !used.is_some_and(|used| std::mem::replace(used, true)) || caches.packed[vm] {
                    self.on[vm][group] += about.demand;
                }
            }
            Kind::Helpers | Kind::Worker => {
                let part = about.demand / place.len().max(1) as f64;
                for cpu in ground.positions(place) {
                    self.on[vm][caches.group[cpu]] += part;
                    self.helpers[vm] += part;
                }
            }
            Kind::Pmd | Kind::Irq | Kind::Housekeeping => {}
        }
    }

    /// Whether most of a unit's VM is in another group than this CPU.
    pub(super) fn is_away(&self, ground: &Ground<'_>, unit: usize, cpu: usize) -> bool {
        ground
            .caches
            .vm(unit)
            .is_some_and(|vm| self.vcpus[vm] > 0.0 && self.on[vm][ground.caches.group[cpu]] < most(&self.on[vm]))
    }

    /// CPUs' worth of work that is in another group than most of its VM; of VMs of which a vCPU keeps to a group.
    pub(super) fn apart(&self) -> f64 {
        let vms = self.on.iter().zip(&self.vcpus).zip(&self.helpers).filter(|((_, vcpus), _)| **vcpus > 0.0);
        vms.map(|((on, vcpus), helpers)| (vcpus + helpers - most(on)).max(0.0)).sum()
    }
}

fn most(of_groups: &[f64]) -> f64 {
    of_groups.iter().copied().fold(0.0, f64::max)
}

/// Brings each VM whose vCPUs have CPUs of several groups to one of them, where the score falls by it. Says how much work it was.
pub(super) fn gather(ground: &Ground<'_>, places: &mut [CpuSet], movable: &[usize], best: &mut f64) -> usize {
    let (caches, mut work) = (&ground.caches, 0);
    for vm in 0..caches.packed.len() {
        let pinned = |unit: &usize| ground.task.units[*unit].kind == Kind::Vcpu && places[*unit].len() == 1;
        let of_vm = |unit: &usize| caches.vm(*unit) == Some(vm);
        let vcpus: Vec<usize> = movable.iter().copied().filter(|unit| of_vm(unit) && pinned(unit)).collect();
        let own = vcpus.iter().fold(CpuSet::default(), |all, unit| all.or(&places[*unit]));
        if caches.only_group(ground, &own).is_some() || vcpus.is_empty() {
            continue;
        }
        let bound = |(unit, place): &(usize, &CpuSet)| place.len() == 1 && ground.task.units[*unit].kind != Kind::Irq;
        let others = places.iter().enumerate().filter(bound).fold(CpuSet::default(), |all, (_, place)| all.or(place));
        let others = others.without(&own);
        let free = |group: &usize| caches.cpus[*group].without(&others).len() >= vcpus.len();
        let mut groups: Vec<usize> = (0..caches.cpus.len()).filter(free).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(caches.cpus[*group].and(&own).len()));
        for group in groups.into_iter().take(TRIED) {
            let mut there = places.to_vec();
            for unit in vcpus.iter().filter(|unit| !places[**unit].is_within(&caches.cpus[group])) {
                let among = ground.allowed(*unit).and(&caches.cpus[group]);
                work += ground.work(places);
                if let Some(cpu) = cheapest(ground, &there, *unit, &among, 1).pop() {
                    there[*unit] = cpu;
                }
            }
            let score = Score::of(ground, &there).0.total;
            work += ground.work(places);
            if score < *best - 1e-9 {
                *best = score;
                places.clone_from_slice(&there);
            }
        }
    }
    work
}
