//! Every goal of a budget, judged by all that a recording has.

use super::on_losses::{Lost, lacking};
use super::verdict::{Bounds, Doubt, Verdict, verdict};
use super::{Budget, Episodes, Goal, Stat, Workload, on_losses, on_migrations, on_samples};
use crate::Case;
use crate::attribution::{Attributed, ClockError};
use crate::ledger::line::TimeLine;
use crate::ledger::witness::told_levels;
use crate::losses::Definition;
use crate::samples::Source;
use crate::statistics::proportion::upper_bound;
use base::{Span, parallel};
use std::cmp::Reverse;

/// A goal's verdict on one vCPU, on one thread of a program that measured, or on one migration.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Its place in [`Budget::goals`].
    pub goal: usize,
    /// Who was judged; nobody where nothing measured it.
    pub whose: Whose,
    pub judgement: Judgement,
    /// When the worst moment began, on the recording's axis.
    pub at_ns: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whose {
    /// The machine whose trace or result shows it.
    pub machine: Option<String>,
    /// The VM.
    pub vm: Option<String>,
    /// Its vCPU; of results, the CPU that was measured.
    pub vcpu: Option<u32>,
    pub file: Option<String>,
    pub thread: Option<String>,
    /// Of migrations: its number.
    pub run: Option<u64>,
    /// Of traces: places among the ledger's parts, and among the vCPUs of that.
    pub place: Option<(usize, usize)>,
}

impl Whose {
    /// `vCPU 2 of vm1`, `CPU 3` of a result, or the VM alone.
    pub fn processor(&self) -> Option<String> {
        match (&self.vm, self.vcpu) {
            (Some(vm), Some(vcpu)) => Some(format!("vCPU {vcpu} of {vm}")),
            (None, Some(cpu)) => Some(format!("CPU {cpu}")),
            (Some(vm), None) => Some(vm.clone()),
            (None, None) => None,
        }
    }

    /// The same, of a thread that measured with the thread in front: `thread 1 on CPU 3`.
    pub fn name(&self) -> Option<String> {
        let thread = self.thread.as_ref().map(|thread| format!("thread {thread}"));
        let named: Vec<String> = thread.into_iter().chain(self.processor()).collect();
        (!named.is_empty()).then(|| named.join(" on "))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// The number that is judged; `None` if there is none.
    pub bounds: Option<Bounds>,
    /// What forbids a PASS.
    pub doubts: Vec<Doubt>,
    /// The worst moment of a trace, since its first event.
    pub worst: Option<Span>,
    pub counts: Option<Counts>,
    /// How often the limit was exceeded in bursts.
    pub episodes: Option<Episodes>,
    /// How far samples may lie from where they were looked for in a trace; `None` where they were not.
    pub clock_error: Option<ClockError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Samples; `None` for losses, which are no samples.
    pub samples: Option<u64>,
    /// Samples, or disjoint losses, that break the limit for certain.
    pub over_low: u64,
    pub over_high: Option<u64>,
}

impl Counts {
    /// The upper bound on the share of all samples there could be that break the limit.
    pub fn bound(self, confidence: f64) -> Option<f64> {
        upper_bound(self.over_high?, self.samples?, confidence)
    }
}

impl Judgement {
    /// Why it is neither a PASS nor a FAIL, in words; `None` where it is one of them.
    pub fn why(&self) -> Option<String> {
        let why: Vec<String> = self.doubts.iter().map(ToString::to_string).collect();
        match self.verdict {
            Verdict::Pass | Verdict::Fail => None,
            Verdict::Inconclusive | Verdict::NotMeasured => Some(why.join("; ")),
        }
    }

    /// What is said where nothing measured it.
    pub(super) fn absent(goal: &Goal, doubt: Doubt) -> Self {
        let doubts = vec![doubt];
        let verdict = verdict(goal, None, &doubts);
        Self { verdict, ..Self::of(None, doubts) }
    }

    /// One that stands on a number alone, before its verdict.
    pub(super) fn of(bounds: Option<Bounds>, doubts: Vec<Doubt>) -> Self {
        let verdict = Verdict::Inconclusive;
        Self { verdict, bounds, doubts, worst: None, counts: None, episodes: None, clock_error: None }
    }
}

pub struct Verdicts<'c> {
    pub goal: &'c Goal,
    /// Worst first: by verdict, then by the number. Never empty.
    pub all: Vec<&'c Judged>,
}

impl<'c> Verdicts<'c> {
    /// The worst one, whose verdict is the goal's: it is met if all meet it.
    pub fn worst(&self) -> &'c Judged {
        self.all[0]
    }
}

/// The goals of a case's budget that were judged, in its order; without a budget none.
pub fn by_goal(case: &Case) -> Vec<Verdicts<'_>> {
    let goals = case.budget().map_or(&[][..], |budget| &budget.goals);
    let of = |(place, goal)| {
        let mut all: Vec<&Judged> = case.judged().iter().filter(|judged| judged.goal == place).collect();
        let value = |judged: &Judged| judged.judgement.bounds.map(|bounds| bounds.value_ns);
        all.sort_by_key(|judged| (judged.judgement.verdict, Reverse(value(judged))));
        Verdicts { goal, all }
    };
    goals.iter().enumerate().map(of).filter(|verdicts| !verdicts.all.is_empty()).collect()
}

