//! Placements for this machine, as lines with commands.
//!
//! ```text
//! Machine --units--> Task, whose units each have a Subject --solver--> plans --changes--> typed changes, and commands
//!                                                                        '----domain_xml--> libvirt's elements
//! ```

mod changes;
mod domain_xml;
mod irqs;
mod units;

pub use domain_xml::domain_xml;
pub(in crate::placement) use units::ran;
pub use units::{Subject, What};

use super::expected::Expectations;
use super::model::Wishes;
use super::solver::{Goal, Kind, NOW, PROVEN, Plan, REMOTE_DISTANCE, Room, Task, WORTH, plans};
use base::CpuSet;
use host::Machine;

/// Placements that are shown.
const MOST_SHOWN: usize = 4;

/// What could be done, in the order in which one would try it.
#[derive(Debug, Default)]
pub struct Proposal {
    /// What was asked of the solver.
    pub task: Task,
    /// Whose units these are.
    pub subjects: Vec<Subject>,
    /// Plans that score better than what holds now, by what each command brings; what holds now; those that are no better.
    pub plans: Vec<Plan>,
    /// Of each plan, whether threads get less by it, each by itself: what `apply` refuses.
    refused: Vec<bool>,
}

impl Proposal {
    /// Placements for all of a machine; none where CPUs, their cores or threads were not told.
    pub fn of(machine: &Machine, wishes: &Wishes) -> Self {
        if machine.topology.cores_unknown {
            return Self::default();
        }
        let (task, subjects) = units::units(machine, wishes);
        let plans = plans(&task);
        let mut proposal = Self { task, subjects, plans, refused: Vec::new() };
        let expectations = Expectations::of(machine);
        let refused = |plan| expectations.refuses(&proposal.all_changes(plan));
        proposal.refused = proposal.plans.iter().map(refused).collect();
        proposal
    }

    /// The placement that holds now.
    pub fn now(&self) -> Option<&Plan> {
        self.plans.iter().find(|plan| plan.idea == NOW)
    }

    /// What to show: the first ones, as far as they are better than now. All that move polling threads have the mask of the
    /// first that does.
    pub fn better(&self) -> Vec<&Plan> {
        let mut mask = None;
        let agrees = |plan: &&Plan| {
            let polling = self.polling(plan);
            mask = mask.take().or_else(|| polling.clone());
            polling.is_none() || polling == mask
        };
        self.improving().filter(agrees).take(MOST_SHOWN).collect()
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
    /// as good.
    fn is_worth(&self, plan: &Plan) -> bool {
        let nearly = |other: &&Plan| {
            let more = f64::from(plan.commands) - f64::from(other.commands);
            more > 0.0 && other.score.total <= plan.score.total + WORTH * more
        };
        !self.plans.iter().filter(nearly).any(|other| !self.is_barred(other))
    }

    /// Whether it is no choice, however it scores.
    fn is_barred(&self, plan: &Plan) -> bool {
        self.crowds(plan) || self.is_refused(plan)
    }

    /// Whether threads get less by it, each by itself: what `apply` refuses.
    fn is_refused(&self, plan: &Plan) -> bool {
        self.plans.iter().zip(&self.refused).any(|(other, refused)| *refused && other.places == plan.places)
    }

    /// True if more vCPUs and polling threads would share a CPU than now, and nothing that is known to be missing is won by
    /// it: nearer memory is no reason to give up a CPU of one's own. Nor is anything a reason to put two vCPUs on an isolated
    /// CPU.
    fn crowds(&self, plan: &Plan) -> bool {
        self.now().is_some_and(|now| {
            self.sharing(plan) > self.sharing(now) && self.missing(plan) > self.missing(now) - 0.01
                || self.stacked(plan) > self.stacked(now)
        })
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

    /// The plan that moves helpers and nothing else, where it is better than now.
    pub fn helpers_only(&self) -> Option<&Plan> {
        self.improving().find(|plan| {
            let mut units = plan.places.iter().zip(&self.task.units);
            units.all(|(place, unit)| {
                unit.kind == Kind::Helpers || unit.now.is_none() || unit.now.as_ref() == Some(place)
            })
        })
    }

    /// CPUs that are wanted and not given under a plan, all threads together.
    pub fn missing(&self, plan: &Plan) -> f64 {
        self.task.units.iter().zip(&plan.shares).map(|(unit, share)| (unit.demand - share).max(0.0)).sum()
    }

    /// CPUs missing in the best plan, and what must be missing in every plan; `None` where the best is proven, or nothing
    /// can be better.
    pub fn gap(&self) -> Option<(f64, f64)> {
        let best = self.plans.iter().min_by(|a, b| a.score.total.total_cmp(&b.score.total))?;
        let proven = best.idea == PROVEN || self.improving().next().is_none();
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
        if gain <= 0.0 {
            return format!("rejected: {:.0} points worse than now", -gain);
        }
        if self.crowds(plan) {
            return format!("rejected: {gain:.0} points better than now, but more vCPUs would share a CPU");
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
            Some(_) if plan.score.total <= best => {
                format!("{gain:.0} points better than now, the best of all")
            }
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
