//! Plans to compare: a few ways to begin, each improved by moving one unit at a time while the score falls.
//!
//! Where all ways to put the vCPUs can be tried ([`MOST_TRIED`]), they are, and the best is exact for the score. Else a
//! greedy start by weight and single moves: no proof, so the answer gives the bound as well.

use super::{Goal, Plan, Score, Task};
use base::CpuSet;
use std::collections::BTreeMap;

/// Placements of vCPUs that are tried one by one.
const MOST_TRIED: f64 = 600.0;

/// Evaluations that improving one plan may take, so that a host of 512 CPUs is answered at once.
const MOST_MOVES: usize = 600;

/// Units times CPUs above which a whole evaluation is too slow to be made thousands of times.
const LARGE: usize = 1_500;

/// Plans, best first. The placement that holds now is one of them if every unit's place is known.
pub fn plans(task: &Task) -> Vec<Plan> {
    if task.cpus.is_empty() || task.units.is_empty() {
        return Vec::new();
    }
    let all = task.all();
    let now: Vec<CpuSet> = task
        .units
        .iter()
        .map(|unit| {
            unit.now.as_ref().map(|now| now.and(&all)).filter(|now| !now.is_empty()).unwrap_or_else(|| all.clone())
        })
        .collect();
    let mut plans = vec![plan(task, "as it is now", now.clone())];
    let helpers_apart = helpers(task, now.clone());
    plans.push(plan(task, "move the helpers only", helpers_apart));
    for (idea, empty_cores) in
        [("every vCPU on a CPU near its memory", false), ("every vCPU on an empty core first", true)]
    {
        let start = helpers(task, singles(task, &now, empty_cores));
        plans.push(plan(task, idea, improved(task, start)));
    }
    plans.push(plan(task, "change as little as helps", improved(task, now)));
    plans.extend(exhaustive(task));
    plans.sort_by(|a, b| a.score.total.total_cmp(&b.score.total));
    let mut kept: Vec<Plan> = Vec::new();
    for plan in plans {
        if kept.iter().all(|known| known.places != plan.places) {
            kept.push(plan);
        }
    }
    kept
}

fn plan(task: &Task, idea: &'static str, places: Vec<CpuSet>) -> Plan {
    let (score, shares) = Score::of(task, &places);
    let alone = |unit: usize| {
        task.units[unit].single
            && places[unit].len() == 1
            && (0..places.len()).all(|other| other == unit || !places[other].meets(&places[unit]))
    };
    let exclusive = (0..places.len()).map(|unit| task.goal == Goal::Latency && alone(unit)).collect();
    Plan { idea, places, exclusive, score, shares }
}

/// Each vCPU alone, the most demanding first, on the CPU that costs least.
fn singles(task: &Task, now: &[CpuSet], empty_cores: bool) -> Vec<CpuSet> {
    let mut places = now.to_vec();
    let mut on_cpu = vec![0.0; task.cpus.len()];
    let mut on_core: BTreeMap<u32, f64> = BTreeMap::new();
    let mut order: Vec<usize> = (0..task.units.len()).filter(|unit| task.units[*unit].single).collect();
    order.sort_by(|a, b| {
        let (first, second) = (&task.units[*a], &task.units[*b]);
        second.kept.cmp(&first.kept).then(second.demand.total_cmp(&first.demand)).then(a.cmp(b))
    });
    for unit in order {
        let about = &task.units[unit];
        let price = |index: usize| {
            let room = &task.cpus[index];
            let core = on_core.get(&room.core).copied().unwrap_or(0.0) - on_cpu[index];
            let over = (on_cpu[index] + room.taken + about.demand - 1.0).max(0.0) + 0.01 * on_cpu[index];
            let remote = about.home.map_or(0.0, |home| 1.0 - 10.0 / f64::from(task.distance(home, room.node)));
            let stays = about.now.as_ref().is_some_and(|now| now.len() == 1 && now.contains(room.cpu));
            let sharing = core.min(1.0) * about.demand;
            2.0 * over + (if empty_cores { 0.75 } else { 0.1 }) * sharing + 0.5 * about.demand * remote
                - 0.001 * f64::from(u8::from(stays))
        };
        let best = (0..task.cpus.len()).min_by(|a, b| price(*a).total_cmp(&price(*b)));
        let Some(best) = best else { continue };
        if !about.kept {
            places[unit] = CpuSet::one(task.cpus[best].cpu);
        }
        let used: Vec<usize> =
            (0..task.cpus.len()).filter(|index| places[unit].contains(task.cpus[*index].cpu)).collect();
        for index in &used {
            on_cpu[*index] += about.demand / used.len() as f64;
            *on_core.entry(task.cpus[*index].core).or_default() += about.demand / used.len() as f64;
        }
    }
    places
}

