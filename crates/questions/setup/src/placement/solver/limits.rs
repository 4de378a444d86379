//! What no placement may do, however well it scores: each breach costs more than any gain, and a plan with one is not shown.
//!
//! ```text
//! a cgroup's limit           no CPU beyond it
//! pinned to one CPU          stays pinned to one: a vCPU, a worker, an iothread
//! isolated CPUs              never a set of them for a vCPU, none for helpers and interrupts that come anew
//! a polling thread's core    no vCPU and no interrupt that comes anew; and none of its CPUs for helpers
//! a vCPU on several CPUs     not pinned to one with another vCPU: no scheduler parts them there (but for goals density and power)
//! a pinned vCPU's CPU        no interrupt, no polling thread on its core; and no company, where it had its CPU for itself
//! what a VM holds by pins    nobody of another VM who is sent anywhere, however idle it was
//! ```
//! What lies so already is no breach of the placement that leaves it there.

use super::ground::Ground;
use super::{Goal, Kind};
use base::CpuSet;

/// What a breach costs, in CPUs' worth of work.
pub(super) const BREACH: f64 = 100.0;

/// What is on the CPUs and cores of a placement, as far as limits ask.
pub(super) struct Occupied {
    /// vCPUs that have one CPU, by CPU.
    pinned: Vec<u32>,
    /// Threads of VMs and polling threads that are bound to less than all CPUs, by CPU.
    bound: Vec<u32>,
    /// The same without vCPUs and polling threads.
    helpers: Vec<u32>,
    /// Polling threads, by CPU.
    polling: Vec<u32>,
    /// vCPUs that had a CPU for themselves and have this one, by CPU.
    alone: Vec<u32>,
    /// Whether the core has a polling thread, and a vCPU that has one CPU.
    core_polled: Vec<bool>,
    core_pinned: Vec<bool>,
}

impl Occupied {
    pub(super) fn nothing(ground: &Ground<'_>) -> Self {
        let (cpus, cores) = (ground.task.cpus.len(), ground.cpus.cores);
        Self {
            pinned: vec![0; cpus],
            bound: vec![0; cpus],
            helpers: vec![0; cpus],
            polling: vec![0; cpus],
            alone: vec![0; cpus],
            core_polled: vec![false; cores],
            core_pinned: vec![false; cores],
        }
    }

    pub(super) fn add(&mut self, ground: &Ground<'_>, unit: usize, place: &CpuSet) {
        let kind = ground.task.units[unit].kind;
        let (one, everywhere) = (place.len() == 1, place.len() >= ground.task.cpus.len());
        for cpu in ground.positions(place) {
            let core = ground.cpus.core[cpu];
            match kind {
                Kind::Vcpu if one => {
                    self.pinned[cpu] += 1;
                    self.core_pinned[core] = true;
                    self.alone[cpu] += u32::from(ground.was_alone(unit));
                }
                Kind::Pmd => {
                    self.polling[cpu] += 1;
                    self.core_polled[core] = true;
                }
                Kind::Helpers | Kind::Worker => self.helpers[cpu] += u32::from(!everywhere),
                Kind::Vcpu => {}
                Kind::Irq | Kind::Housekeeping => continue,
            }
            self.bound[cpu] += u32::from(!everywhere);
        }
    }

    /// Whether a vCPU is pinned to this CPU.
    pub(super) fn has_vcpu(&self, cpu: usize) -> bool {
        self.pinned[cpu] > 0
    }

    /// Threads of VMs and polling threads that are bound to less than all CPUs and may run on this one.
    pub(super) fn users(&self, cpu: usize) -> u32 {
        self.bound[cpu]
    }

    pub(super) fn users_of_core(&self, ground: &Ground<'_>, cpu: usize) -> u32 {
        let core = ground.cpus.core[cpu];
        (0..self.bound.len()).filter(|other| ground.cpus.core[*other] == core).map(|other| self.bound[other]).sum()
    }

    /// Whether a unit breaks a limit on a CPU that it did not have, given all others; what it adds itself may be counted.
    pub(super) fn forbids(&self, ground: &Ground<'_>, unit: usize, cpu: usize) -> bool {
        let (kind, core) = (ground.task.units[unit].kind, ground.cpus.core[cpu]);
        let isolated = ground.task.cpus[cpu].isolated;
        match kind {
            Kind::Vcpu => self.core_polled[core],
            Kind::Pmd => self.core_pinned[core] || self.helpers[cpu] > 0,
            Kind::Helpers | Kind::Worker => isolated || self.polling[cpu] > 0,
            Kind::Irq => isolated || self.core_polled[core] || self.pinned[cpu] > 0,
            Kind::Housekeeping => false,
        }
    }

