//! What each unit of a placement gets, by the model of shares, and what distance to memory makes of it.

use super::ground::Ground;
use super::{Kind, Task};
use base::CpuSet;
use facts::shares::Claim;

/// What happens on the CPUs of a placement.
pub struct Load {
    /// Wanted by threads on each CPU, in the task's order.
    pub wanted: Vec<f64>,
    /// What each unit gets, in CPUs.
    pub shares: Vec<f64>,
    /// What of that remote memory may cost it.
    pub remote: Vec<f64>,
}

/// Spreads all units over their CPUs and shares what there is.
pub fn load(task: &Task, places: &[CpuSet]) -> Load {
    spread(&Ground::of(task), places)
}

pub(super) fn spread(ground: &Ground<'_>, places: &[CpuSet]) -> Load {
    let (mut shares, mut remote) = (vec![0.0; places.len()], vec![0.0; places.len()]);
    let used: Vec<_> = places.iter().enumerate().map(|(unit, place)| ground.used(unit, place)).collect();
    let units = ground.task.units.iter().zip(&used);
    let claims = units.map(|(unit, cpus)| Claim { demand: unit.demand, cpus, interrupt: unit.kind == Kind::Irq });
    let wanted = ground.cpus.divide(claims, |unit, cpu, share| {
        shares[unit] += share;
        remote[unit] += share * ground.lost(unit, cpu);
    });
    Load { wanted, shares, remote }
}
