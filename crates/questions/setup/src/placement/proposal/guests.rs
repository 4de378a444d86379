//! What a guest is shown of its machine, and how a placement could make that untrue.
//!
//! A guest that sees threads of a core schedules for them, and one that sees one node allocates as if all memory were near:
//! a placement that parts what belongs together is no choice, whatever CPU time it brings.

use super::{Plan, Proposal};
use base::CpuSet;
use host::machine::{Domain, Role};
use std::collections::BTreeMap;

/// What one guest is shown and bound to.
#[derive(Debug)]
pub(super) struct Guest {
    /// Threads of a core.
    threads: u32,
    /// NUMA nodes.
    nodes: usize,
    /// The vCPUs of each, as far as that is told.
    cells: Vec<CpuSet>,
    /// Its memory may lie on some nodes alone.
    is_bound: bool,
}

impl Guest {
    pub(super) fn of(domain: &Domain) -> Self {
        let bound = |(_, mode): &(CpuSet, String)| matches!(mode.as_str(), "strict" | "bind" | "restrictive");
        Self {
            threads: domain.topology.as_ref().map_or(1, |shown| shown.value.threads),
            nodes: domain.guest_nodes as usize,
            cells: domain.cells.values().map(|cell| cell.vcpus.clone()).collect(),
            is_bound: domain.memory_nodes.as_ref().is_some_and(bound),
        }
    }
}

impl Proposal {
    /// Where the vCPUs of a VM are and would be, by `group` of their numbers: what `of` says of their CPUs.
    fn vcpus(
        &self,
        plan: &Plan,
        vm: &str,
        group: impl Fn(u32) -> u32,
        of: impl Fn(&CpuSet) -> Option<u32>,
    ) -> impl Iterator<Item = (Vec<Option<u32>>, Vec<Option<u32>>)> {
        let mut groups: BTreeMap<u32, (Vec<_>, Vec<_>)> = BTreeMap::new();
        let units = self.task.units.iter().zip(&self.subjects).zip(&plan.places);
        for ((unit, subject), place) in units.filter(|((_, subject), _)| subject.vm == vm) {
            if let Role::Vcpu(vcpu) = subject.role {
                let (now, then) = groups.entry(group(vcpu)).or_default();
                now.push(unit.now.as_ref().and_then(&of));
                then.push(of(place));
            }
        }
        groups.into_values()
    }

    /// Whether vCPUs that a guest is shown as threads of one core leave theirs.
    pub(super) fn parts_threads(&self, plan: &Plan) -> bool {
        let core = |place: &CpuSet| {
            let cpu = place.first().filter(|_| place.len() == 1)?;
            self.task.cpus.iter().find(|room| room.cpu == cpu).map(|room| room.core)
        };
        self.guests.iter().filter(|(_, guest)| guest.threads > 1).any(|(vm, guest)| {
            self.vcpus(plan, vm, |vcpu| vcpu / guest.threads, core).any(|(now, then)| is_one(&now) && !is_one(&then))
        })
    }

    /// Whether vCPUs of a VM that are on one node would be on several: of one whose memory may not follow, or where nothing that is
    /// known to be missing is won by it.
    pub(super) fn parts_nodes(&self, plan: &Plan) -> bool {
        let node = |place: &CpuSet| {
            let mut nodes = self.task.cpus.iter().filter(|room| place.contains(room.cpu)).map(|room| room.node);
            let first = nodes.next()?;
            nodes.all(|node| node == first).then_some(first)
        };
        let wins = self.now().is_some_and(|now| self.missing(plan) <= self.missing(now) - 0.01);
        // What a guest is shown as one node stays one, whatever it wins.
        let stays = |guest: &&Guest| {
            guest.nodes > 1 && !guest.cells.is_empty() || guest.nodes <= 1 && (guest.is_bound || !wins)
        };
        let cell =
            |guest: &Guest, vcpu: u32| guest.cells.iter().position(|cell| cell.contains(vcpu)).unwrap_or(0) as u32;
        self.guests.iter().filter(|(_, guest)| stays(guest)).any(|(vm, guest)| {
            self.vcpus(plan, vm, |vcpu| cell(guest, vcpu), node).any(|(now, then)| is_one(&now) && !is_one(&then))
        })
    }
}

/// Whether all are the same, and known.
fn is_one(places: &[Option<u32>]) -> bool {
    places.iter().all(|place| place.is_some() && *place == places[0])
}
