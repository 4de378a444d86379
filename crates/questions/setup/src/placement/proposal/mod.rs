//! Placements for this machine, as lines with commands.
//!
//! ```text
//! Machine --units--> Task, whose units each have a Subject --solver--> plans --changes--> typed changes, and commands
//!                                                                        |----domain_xml--> libvirt's elements
//!                                                                        '----advice------> the parts that findings type
//! ```

mod advice;
mod changes;
mod domain_xml;
mod guests;
mod irqs;
mod real_time;
mod units;

pub(in crate::placement) use advice::{Advice, Verdict};
pub use domain_xml::domain_xml;
pub(in crate::placement) use irqs::taken_by_interrupts;
pub(in crate::placement) use units::ran;
pub use units::{Subject, What};

use super::expected::Expectations;
use super::model::{AskedPolling, BUSY, Wishes};
use super::solver::{Goal, Kind, NOW, Plan, REMOTE_DISTANCE, Room, Task, Unit, WORTH, continued, load, plans};
use base::CpuSet;
use base::number::counted;
use guests::Guest;
use host::Machine;
use std::collections::{BTreeMap, BTreeSet};

const MOST_SHOWN: usize = 4;

/// Of a CPU so much that others take it is full of them: our own limit.
const FULL: f64 = 0.9;

/// CPUs missing that are closer than this are the same: what two digits show.
const SAME_MISSING: f64 = 0.005;

/// What could be done, in the order in which one would try it.
#[derive(Debug, Default)]
pub struct Proposal {
    pub task: Task,
    /// Whose units these are.
    pub subjects: Vec<Subject>,
    /// Polling threads that somebody asks for.
    pub(crate) asked_polling: Option<AskedPolling>,
    /// Plans that score better than what holds now, by what each command brings; what holds now; those that are no better.
    pub plans: Vec<Plan>,
    /// Of each plan, whether threads get less by it, each by itself: what `apply` refuses.
    refused: Vec<bool>,
    /// What guests are shown and bound to, by the names of their VMs.
    guests: BTreeMap<String, Guest>,
    /// The position among the plans of the one that findings take their commands from.
    advised: Option<usize>,
}

impl Proposal {
    /// Placements for all of a machine; none where CPUs, their cores or threads were not told.
    pub fn of(machine: &Machine, wishes: &Wishes) -> Self {
        if machine.topology.cores_unknown {
            return Self::default();
        }
        let (task, subjects) = units::units(machine, wishes);
        let plans = plans(&task);
        let asked_polling = wishes.polling.clone();
        let guests = machine.domains.iter().map(|domain| (domain.name.clone(), Guest::of(domain))).collect();
        let mut proposal = Self { task, subjects, plans, asked_polling, guests, ..Self::default() };
        let expectations = Expectations::of(machine);
        let refused = |proposal: &Self, plan: &Plan| expectations.refuses(&proposal.all_changes(plan));
        proposal.refused = proposal.plans.iter().map(|plan| refused(&proposal, plan)).collect();
        let first = proposal.first().cloned();
        if let Some(first) = first {
            if let Some(whole) = continued(&proposal.task, &first)
                && proposal.plans.iter().all(|plan| plan.places != whole.places)
            {
                proposal.refused.push(refused(&proposal, &whole));
                proposal.plans.push(whole);
                proposal.rank();
            }
            proposal.advised = proposal.position_to_advise(&first);
        }
        proposal
    }

    /// Puts the plans into the order in which they are tried, each with whether it is refused.
    fn rank(&mut self) {
        let now = self.now().map_or(f64::INFINITY, |plan| plan.score.total);
        let mut both: Vec<(Plan, bool)> = self.plans.drain(..).zip(self.refused.drain(..)).collect();
        let worse = |plan: &Plan| (plan.idea != NOW && plan.score.total >= now - 1e-9, plan.idea == NOW);
        both.sort_by(|(a, _), (b, _)| worse(a).cmp(&worse(b)).then(b.effect.total_cmp(&a.effect)));
        (self.plans, self.refused) = both.into_iter().unzip();
    }

    /// The plan that brings most of those that begin as the first one does: all that it moves goes to the same CPUs.
    fn position_to_advise(&self, first: &Plan) -> Option<usize> {
        let units = || self.task.units.iter().enumerate();
        let begins = |plan: &Plan| {
            let stays = |unit: usize, about: &Unit| about.now.as_ref() == Some(&first.places[unit]);
            units().all(|(unit, about)| stays(unit, about) || plan.places[unit] == first.places[unit])
        };
        let improving: Vec<&Plan> = self.improving().filter(|plan| begins(plan)).collect();
        let best = improving.into_iter().min_by(|a, b| a.score.total.total_cmp(&b.score.total))?;
        self.plans.iter().position(|plan| plan.places == best.places)
    }

