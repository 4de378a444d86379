//! A task as arrays: every CPU, core and node by its position, so that thousands of placements can be scored.

use super::caches::Caches;
use super::{Kind, Task, limits};
use base::CpuSet;
use facts::shares::Cpus;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A task and what is looked up in it again and again.
pub(super) struct Ground<'a> {
    pub task: &'a Task,
    /// Its CPUs, as the model of shares has them.
    pub cpus: Cpus,
    /// Node of each CPU, and how many there are.
    pub node: Vec<usize>,
    pub nodes: usize,
    /// Package of each CPU, and how many there are.
    pub package: Vec<usize>,
    pub packages: usize,
    /// Groups of CPUs that share a last-level cache.
    pub caches: Caches,
    /// What a unit loses of its share on each node, by unit: half of what the distance bounds.
    lost: Vec<Vec<f64>>,
    /// CPUs that each unit may be given.
    allowed: Vec<CpuSet>,
    /// Where each unit is now.
    was: Vec<CpuSet>,
    /// The one CPU of each that stays there on the set that it has now.
    stuck: Vec<Option<CpuSet>>,
    /// CPUs that the scheduler does not balance.
    isolated: CpuSet,
    /// Whether each is a vCPU that shares its CPUs with nobody.
    alone: Vec<bool>,
    /// The VM that has each CPU for itself.
    held: Vec<Option<usize>>,
}

impl<'a> Ground<'a> {
    pub(super) fn of(task: &'a Task) -> Self {
        let cpus = Cpus::new(task.cpus.iter().map(|room| (room.cpu, room.core, room.taken)));
        let (node, nodes) = numbered(task.cpus.iter().map(|room| room.node));
        let (package, packages) = numbered(task.cpus.iter().map(|room| room.package));
        let mut names = vec![0; nodes];
        task.cpus.iter().zip(&node).for_each(|(room, node)| names[*node] = room.node);
        let lost = task.units.iter().map(|unit| {
            let far = |node: &u32| unit.home.map_or(10, |home| task.distance(home, *node));
            names.iter().map(|node| (1.0 - 10.0 / f64::from(far(node))) / 2.0).collect()
        });
        let lost = lost.collect();
        let allowed = task.units.iter().map(|unit| task.allowed_to(unit)).collect();
        let stuck = task.units.iter().map(|unit| unit.stuck.map(CpuSet::one)).collect();
        let mut ground = Self {
            task,
            cpus,
            node,
            nodes,
            package,
            packages,
            caches: Caches::default(),
            lost,
            allowed,
            was: Vec::new(),
            stuck,
            isolated: task.cpus.iter().filter(|room| room.isolated).map(|room| room.cpu).collect(),
            alone: Vec::new(),
            held: task.cpus.iter().map(|room| task.held.get(&room.cpu).copied()).collect(),
        };
        ground.was = ground.now();
        ground.caches = Caches::of(task, &ground.allowed, &ground.was);
        ground.alone = limits::alone(&ground, &ground.was);
        ground
    }

    /// Where a unit is now.
    pub(super) fn was(&self, unit: usize) -> &CpuSet {
        &self.was[unit]
    }

    /// Whether a unit is a vCPU that shares its CPUs with nobody now.
    pub(super) fn was_alone(&self, unit: usize) -> bool {
        self.alone[unit]
    }

    /// Whether a CPU is another VM's by its pins: no thread that is sent anywhere comes there.
    pub(super) fn is_anothers(&self, unit: usize, cpu: usize) -> bool {
        let about = &self.task.units[unit];
        let is_thread = !matches!(about.kind, Kind::Irq | Kind::Housekeeping);
        is_thread && self.held[cpu].is_some() && self.held[cpu] != about.vm
    }

    /// The CPUs that a unit uses of a place: nothing brings it to isolated ones beside others, nor from one to another.
    pub(super) fn used<'b>(&'b self, unit: usize, place: &'b CpuSet) -> Cow<'b, CpuSet> {
        if place.len() < 2 || !place.meets(&self.isolated) {
            return Cow::Borrowed(place);
        }
        let balanced = place.without(&self.isolated);
        if !balanced.is_empty() {
            return Cow::Owned(balanced);
        }
        match self.stuck[unit].as_ref().filter(|_| *place == self.was[unit]) {
            Some(stuck) => Cow::Borrowed(stuck),
            None => Cow::Owned(place.first().map_or_else(CpuSet::default, CpuSet::one)),
        }
    }

    pub(super) fn positions<'b>(&'b self, set: &'b CpuSet) -> impl Iterator<Item = usize> + 'b {
        self.cpus.positions(set)
    }

    /// CPUs that a unit may be given.
    pub(super) fn allowed(&self, unit: usize) -> &CpuSet {
        &self.allowed[unit]
    }

    /// Part of its work that a unit loses on a CPU, to memory or a device far away.
    pub(super) fn lost(&self, unit: usize, cpu: usize) -> f64 {
        self.lost[unit][self.node[cpu]]
    }

    /// Where the units are now, as far as that was told and still runs; else anywhere.
    pub(super) fn now(&self) -> Vec<CpuSet> {
        let all = self.task.all();
        let place = |now: &Option<CpuSet>| now.as_ref().map(|now| now.and(&all)).filter(|now| !now.is_empty());
        self.task.units.iter().map(|unit| place(&unit.now).unwrap_or_else(|| all.clone())).collect()
    }

    /// The same, but off the CPUs that the user reserved: what was there may run on any other CPU. What is kept stays.
    pub(super) fn start(&self) -> Vec<CpuSet> {
        let reserved: CpuSet = self.task.cpus.iter().filter(|room| room.reserved).map(|room| room.cpu).collect();
        let mut places = self.now();
        for (unit, about) in self.task.units.iter().enumerate().filter(|(_, unit)| !unit.kept) {
            if matches!(about.kind, Kind::Vcpu | Kind::Pmd | Kind::Helpers | Kind::Worker)
                && places[unit].meets(&reserved)
            {
                let inside = places[unit].without(&reserved);
                places[unit] = if inside.is_empty() { self.allowed(unit).clone() } else { inside };
            }
        }
        places
    }

    /// How much work it is to score these places.
    pub(super) fn work(&self, places: &[CpuSet]) -> usize {
        places.iter().map(CpuSet::len).sum::<usize>() + self.task.cpus.len()
    }
}

/// Names as positions in the order of their first appearance, and how many.
fn numbered(names: impl Iterator<Item = u32>) -> (Vec<usize>, usize) {
    let mut known: BTreeMap<u32, usize> = BTreeMap::new();
    let mut positions = Vec::new();
    for name in names {
        let next = known.len();
        positions.push(*known.entry(name).or_insert(next));
    }
    (positions, known.len())
}
