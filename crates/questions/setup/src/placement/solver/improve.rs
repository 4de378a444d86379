//! Makes a placement better by moving one unit at a time, and leaves out what brings nothing.

use super::caches::gather;
use super::ground::Ground;
use super::starts::{cheapest, helpers_on};
use super::{Goal, Kind, Score, Task};
use base::CpuSet;

/// Work, in CPUs looked at, that improving one placement may take: some hundredths of a second.
const MOST_WORK: usize = 200_000;

/// Units times CPUs up to which every CPU is tried for every unit, and up to which units change places.
const SMALL: usize = 1_500;

/// CPUs that are tried for a unit on larger hosts: the cheapest.
const TRIED: usize = 4;

/// Points that a command must bring: a hundredth of a CPU.
pub(crate) const WORTH: f64 = 10.0;

/// Points that it must bring more where it makes a unit give its CPU to another one: two hundredths of a CPU that is wanted and
/// not got, which count twice. What a CPU is busy with by itself moves by as much from look to look.
const PASSED_ON: f64 = 40.0;

/// Whether every CPU can be tried for every unit.
pub(super) fn is_small(task: &Task) -> bool {
    task.cpus.len() * task.units.len() <= SMALL
}

/// Moves units as long as the score falls, the ones that lack most first.
pub(super) fn improved(ground: &Ground<'_>, places: Vec<CpuSet>) -> Vec<CpuSet> {
    let movable: Vec<usize> = (0..places.len()).filter(|unit| !ground.task.units[*unit].kept).collect();
    improved_by(ground, places, &movable)
}

/// The same, of these units only.
pub(super) fn improved_by(ground: &Ground<'_>, mut places: Vec<CpuSet>, movable: &[usize]) -> Vec<CpuSet> {
    let small = is_small(ground.task);
    let mut best = Score::of(ground, &places).0.total;
    let mut work = 0;
    loop {
        let before = best;
        for unit in by_need(ground, &places, movable, small) {
            // To find what to try takes about as much as to score it.
            work += ground.work(&places);
            if work > MOST_WORK {
                return places;
            }
            for option in options(ground, &places, unit, small) {
                if option == places[unit] {
                    continue;
                }
                let old = std::mem::replace(&mut places[unit], option);
                let score = Score::of(ground, &places).0.total;
                if score < best - 1e-9 {
                    best = score
                } else {
                    places[unit] = old
                }
                work += ground.work(&places);
                if work > MOST_WORK {
                    return places;
                }
            }
        }
        if small {
            swap(ground, &mut places, movable, &mut best);
        }
        work += gather(ground, &mut places, movable, &mut best);
        if best >= before - 1e-9 {
            return places;
        }
    }
}

/// Units in the order of what they lack; on large hosts only those that lack something, unless the goal is to save.
fn by_need(ground: &Ground<'_>, places: &[CpuSet], movable: &[usize], small: bool) -> Vec<usize> {
    if small {
        return movable.to_vec();
    }
    let shares = Score::of(ground, places).1;
    let lacks = |unit: usize| {
        let lost: f64 = ground.positions(&places[unit]).map(|cpu| ground.lost(unit, cpu)).sum();
        ground.task.units[unit].demand - shares[unit] + lost / places[unit].len() as f64 * shares[unit]
    };
    let saving = matches!(ground.task.goal, Goal::Density | Goal::Power);
    let mut order: Vec<(f64, usize)> = movable.iter().map(|unit| (lacks(*unit), *unit)).collect();
    order.retain(|(lacks, _)| saving || *lacks > 0.01);
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    order.into_iter().map(|(_, unit)| unit).collect()
}

/// Places to try for a unit.
fn options(ground: &Ground<'_>, places: &[CpuSet], unit: usize, small: bool) -> Vec<CpuSet> {
    match ground.task.units[unit].kind {
        Kind::Housekeeping => Vec::new(),
        Kind::Helpers => [false, true].map(|saving| helpers_on(ground, places.to_vec(), saving)[unit].clone()).to_vec(),
        _ if small => ground.allowed(unit).iter().map(CpuSet::one).collect(),
        _ => cheapest(ground, places, unit, ground.allowed(unit), TRIED),
    }
}

/// Lets two units of one kind change places where that is better.
fn swap(ground: &Ground<'_>, places: &mut [CpuSet], movable: &[usize], best: &mut f64) {
    let kind = |unit: usize| ground.task.units[unit].kind;
    for (index, first) in movable.iter().enumerate() {
        for second in movable[index + 1..].iter().filter(|second| kind(**second) == kind(*first)) {
            // What may stay on a CPU that is not given to anybody else may not pass it on.
            let given = |place: usize, unit: usize| places[place].is_within(ground.allowed(unit));
            if places[*first] == places[*second] || !given(*first, *second) || !given(*second, *first) {
                continue;
            }
            places.swap(*first, *second);
            let score = Score::of(ground, places).0.total;
            if score < *best - 1e-9 { *best = score } else { places.swap(*first, *second) }
        }
    }
}

/// Leaves every unit where it was whose move brings less than [`WORTH`] for each command; one whose place was passed on keeps it
/// where the other does nearly as well on the CPU that it would have had.
pub(super) fn pruned(ground: &Ground<'_>, now: &[CpuSet], mut places: Vec<CpuSet>) -> Vec<CpuSet> {
    let moved: Vec<usize> = (0..places.len()).filter(|unit| places[*unit] != now[*unit]).collect();
    let (mut score, mut work) = (Score::of(ground, &places).0.total, 0);
    for unit in moved.into_iter().rev() {
        let new = std::mem::replace(&mut places[unit], now[unit].clone());
        let without = Score::of(ground, &places).0.total;
        let worth = WORTH * f64::from(ground.task.units[unit].commands);
        if without <= score + worth {
            score = without
        } else {
            places[unit] = new;
            if let Some(heir) = heir(ground, now, &places, unit) {
                places.swap(unit, heir);
                let kept = Score::of(ground, &places).0.total;
                if kept <= score + worth + PASSED_ON { score = kept } else { places.swap(unit, heir) }
            }
        }
        work += ground.work(&places);
        if work > MOST_WORK {
            return places;
        }
    }
    places
}

/// The unit of its kind that was moved to just where this one was.
fn heir(ground: &Ground<'_>, now: &[CpuSet], places: &[CpuSet], unit: usize) -> Option<usize> {
    let units = &ground.task.units;
    (0..places.len()).find(|heir| {
        units[*heir].kind == units[unit].kind
            && !units[*heir].kept
            && places[*heir] == now[unit]
            && now[*heir] != now[unit]
            && places[unit].is_within(ground.allowed(*heir))
    })
}
