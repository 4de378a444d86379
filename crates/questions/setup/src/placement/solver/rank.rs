//! Which placement comes first? The one that brings most for each command that has to be typed.
//!
//! A placement whose score is 500 points lower for one command comes before one that is 2,000 lower for ten. What is no
//! better than what holds now follows behind it, by its score.

use super::exact;
use super::ground::Ground;
use super::improve::{improved, improved_by, is_small, pruned};
use super::names::name;
use super::starts::{cheapest, helpers, helpers_on, housekeeping, singles, whole_nodes};
use super::{Goal, Kind, Plan, Score, Task};
use base::CpuSet;

/// What holds now, among the plans.
pub(crate) const NOW: &str = "current placement";

/// Plans in the order in which one would try them. The placement that holds now is one of them.
pub fn plans(task: &Task) -> Vec<Plan> {
    if task.cpus.is_empty() || task.units.is_empty() {
        return Vec::new();
    }
    let ground = Ground::of(task);
    let now = ground.now();
    let start = settled(&ground, ground.start());
    let mut plans = vec![Plan { idea: NOW.to_owned(), ..plan(&ground, now) }];
    for places in ideas(&ground, &start) {
        let places = if task.goal == Goal::Latency { housekeeping(&ground, places) } else { places };
        // What lies where it may not is no place to go back to.
        plans.push(plan(&ground, pruned(&ground, &start, places)));
    }
    let least = plans.iter().map(|plan| plan.score.total).fold(f64::INFINITY, f64::min);
    let better = exact::best(&ground, least);
    let found_all = matches!(better, Ok(None));
    if let Ok(Some(places)) = better {
        plans.push(Plan { proven: true, ..plan(&ground, places) });
    }
    let mut plans = ranked(plans);
    // Nothing beats the best that was found.
    if found_all && let Some(best) = plans.iter_mut().find(|plan| plan.idea != NOW && plan.score.total <= least) {
        best.proven = true;
    }
    plans
}

/// What is still worth its commands after a plan: the plan with that, if there is anything.
pub(crate) fn continued(task: &Task, begun: &Plan) -> Option<Plan> {
    let ground = Ground::of(task);
    let stays = |unit: &usize| !task.units[*unit].kept && begun.places[*unit] == *ground.was(*unit);
    let movable: Vec<usize> = (0..begun.places.len()).filter(stays).collect();
    let places = pruned(&ground, &begun.places, improved_by(&ground, begun.places.clone(), &movable));
    let mut more = plan(&ground, places);
    let now = Score::of(&ground, &ground.now()).0.total;
    more.effect = (now - more.score.total) / f64::from(more.commands.max(1));
    (more.places != begun.places).then_some(more)
}

/// What units get and what that is worth where those of `moved` are as in a plan and all others as they are now.
pub(crate) fn part(task: &Task, whole: &Plan, moved: &[usize]) -> Plan {
    let ground = Ground::of(task);
    let mut places = ground.now();
    moved.iter().for_each(|unit| places[*unit].clone_from(&whole.places[*unit]));
    plan(&ground, places)
}

/// A vCPU or polling thread that had one CPU, and had to leave it, gets one again; so does a polling thread that does not run yet.
fn settled(ground: &Ground<'_>, mut places: Vec<CpuSet>) -> Vec<CpuSet> {
    let now = ground.now();
    let is_new = |unit: usize| ground.task.units[unit].kind == Kind::Pmd && ground.task.units[unit].now.is_none();
    let had_one = |unit: usize| now[unit].len() == 1 && ground.task.units[unit].kind.is_single();
    for unit in (0..places.len()).filter(|unit| had_one(*unit) || is_new(*unit)) {
        if places[unit].len() > 1
            && let Some(cheapest) = cheapest(ground, &places, unit, ground.allowed(unit), 1).pop()
        {
            places[unit] = cheapest;
        }
    }
    places
}

/// What could be done: where everything would be.
fn ideas(ground: &Ground<'_>, start: &[CpuSet]) -> Vec<Vec<CpuSet>> {
    const ALL: &[Kind] = &[Kind::Pmd, Kind::Vcpu, Kind::Worker, Kind::Irq];
    let has = |kind: Kind| ground.task.units.iter().any(|unit| unit.kind == kind && !unit.kept);
    let workers = |places: &[CpuSet]| singles(ground, places, &[Kind::Worker], false);
    let mut ideas = vec![helpers(ground, workers(start))];
    if has(Kind::Irq) {
        let moved = singles(ground, start, &[Kind::Irq], false);
        ideas.push(helpers(ground, workers(&moved)));
        ideas.push(moved);
    }
    if has(Kind::Pmd) {
        ideas.push(singles(ground, start, &[Kind::Pmd], false));
    }
    // Every vCPU near its memory, and every vCPU on an empty core first.
    for empty_cores in [false, true] {
        let begun = helpers(ground, singles(ground, start, ALL, empty_cores));
        ideas.push(improved(ground, begun));
    }
    if is_small(ground.task) {
        let few = helpers_on(ground, singles(ground, start, ALL, false), true);
        ideas.push(improved(ground, few));
    }
    let vcpus = ground.task.units.iter().filter(|unit| unit.kind == Kind::Vcpu).count();
    if ground.nodes > 1 || vcpus > ground.task.cpus.len() {
        let moved = singles(ground, start, &[Kind::Irq, Kind::Pmd], false);
        ideas.push(whole_nodes(ground, &moved));
    }
    // On a large host single moves do not go far: they begin where the helpers are out of the way already.
    let begun = if is_small(ground.task) { start.to_vec() } else { helpers(ground, start.to_vec()) };
    ideas.push(improved(ground, begun));
    ideas
}

fn plan(ground: &Ground<'_>, places: Vec<CpuSet>) -> Plan {
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
    let (idea, commands) = (name(ground, &places), others + u32::from(polling));
    Plan { idea, proven: false, places, exclusive, score, shares, commands, effect: 0.0 }
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
