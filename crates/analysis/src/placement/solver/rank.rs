//! Which placement comes first? The one that brings most for each command that has to be typed.
//!
//! A placement whose score is 500 points lower for one command comes before one that is 2,000 lower for ten. What is no
//! better than what holds now follows behind it, by its score.

use super::exact;
use super::ground::Ground;
use super::improve::{improved, is_small, pruned};
use super::starts::{cheapest, helpers, helpers_on, housekeeping, singles, whole_nodes};
use super::{Goal, Kind, Plan, Score, Task};
use base::CpuSet;

/// What holds now, among the plans.
pub const NOW: &str = "current placement";

/// The plan that is proven to score best.
pub const PROVEN: &str = "best of all placements";

/// Plans in the order in which one would try them. The placement that holds now is one of them.
pub fn plans(task: &Task) -> Vec<Plan> {
    if task.cpus.is_empty() || task.units.is_empty() {
        return Vec::new();
    }
    let ground = Ground::of(task);
    let now = ground.now();
    let start = settled(&ground, ground.start());
    let mut plans = vec![plan(&ground, NOW, now.clone())];
    for (idea, places) in ideas(&ground, &start) {
        let places = if task.goal == Goal::Latency { housekeeping(&ground, places) } else { places };
        // What lies where it may not is no place to go back to.
        plans.push(plan(&ground, idea, pruned(&ground, &start, places)));
    }
    let least = plans.iter().map(|plan| plan.score.total).fold(f64::INFINITY, f64::min);
    let better = exact::best(&ground, least);
    let found_all = matches!(better, Ok(None));
    if let Ok(Some(places)) = better {
        plans.push(plan(&ground, PROVEN, places));
    }
    let mut plans = ranked(plans);
    // Nothing beats the best that was found. Of several that score the same, the name is the first one's.
    if found_all && let Some(best) = plans.iter_mut().find(|plan| plan.idea != NOW && plan.score.total <= least) {
        best.idea = PROVEN;
    }
    plans
}

/// A vCPU or polling thread that had one CPU, and had to leave it, gets one again.
fn settled(ground: &Ground<'_>, mut places: Vec<CpuSet>) -> Vec<CpuSet> {
    let now = ground.now();
    for unit in (0..places.len()).filter(|unit| now[*unit].len() == 1 && ground.task.units[*unit].kind.is_single()) {
        if places[unit].len() > 1
            && let Some(cheapest) = cheapest(ground, &places, unit, 1).pop()
        {
            places[unit] = cheapest;
        }
    }
    places
}

/// What could be done, in words and places.
fn ideas(ground: &Ground<'_>, start: &[CpuSet]) -> Vec<(&'static str, Vec<CpuSet>)> {
    const ALL: &[Kind] = &[Kind::Pmd, Kind::Vcpu, Kind::Irq];
    let has = |kind: Kind| ground.task.units.iter().any(|unit| unit.kind == kind && !unit.kept);
    let mut ideas = vec![("move the helpers only", helpers(ground, start.to_vec()))];
    if has(Kind::Irq) {
        let moved = singles(ground, start, &[Kind::Irq], false);
        ideas.push(("move the helpers and interrupts", helpers(ground, moved.clone())));
        ideas.push(("move the interrupts only", moved));
    }
    if has(Kind::Pmd) {
        ideas.push(("move the polling threads only", singles(ground, start, &[Kind::Pmd], false)));
    }
    for (idea, empty_cores) in
        [("every vCPU on a CPU of its memory's node", false), ("every vCPU on an empty core first", true)]
    {
        let begun = helpers(ground, singles(ground, start, ALL, empty_cores));
        ideas.push((idea, improved(ground, begun)));
    }
    if is_small(ground.task) {
        let few = helpers_on(ground, singles(ground, start, ALL, false), true);
        ideas.push(("helpers on the fewest CPUs that suffice", improved(ground, few)));
    }
    let vcpus = ground.task.units.iter().filter(|unit| unit.kind == Kind::Vcpu).count();
    if ground.nodes > 1 || vcpus > ground.task.cpus.len() {
        let moved = singles(ground, start, &[Kind::Irq, Kind::Pmd], false);
        ideas.push(("every VM within one node", whole_nodes(ground, &moved)));
    }
    // On a large host single moves do not go far: they begin where the helpers are out of the way already.
    let begun = if is_small(ground.task) { start.to_vec() } else { helpers(ground, start.to_vec()) };
    ideas.push(("fewest changes that help", improved(ground, begun)));
    ideas
}

fn plan(ground: &Ground<'_>, idea: &'static str, places: Vec<CpuSet>) -> Plan {
    let task = ground.task;
    let (score, shares) = Score::of(ground, &places);
    let mut users = vec![0_u32; task.cpus.len()];
    for (unit, place) in task.units.iter().zip(&places).filter(|(unit, _)| unit.kind != Kind::Housekeeping) {
        let share = u32::from(unit.kind.is_pinned()) + 1;
        ground.positions(place).for_each(|cpu| users[cpu] += share);
    }
    let exclusive = task.units.iter().zip(&places).map(|(unit, place)| {
        let wants = unit.kind == Kind::Pmd || unit.kind == Kind::Vcpu && task.goal == Goal::Latency;
        wants && place.len() == 1 && ground.positions(place).all(|cpu| users[cpu] == 2)
    });
    let exclusive = exclusive.collect();
    let moved: Vec<_> = task
        .units
        .iter()
        .zip(&places)
        .filter(|(unit, place)| unit.now.as_ref() != Some(*place))
        .map(|(unit, _)| unit)
        .collect();
    let polling = moved.iter().any(|unit| unit.kind == Kind::Pmd);
    let others = moved.iter().filter(|unit| unit.kind != Kind::Pmd).map(|unit| unit.commands).sum::<u32>();
    Plan { idea, places, exclusive, score, shares, commands: others + u32::from(polling), effect: 0.0 }
}

fn ranked(mut plans: Vec<Plan>) -> Vec<Plan> {
    let Some(now) = plans.iter().find(|plan| plan.idea == NOW).map(|plan| plan.score.total) else { return plans };
    for plan in &mut plans {
        plan.effect = (now - plan.score.total) / f64::from(plan.commands.max(1));
    }
    let worse = |plan: &Plan| plan.idea != NOW && plan.score.total >= now - 1e-9;
    plans.sort_by(|a, b| {
        let rank = |plan: &Plan| (worse(plan), plan.idea == NOW);
        rank(a).cmp(&rank(b)).then(b.effect.total_cmp(&a.effect)).then(a.score.total.total_cmp(&b.score.total))
    });
    let mut kept: Vec<Plan> = Vec::new();
    for plan in plans {
        if kept.iter().all(|known| known.places != plan.places) {
            kept.push(plan);
        }
    }
    kept
}