    /// Whether one more unit on this CPU is company for a vCPU that had its CPU for itself.
    pub(super) fn disturbs(&self, ground: &Ground<'_>, unit: usize, cpu: usize) -> bool {
        match ground.task.units[unit].kind {
            Kind::Vcpu if ground.was_alone(unit) => self.bound[cpu] > 0,
            Kind::Vcpu | Kind::Pmd | Kind::Helpers | Kind::Worker => self.alone[cpu] > 0,
            Kind::Irq | Kind::Housekeeping => false,
        }
    }
}

/// How many units of a placement break a limit.
pub(super) fn breaches(ground: &Ground<'_>, places: &[CpuSet]) -> u32 {
    let mut occupied = Occupied::nothing(ground);
    for (unit, place) in places.iter().enumerate() {
        occupied.add(ground, unit, place);
    }
    let broken = |(unit, place): &(usize, &CpuSet)| {
        let (kind, now) = (ground.task.units[*unit].kind, ground.was(*unit));
        let only = |wanted: fn(&super::Room) -> bool| ground.positions(place).all(|cpu| wanted(&ground.task.cpus[cpu]));
        let company = kind == Kind::Vcpu
            && place.len() == 1
            && ground.was_alone(*unit)
            && ground.positions(place).any(|cpu| occupied.bound[cpu] > 1);
        if *place == now || place.is_empty() {
            return company;
        }
        let unpinned = matches!(kind, Kind::Vcpu | Kind::Worker) && now.len() == 1 && place.len() > 1;
        let is_packed = matches!(ground.task.goal, Goal::Density | Goal::Power);
        let nailed = kind == Kind::Vcpu
            && now.len() > 1
            && place.len() == 1
            && !is_packed
            && ground.positions(place).any(|cpu| occupied.pinned[cpu] > 1);
        let stuck = kind == Kind::Vcpu && place.len() > 1 && only(|room| room.isolated);
        // All CPUs of an interrupt count: it is sent there, wherever it went before.
        let anew = |cpu: &usize| kind == Kind::Irq || !now.contains(ground.task.cpus[*cpu].cpu);
        let forbidden = ground.positions(place).filter(anew).any(|cpu| occupied.forbids(ground, *unit, cpu));
        let intrudes = ground.positions(place).any(|cpu| ground.is_anothers(*unit, cpu));
        let limit = ground.task.units[*unit].limit.as_ref();
        let outside = limit.is_some_and(|limit| !place.is_within(&limit.or(now)));
        company || unpinned || nailed || stuck || forbidden || intrudes || outside
    };
    places.iter().enumerate().filter(broken).count() as u32
}

/// Of each unit, whether it is a vCPU that shares the CPUs it has now with nobody who is bound there; no unit where sharing is
/// what was asked for.
pub(super) fn alone(ground: &Ground<'_>, now: &[CpuSet]) -> Vec<bool> {
    let task = ground.task;
    if matches!(task.goal, Goal::Density | Goal::Power) || task.cpus.iter().any(|room| room.reserved) {
        return vec![false; now.len()];
    }
    let mut users = vec![0_u32; task.cpus.len()];
    let mut everywhere = 0_u32;
    let thread = |unit: usize| !matches!(task.units[unit].kind, Kind::Irq | Kind::Housekeeping);
    for (_, place) in now.iter().enumerate().filter(|(unit, _)| thread(*unit)) {
        if place.len() >= task.cpus.len() {
            everywhere += 1;
        } else {
            ground.positions(place).for_each(|cpu| users[cpu] += 1);
        }
    }
    let is_alone = |(unit, place): (usize, &CpuSet)| {
        let free = if place.len() >= task.cpus.len() {
            everywhere == 1 && users.iter().all(|users| *users == 0)
        } else {
            (place.len() == 1 || everywhere == 0) && ground.positions(place).all(|cpu| users[cpu] == 1)
        };
        task.units[unit].kind == Kind::Vcpu && free
    };
    now.iter().enumerate().map(is_alone).collect()
}