/// Every unit of helpers on CPUs without a vCPU: of its home node if they suffice, else of another, else of all.
fn helpers(task: &Task, mut places: Vec<CpuSet>) -> Vec<CpuSet> {
    let taken = task
        .units
        .iter()
        .zip(&places)
        .filter(|(unit, _)| unit.single)
        .fold(CpuSet::default(), |all, (_, set)| all.or(set));
    let free: Vec<_> = task.cpus.iter().filter(|room| !taken.contains(room.cpu)).collect();
    // CPUs whose core carries no vCPU at all come first.
    let busy_cores: Vec<u32> = task.cpus.iter().filter(|room| taken.contains(room.cpu)).map(|room| room.core).collect();
    let quiet: Vec<_> = free.iter().copied().filter(|room| !busy_cores.contains(&room.core)).collect();
    let mut left: BTreeMap<u32, f64> = BTreeMap::new();
    free.iter().for_each(|room| *left.entry(room.node).or_default() += 1.0 - room.taken);
    for unit in (0..task.units.len()).filter(|unit| !task.units[*unit].single && !task.units[*unit].kept) {
        let about = &task.units[unit];
        let of = |rooms: &[&super::Room], node: Option<u32>| -> CpuSet {
            rooms.iter().filter(|room| node.is_none_or(|node| room.node == node)).map(|room| room.cpu).collect()
        };
        let mut nodes: Vec<u32> = left.keys().copied().collect();
        nodes.sort_by_key(|node| about.home.map_or(10, |home| task.distance(home, *node)));
        let fits = nodes.into_iter().find(|node| left[node] >= about.demand);
        let set = fits.map(|node| [of(&quiet, Some(node)), of(&free, Some(node))]).into_iter().flatten();
        let chosen = set.chain([of(&free, None)]).find(|set| set.len() as f64 >= about.demand && !set.is_empty());
        if let (Some(chosen), Some(node)) = (chosen, fits) {
            *left.entry(node).or_default() -= about.demand;
            places[unit] = chosen;
        }
    }
    places
}

/// Moves one unit at a time, as long as the score falls.
fn improved(task: &Task, mut places: Vec<CpuSet>) -> Vec<CpuSet> {
    if task.cpus.len() * task.units.len() > LARGE {
        return places;
    }
    let mut best = Score::of(task, &places).0.total;
    let mut moves = 0;
    loop {
        let before = best;
        for unit in (0..places.len()).filter(|unit| !task.units[*unit].kept) {
            let options: Vec<CpuSet> = if task.units[unit].single {
                task.cpus.iter().map(|room| CpuSet::one(room.cpu)).collect()
            } else {
                vec![helpers(task, places.clone())[unit].clone()]
            };
            for option in options {
                let old = std::mem::replace(&mut places[unit], option);
                let score = Score::of(task, &places).0.total;
                moves += 1;
                if score < best - 1e-9 { best = score } else { places[unit] = old }
            }
            if moves > MOST_MOVES {
                return places;
            }
        }
        if best >= before - 1e-9 {
            return places;
        }
    }
}

/// The best of all ways to put the vCPUs, each with its helpers, where these are few enough.
fn exhaustive(task: &Task) -> Option<Plan> {
    let free: Vec<usize> =
        (0..task.units.len()).filter(|unit| task.units[*unit].single && !task.units[*unit].kept).collect();
    let ways = (task.cpus.len() as f64).powi(i32::try_from(free.len()).ok()?);
    if free.is_empty() || ways > MOST_TRIED {
        return None;
    }
    let start: Vec<CpuSet> =
        task.units.iter().map(|unit| unit.now.clone().map_or_else(|| task.all(), |now| now.and(&task.all()))).collect();
    let mut best: Option<Plan> = None;
    for way in 0..ways as usize {
        let (mut places, mut rest) = (start.clone(), way);
        for unit in &free {
            places[*unit] = CpuSet::one(task.cpus[rest % task.cpus.len()].cpu);
            rest /= task.cpus.len();
        }
        let places = helpers(task, places);
        let tried = plan(task, "the best of all placements", places);
        if best.as_ref().is_none_or(|best| tried.score.total < best.score.total - 1e-9) {
            best = Some(tried);
        }
    }
    best
}