/// Judges every goal: in the budget's order, each for all of its scope.
pub fn judged(case: &Case, budget: &Budget) -> Vec<Judged> {
    let mut all = on_traces(case, budget);
    all.extend(on_results(case, budget));
    all.extend(on_runs(case, budget));
    for (place, goal) in budget.goals.iter().enumerate() {
        if all.iter().all(|judged| judged.goal != place) {
            let doubt = match goal.metric {
                metric if metric.is_of_losses() => Doubt::NoVcpu,
                metric if metric.is_of_migrations() => Doubt::NoMigration,
                metric => Doubt::NoSamples(metric),
            };
            let judgement = Judgement::absent(goal, doubt);
            all.push(Judged { goal: place, whose: Whose::default(), judgement, at_ns: None });
        }
    }
    // Stable: within a goal in the order of parts and vCPUs.
    all.sort_by_key(|judged| judged.goal);
    all
}

fn on_traces(case: &Case, budget: &Budget) -> Vec<Judged> {
    let goals: Vec<(usize, &Goal)> =
        budget.goals.iter().enumerate().filter(|(_, goal)| goal.metric.is_of_losses()).collect();
    if goals.is_empty() {
        return Vec::new();
    }
    let (flow, narrow) = (case.ledger(), &case.given().narrow);
    let line = TimeLine::new(case.input(), &flow.parts);
    // What several levels saw of the same time is judged once, as the outermost one saw it.
    let told = told_levels(case);
    let answering = flow.parts.iter().zip(case.losses()).enumerate();
    let answering = answering.filter(|(_, (part, _))| part.twin_of.is_none() && told.contains(&part.level));
    let vcpus = answering.flat_map(|(at, (part, losses))| {
        let vcpus = part.vcpus.iter().zip(&losses.vcpus).enumerate();
        vcpus.map(move |(number, (vcpu, losses))| ((at, number), part, vcpu, losses))
    });
    let wanted: Vec<_> = vcpus.filter(|(_, _, vcpu, _)| narrow.wants_vcpu(&vcpu.vm, vcpu.vcpu)).collect();
    let each = parallel::map(wanted.len(), |number| {
        let (place, part, vcpu, losses) = wanted[number];
        let own = goals.iter().filter(|(_, goal)| goal.scope.has(&vcpu.vm, vcpu.vcpu));
        let clock_error_ns = on_losses::clock_error_ns(part, losses);
        let mut known: Vec<(Definition, Lost, Vec<Doubt>)> = Vec::new();
        let judge = |(goal_place, goal): &(usize, &Goal)| {
            let definition = goal.definition;
            let found = known.iter().position(|(known, ..)| *known == definition).unwrap_or_else(|| {
                known.push((definition, Lost::of(losses, definition), lacking(part, definition)));
                known.len() - 1
            });
            let (_, lost, lacking) = &known[found];
            let judgement = on_losses::judge(goal, lost, lacking, clock_error_ns);
            let whose = Whose {
                machine: Some(part.machine.clone()),
                vm: Some(vcpu.vm.clone()),
                vcpu: Some(vcpu.vcpu),
                place: Some(place),
                ..Whose::default()
            };
            let at_ns = judgement.worst.map(|worst| line.on_axis(place.0, worst.from_ns));
            Judged { goal: *goal_place, whose, judgement, at_ns }
        };
        own.map(judge).collect::<Vec<_>>()
    });
    each.concat()
}

fn on_results(case: &Case, budget: &Budget) -> Vec<Judged> {
    let narrow = &case.given().narrow;
    let mut judged = Vec::new();
    for (place, goal) in budget.goals.iter().enumerate() {
        let Some(measures) = on_samples::measures(goal.metric) else { continue };
        for (file, samples) in case.results().each().filter(|(_, samples)| samples.measures() == measures) {
            let machine = case.input().recording.machines.iter().find(|machine| machine.id == file.machine);
            let vm = machine.and_then(|machine| machine.name.clone());
            if !goal.scope.may_have(vm.as_deref(), samples.cpu)
                || !vm.as_deref().is_none_or(|vm| narrow.wants_vm(vm))
                || samples.cpu.is_some_and(|cpu| narrow.vcpu.is_some_and(|wanted| wanted != cpu))
            {
                continue;
            }
            if samples.source == Source::Tracemark && goal.stat == Stat::Mean {
                // One sample, chosen because it was long, is no mean.
                continue;
            }
            let whose = Whose {
                machine: Some(file.machine.clone()),
                vm,
                vcpu: samples.cpu,
                file: Some(file.path.clone()),
                thread: Some(samples.thread.clone()),
                ..Whose::default()
            };
            let is_its = |one: &&Attributed| {
                (&one.machine, &one.path, one.source) == (&file.machine, &file.path, samples.source)
            };
            let joined = case.attributed().iter().find(is_its);
            let clock_error = joined.and_then(|joined| joined.by.clock_error());
            let judgement = on_samples::judge(goal, samples, clock_error, case.input().recording.emulated);
            judged.push(Judged { goal: place, whose, judgement, at_ns: None });
        }
    }
    judged
}

/// Goals on migrations, by each that was recorded.
fn on_runs(case: &Case, budget: &Budget) -> Vec<Judged> {
    let (migrations, emulated) = (&case.input().migrations, case.input().recording.emulated);
    let noted = migrations.said.as_ref().and_then(|said| Workload::named(said.given.get(WORKLOAD)?));
    let workload = case.given().workload.or(noted);
    let goals = budget.goals.iter().enumerate().filter(|(_, goal)| goal.metric.is_of_migrations());
    let judged = goals.flat_map(|(place, goal)| {
        migrations.list.iter().enumerate().filter_map(move |(run, migration)| {
            let judgement = on_migrations::judge(goal, migration, workload, emulated)?;
            let whose = Whose { run: Some(run as u64), ..Whose::default() };
            Some(Judged { goal: place, whose, judgement, at_ns: None })
        })
    });
    judged.collect()
}

/// What a prediction calls the workload of the guest that it is about.
pub const WORKLOAD: &str = "workload";