    /// The one placement that all findings take their commands from: the first that is shown, and what is worth its
    /// commands beside it.
    pub fn advised(&self) -> Option<&Plan> {
        self.plans.get(self.advised?)
    }

    /// The first placement that is shown.
    pub fn first(&self) -> Option<&Plan> {
        self.improving().next()
    }

    pub fn now(&self) -> Option<&Plan> {
        self.plans.iter().find(|plan| plan.idea == NOW)
    }

    /// What to show: the first ones, as far as they are better than now, and the one that findings take their commands from.
    /// All that move polling threads have the mask of the first that does.
    pub fn better(&self) -> Vec<&Plan> {
        let mut mask = None;
        let agrees = |plan: &&Plan| {
            let polling = self.polling(plan);
            mask = mask.take().or_else(|| polling.clone());
            polling.is_none() || polling == mask
        };
        let mut shown: Vec<&Plan> = self.improving().filter(agrees).collect();
        let advised = self.advised().and_then(|advised| shown.iter().position(|plan| plan.places == advised.places));
        if let Some(position) = advised.filter(|position| *position >= MOST_SHOWN) {
            let last = shown.remove(position);
            shown.insert(MOST_SHOWN - 1, last);
        }
        shown.truncate(MOST_SHOWN);
        shown
    }

    /// The mask of the polling threads in a plan that moves any of them.
    fn polling(&self, plan: &Plan) -> Option<CpuSet> {
        let polling = || self.task.units.iter().zip(&plan.places).filter(|(unit, _)| unit.kind == Kind::Pmd);
        let moves = polling().any(|(unit, place)| unit.now.as_ref() != Some(place));
        moves.then(|| polling().fold(CpuSet::default(), |mask, (_, place)| mask.or(place)))
    }

    fn improving(&self) -> impl Iterator<Item = &Plan> {
        let now = self.now().map_or(f64::INFINITY, |plan| plan.score.total);
        let better = move |plan: &&Plan| plan.score.total < now - 1e-9 && !self.is_barred(plan) && self.is_worth(plan);
        self.plans.iter().filter(better)
    }

    /// Whether each of its commands brings something: no placement with fewer of them, the current one included, is nearly
    /// as good, and none with as many is better.
    fn is_worth(&self, plan: &Plan) -> bool {
        let nearly = |other: &&Plan| {
            let more = f64::from(plan.commands) - f64::from(other.commands);
            more > 0.0 && other.score.total <= plan.score.total + WORTH * more
                || more == 0.0 && other.score.total < plan.score.total - 1e-9
        };
        !self.plans.iter().filter(nearly).any(|other| !self.is_barred(other))
    }

    /// Whether it is no choice, however it scores.
    fn is_barred(&self, plan: &Plan) -> bool {
        plan.score.broken > 0.0
            || self.loses(plan)
            || self.crowds(plan)
            || self.is_refused(plan)
            || self.parts_threads(plan)
            || self.parts_nodes(plan)
            || self.fills(plan)
            || self.idles(plan)
            || self.shuffles(plan)
    }

    /// Whether it does nothing but swap the CPUs of vCPUs of one VM that are the same to the model, and nobody gets more by it.
    fn shuffles(&self, plan: &Plan) -> bool {
        let units = self.task.units.iter().zip(&plan.places);
        let moved: Vec<_> = units.filter(|(unit, place)| unit.now.as_ref() != Some(*place)).collect();
        let Some((first, _)) = moved.first() else { return false };
        let is_like = |unit: &Unit| unit.kind == Kind::Vcpu && unit.vm == first.vm && unit.home == first.home;
        let before = moved.iter().filter_map(|(unit, _)| Some(unit.now.as_ref()?.to_string()));
        let is_swap = before.collect::<BTreeSet<_>>() == moved.iter().map(|(_, place)| place.to_string()).collect();
        let wins = self.now().is_some_and(|now| self.missing(plan) < self.missing(now) - BUSY);
        !wins && is_swap && moved.iter().all(|(unit, _)| is_like(unit))
    }

    /// Whether all that it moves are helpers that hardly run, and nobody gets more by it.
    fn idles(&self, plan: &Plan) -> bool {
        let units = self.task.units.iter().zip(&self.subjects).zip(&plan.places);
        let mut moved = units.filter(|((unit, _), place)| unit.now.as_ref() != Some(*place)).peekable();
        let is_idle = |unit: &Unit, subject: &Subject| unit.kind == Kind::Helpers && subject.demand.1 <= BUSY;
        let wins = self.now().is_some_and(|now| self.missing(plan) < self.missing(now) - BUSY);
        moved.peek().is_some() && !wins && moved.all(|((unit, subject), _)| is_idle(unit, subject))
    }

