//! How good is a placement? Load per CPU, shares per unit, and a sum of prices.
//!
//! A unit on a set of CPUs fills the emptiest first, as a scheduler's balancing does; units on one CPU get max-min fair
//! shares, as equal weights get from CFS and EEVDF (Documentation/scheduler/sched-design-CFS.rst, Linux 6.12). A busy
//! sibling takes `1 - SMT_YIELD / 2` of a CPU. Remote memory costs half of what the distance bounds: `(1 - 10 / distance) / 2`.

use super::{Goal, SMT_YIELD, Task};
use base::CpuSet;
use std::collections::BTreeMap;

/// The prices of a placement; the lower, the better.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Score {
    /// CPUs wanted and not got, vCPUs counted twice.
    pub shortfall: f64,
    /// CPUs' worth of work that remote memory may cost.
    pub remote: f64,
    /// Cores whose threads serve different VMs.
    pub strangers: f64,
    /// vCPUs that share a CPU with somebody.
    pub shared: f64,
    /// Cores (goal density) or nodes (goal power) that are used.
    pub spread: f64,
    /// Threads that would move.
    pub moved: f64,
    /// All of it, weighted.
    pub total: f64,
}

/// What happens on the CPUs of a placement.
pub struct Load {
    /// Wanted on each CPU, in the task's order.
    pub wanted: Vec<f64>,
    /// What each unit gets, in CPUs.
    pub shares: Vec<f64>,
}

/// Spreads all units over their CPUs and shares what there is.
pub fn load(task: &Task, places: &[CpuSet]) -> Load {
    let index: BTreeMap<u32, usize> = task.cpus.iter().enumerate().map(|(index, room)| (room.cpu, index)).collect();
    let mut wanted = vec![0.0; task.cpus.len()];
    let mut asked: Vec<Vec<(usize, f64)>> = vec![Vec::new(); task.cpus.len()];
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|unit| places[*unit].len());
    for unit in order {
        let cpus: Vec<usize> = places[unit].iter().filter_map(|cpu| index.get(&cpu).copied()).collect();
        for (cpu, amount) in filled(&cpus, &wanted, task, task.units[unit].demand) {
            wanted[cpu] += amount;
            asked[cpu].push((unit, amount));
        }
    }
    let mut of_core: BTreeMap<u32, f64> = BTreeMap::new();
    for (room, wanted) in task.cpus.iter().zip(&wanted) {
        *of_core.entry(room.core).or_default() += wanted + room.taken;
    }
    let mut shares = vec![0.0; places.len()];
    for (cpu, asked) in asked.iter_mut().enumerate() {
        let room = &task.cpus[cpu];
        let sibling = (of_core[&room.core] - wanted[cpu] - room.taken).clamp(0.0, 1.0);
        let mut left = (1.0 - room.taken - (1.0 - SMT_YIELD / 2.0) * sibling).max(0.0);
        asked.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        let count = asked.len();
        for (before, (unit, amount)) in asked.iter().enumerate() {
            let share = amount.min(left / (count - before) as f64);
            shares[*unit] += share;
            left -= share;
        }
    }
    Load { wanted, shares }
}

/// A demand over CPUs, the emptiest filled first to one level.
fn filled(cpus: &[usize], wanted: &[f64], task: &Task, demand: f64) -> Vec<(usize, f64)> {
    if let [only] = cpus {
        return vec![(*only, demand)];
    }
    let mut by_load: Vec<(f64, usize)> = cpus.iter().map(|cpu| (wanted[*cpu] + task.cpus[*cpu].taken, *cpu)).collect();
    by_load.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut below, mut level) = (0.0, 0.0);
    let mut used = 0;
    for (count, (load, _)) in by_load.iter().enumerate() {
        if count > 0 && level <= *load {
            break;
        }
        below += load;
        used = count + 1;
        level = (demand + below) / used as f64;
    }
    by_load[..used].iter().map(|(load, cpu)| (*cpu, (level - load).max(0.0))).collect()
}

impl Score {
    /// The score of a placement, and what each unit gets.
    pub fn of(task: &Task, places: &[CpuSet]) -> (Self, Vec<f64>) {
        let load = load(task, places);
        let mut score = Self::default();
        let rooms: BTreeMap<u32, &super::Room> = task.cpus.iter().map(|room| (room.cpu, room)).collect();
        let mut singles: BTreeMap<u32, u32> = BTreeMap::new();
        let (mut vms, mut nodes): (BTreeMap<u32, Vec<usize>>, Vec<u32>) = (BTreeMap::new(), Vec::new());
        for (unit, place) in task.units.iter().zip(places).filter(|(unit, _)| unit.single) {
            for room in place.iter().filter_map(|cpu| rooms.get(&cpu)).filter(|_| place.len() == 1) {
                *singles.entry(room.cpu).or_default() += 1;
                let of_core = vms.entry(room.core).or_default();
                if !of_core.contains(&unit.vm) {
                    of_core.push(unit.vm);
                }
                nodes.push(room.node);
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        for (index, (unit, place)) in task.units.iter().zip(places).enumerate() {
            let weight = if unit.single { 2.0 } else { 1.0 };
            score.shortfall += weight * (unit.demand - load.shares[index]).max(0.0);
            if let Some(home) = unit.home {
                let lost = |room: &&super::Room| (1.0 - 10.0 / f64::from(task.distance(home, room.node))) / 2.0;
                let lost: f64 = place.iter().filter_map(|cpu| rooms.get(&cpu).map(lost)).sum();
                score.remote += weight * load.shares[index] * lost / place.len().max(1) as f64;
            }
            let crowded = unit.single && place.iter().any(|cpu| singles.get(&cpu).copied().unwrap_or(0) > 1);
            let beside = || task.units.iter().zip(places).any(|(other, set)| !other.single && set.meets(place));
            if task.goal == Goal::Latency && unit.single && (crowded || place.len() != 1 || beside()) {
                score.shared += 1.0;
            }
            score.moved += f64::from(u32::from(unit.now.as_ref() != Some(place)) * unit.threads);
        }
        score.strangers = vms.values().filter(|vms| vms.len() > 1).count() as f64;
        score.spread = match task.goal {
            Goal::Density => vms.len() as f64,
            Goal::Power => nodes.len() as f64 * 4.0,
            Goal::Throughput | Goal::Latency => 0.0,
        };
        score.total = 1_000.0 * (score.shortfall + score.remote)
            + 500.0 * score.shared
            + 20.0 * score.strangers
            + 50.0 * score.spread
            + score.moved;
        (score, load.shares)
    }
}
