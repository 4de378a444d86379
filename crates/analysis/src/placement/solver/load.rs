//! Who gets how much CPU under a placement?
//!
//! Interrupts run first. A unit on a set of CPUs fills the emptiest first, as a scheduler's balancing does; units on one CPU
//! get max-min fair shares, as equal weights get from CFS and EEVDF (Documentation/scheduler/sched-design-CFS.rst, Linux
//! 6.12). A busy sibling takes `1 - SMT_YIELD / 2` of a CPU. A unit without a place takes no part.

use super::ground::Ground;
use super::{Kind, SMT_YIELD, Task};
use base::CpuSet;

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
    let task = ground.task;
    let count = task.cpus.len();
    let (mut shares, mut remote) = (vec![0.0; places.len()], vec![0.0; places.len()]);
    let mut taken: Vec<f64> = task.cpus.iter().map(|room| room.taken).collect();
    let mut order = Vec::with_capacity(places.len());
    for (unit, place) in places.iter().enumerate().filter(|(_, place)| !place.is_empty()) {
        if task.units[unit].kind != Kind::Irq {
            order.push((place.len(), unit));
            continue;
        }
        // Which CPU of several the kernel chose was not told: each has its part.
        let part = task.units[unit].demand / place.len() as f64;
        for cpu in ground.positions(place) {
            let share = part.min((1.0 - taken[cpu]).max(0.0));
            shares[unit] += share;
            remote[unit] += share * ground.lost(unit, cpu);
            taken[cpu] += part;
        }
    }
    order.sort_unstable();
    let mut wanted = vec![0.0; count];
    let mut asked: Vec<Vec<(f64, usize)>> = vec![Vec::new(); count];
    let mut by_load = Vec::new();
    for (_, unit) in order {
        let demand = task.units[unit].demand;
        by_load.clear();
        by_load.extend(ground.positions(&places[unit]).map(|cpu| (wanted[cpu] + taken[cpu], cpu)));
        for (cpu, amount) in filled(&mut by_load, demand) {
            wanted[cpu] += amount;
            asked[cpu].push((amount, unit));
        }
    }
    let mut of_core = vec![0.0; ground.cores];
    (0..count).for_each(|cpu| of_core[ground.core[cpu]] += wanted[cpu] + taken[cpu]);
    for (cpu, asked) in asked.iter_mut().enumerate() {
        let mut left = room_beside(taken[cpu], of_core[ground.core[cpu]] - wanted[cpu] - taken[cpu]);
        asked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let count = asked.len();
        for (before, (amount, unit)) in asked.iter().enumerate() {
            let share = amount.min(left / (count - before) as f64);
            shares[*unit] += share;
            remote[*unit] += share * ground.lost(*unit, cpu);
            left -= share;
        }
    }
    Load { wanted, shares, remote }
}

/// What a CPU has for threads, when its siblings want so much.
pub(super) fn room_beside(taken: f64, siblings: f64) -> f64 {
    (1.0 - taken - (1.0 - SMT_YIELD / 2.0) * siblings.clamp(0.0, 1.0)).max(0.0)
}

/// A demand over CPUs, given as (load, CPU): the emptiest are filled first, to one level.
fn filled(by_load: &mut [(f64, usize)], demand: f64) -> impl Iterator<Item = (usize, f64)> + '_ {
    by_load.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut below, mut level, mut used) = (0.0, 0.0, 0);
    for (count, (load, _)) in by_load.iter().enumerate() {
        if count > 0 && level <= *load {
            break;
        }
        below += load;
        used = count + 1;
        level = (demand + below) / used as f64;
    }
    by_load[..used].iter().map(move |(load, cpu)| (*cpu, (level - load).max(0.0)))
}