    /// Whether helpers that may run elsewhere would be bound to CPUs that others fill.
    fn fills(&self, plan: &Plan) -> bool {
        let full = |cpus: &CpuSet| {
            let mut rooms = self.task.cpus.iter().filter(|room| cpus.contains(room.cpu));
            !cpus.is_empty() && rooms.all(|room| room.taken >= FULL)
        };
        let mut helpers = self.task.units.iter().zip(&plan.places).filter(|(unit, _)| unit.kind == Kind::Helpers);
        helpers.any(|(unit, place)| {
            unit.now.as_ref().is_some_and(|now| place != now && place.is_within(now)) && full(place)
        })
    }

    /// Whether more CPUs are missing than now.
    fn loses(&self, plan: &Plan) -> bool {
        self.now().is_some_and(|now| self.missing(plan) > self.missing(now) + SAME_MISSING)
    }

    /// Whether threads get less by it, each by itself: what `apply` refuses.
    fn is_refused(&self, plan: &Plan) -> bool {
        self.plans.iter().zip(&self.refused).any(|(other, refused)| *refused && other.places == plan.places)
    }

    /// True if more vCPUs and polling threads would share a CPU than now, and nothing that is known to be missing is won by
    /// it: nearer memory is no reason to give up a CPU of one's own. Nor is anything a reason to put two vCPUs on an isolated
    /// CPU.
    fn crowds(&self, plan: &Plan) -> bool {
        // To share CPUs is what these goals are about, as long as nobody lacks anything by it.
        let saving = matches!(self.task.goal, Goal::Density | Goal::Power);
        self.now().is_some_and(|now| {
            let wins = saving || self.missing(plan) <= self.missing(now) - 0.01;
            let crowded = self.sharing(plan) > self.sharing(now) || self.nailed(plan) > self.nailed(now);
            !wins && crowded || self.stacked(plan) > self.stacked(now)
        })
    }

    /// How many CPUs several vCPUs are bound to alone.
    fn nailed(&self, plan: &Plan) -> usize {
        let vcpus = || self.task.units.iter().zip(&plan.places).filter(|(unit, _)| unit.kind == Kind::Vcpu);
        let bound = |cpu: u32| vcpus().filter(|(_, place)| place.len() == 1 && place.contains(cpu)).count();
        self.task.cpus.iter().filter(|room| bound(room.cpu) > 1).count()
    }

    /// How many isolated CPUs several vCPUs have.
    fn stacked(&self, plan: &Plan) -> usize {
        let vcpus = || self.task.units.iter().zip(&plan.places).filter(|(unit, _)| unit.kind == Kind::Vcpu);
        let isolated = self.task.cpus.iter().filter(|room| room.isolated);
        isolated.filter(|room| vcpus().filter(|(_, place)| place.contains(room.cpu)).count() > 1).count()
    }

    /// vCPUs and polling threads that share a CPU with any other unit but the kernel's own work.
    fn sharing(&self, plan: &Plan) -> usize {
        let units = || (0..plan.places.len()).filter(|unit| self.task.units[*unit].kind != Kind::Housekeeping);
        let pinned = units().filter(|unit| self.task.units[*unit].kind.is_pinned());
        pinned.filter(|one| units().any(|other| other != *one && plan.places[other].meets(&plan.places[*one]))).count()
    }

    /// CPUs that are wanted and not given under a plan, all threads together.
    pub fn missing(&self, plan: &Plan) -> f64 {
        self.lacking(&plan.shares)
    }

    /// What of that busy siblings take from each other: nobody waits for it.
    pub(crate) fn beside_siblings(&self, plan: &Plan) -> f64 {
        let mut apart = self.task.clone();
        (0..).zip(&mut apart.cpus).for_each(|(core, room)| room.core = core);
        (self.missing(plan) - self.lacking(&load(&apart, &plan.places).shares)).max(0.0)
    }

    fn lacking(&self, shares: &[f64]) -> f64 {
        self.task.units.iter().zip(shares).map(|(unit, share)| (unit.demand - share).max(0.0)).sum()
    }

    /// CPUs missing in the best plan, and what must be missing in every plan; `None` where the best is proven, or nothing
    /// can be better.
    pub fn gap(&self) -> Option<(f64, f64)> {
        let best = self.plans.iter().min_by(|a, b| a.score.total.total_cmp(&b.score.total))?;
        let proven = best.proven || self.improving().next().is_none();
        let (found, least) = (self.missing(best), self.task.missing_at_least());
        (!proven && found > least + 0.01).then_some((found, least))
    }

    /// What a plan is to be had for, against the others, in a line.
    pub fn verdict(&self, plan: &Plan) -> String {
        let now = self.now().map_or(0.0, |now| now.score.total);
        let gain = now - plan.score.total;
        if plan.idea == NOW {
            return "current placement".to_owned();
        }
        if plan.score.broken > 0.0 {
            let units = counted(plan.score.broken as u64, "thread or interrupt", "threads or interrupts");
            return format!("rejected: {units} would be where none may be sent");
        }
        if gain <= 0.0 {
            return format!("rejected: {:.0} points worse than now", -gain);
        }
        if self.loses(plan) {
            return format!("rejected: {gain:.0} points better than now, but more CPUs would be missing");
        }
        if self.crowds(plan) {
            return format!("rejected: {gain:.0} points better than now, but more vCPUs would share a CPU");
        }
        if self.parts_threads(plan) {
            return format!(
                "rejected: {gain:.0} points better than now, but vCPUs shown as threads of one core would part"
            );
        }
        if self.parts_nodes(plan) {
            return format!(
                "rejected: {gain:.0} points better than now, but vCPUs of one VM would be apart from its memory"
            );
        }
        if self.fills(plan) {
            return format!("rejected: {gain:.0} points better than now, but helpers would go to a full CPU");
        }
        if self.idles(plan) {
            return format!(
                "rejected: {gain:.0} points better than now, but all that move are helpers that hardly run"
            );
        }
        if self.shuffles(plan) {
            return format!(
                "rejected: {gain:.0} points better than now, but vCPUs of one VM would swap CPUs for nothing"
            );
        }
        if self.is_refused(plan) {
            return format!("rejected: {gain:.0} points better than now, but threads would get less CPU time");
        }
        if !self.is_worth(plan) {
            return format!(
                "rejected: {gain:.0} points better than now, but some of its commands gain {WORTH:.0} points or less"
            );
        }
        let best = self.plans.iter().map(|plan| plan.score.total).fold(f64::INFINITY, f64::min);
        let shown = self.better().iter().position(|shown| shown.places == plan.places);
        match shown {
            Some(_) if plan.proven => format!("{gain:.0} points better than now, the best of all placements"),
            Some(_) if plan.score.total <= best => format!("{gain:.0} points better than now, the best that was found"),
            Some(_) => format!("{gain:.0} points better than now"),
            None if self.better().len() < MOST_SHOWN => {
                format!("rejected: {gain:.0} points better than now, but with another mask for the polling threads")
            }
            None => format!("rejected: {gain:.0} points better than now, but less per command than others"),
        }
    }

    /// Why a unit gets its place, in a line.
    pub fn why(&self, plan: &Plan, unit: usize) -> String {
        let (about, subject, place) = (&self.task.units[unit], &self.subjects[unit], &plan.places[unit]);
        if about.kept {
            return subject.kept.to_owned();
        }
        if about.kind == Kind::Housekeeping {
            let held = |other: usize| self.task.units[other].kind.is_pinned() && plan.places[other].len() == 1;
            let meets = (0..plan.places.len()).any(|other| held(other) && plan.places[other].meets(place));
            return if meets { "including CPUs of vCPUs" } else { "no CPU with a pinned vCPU" }.to_owned();
        }
        let rooms: Vec<&Room> = self.task.cpus.iter().filter(|room| place.contains(room.cpu)).collect();
        let others: Vec<&str> = (0..plan.places.len())
            .filter(|other| *other != unit && self.task.units[*other].kind != Kind::Housekeeping)
            .filter(|other| plan.places[*other].meets(place))
            .map(|other| self.subjects[other].name.as_str())
            .collect();
        let company = match &others[..] {
            [] => "alone".to_owned(),
            [other] => format!("with {other}"),
            others => format!("with {} others", others.len()),
        };
        let mut nodes: Vec<u32> = rooms.iter().map(|room| room.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let near = match (about.home, &nodes[..]) {
            (Some(home), [node]) if home == *node => format!(", home node {node}"),
            (Some(home), [node]) => {
                let far = self.task.distances.get(&(home, *node)).copied();
                let far = far.map_or(format!("{REMOTE_DISTANCE} assumed"), |far| far.to_string());
                format!(", node {node}, distance {far} from home")
            }
            _ => String::new(),
        };
        let stays = if about.now.as_ref() == Some(place) { "stays: " } else { "" };
        format!("{stays}{company}{near}")
    }

    /// The name of a unit, with its VM where there are several.
    pub fn name(&self, unit: usize) -> String {
        let subject = &self.subjects[unit];
        let several = self.subjects.iter().any(|other| !other.vm.is_empty() && other.vm != self.subjects[0].vm);
        if several && !subject.vm.is_empty() {
            format!("{} {}", subject.vm, subject.name)
        } else {
            subject.name.clone()
        }
    }

    /// Names of goals, for the summary.
    pub fn goal(&self) -> &'static str {
        match self.task.goal {
            Goal::Throughput => "throughput",
            Goal::Latency => "latency",
            Goal::Density => "density",
            Goal::Power => "power",
        }
    }
}
