//! What findings type: parts of one placement, each judged alone and with all that the page types before it.
//!
//! ```text
//! Proposal --advised--> one Plan --part(of these units)--> changes of a finding
//!                                                             |-- alone, after all before it, and with the first placement:
//!                                                             '-- no limit broken, no more CPUs missing, `apply` agrees
//! ```

use super::{Plan, Proposal, SAME_MISSING, Subject};
use crate::placement::expected::Expectations;
use crate::placement::solver::{Kind, Unit, part};
use base::number::counted;
use base::{Change, CpuSet};

impl Proposal {
    /// What the advised placement changes of the units that are wanted.
    pub fn part(&self, wanted: impl Fn(&Unit, &Subject) -> bool) -> Vec<Change> {
        let Some(plan) = self.advised() else { return Vec::new() };
        let wanted = |unit: &usize| wanted(&self.task.units[*unit], &self.subjects[*unit]);
        self.in_order().into_iter().filter(wanted).flat_map(|unit| self.changes(plan, unit)).collect()
    }

    /// Why there is no command, as the comment of one.
    pub(crate) fn why_none(&self) -> String {
        let least = self.task.missing_at_least();
        let why = if self.plans.is_empty() {
            "topology unknown, so no placement was computed; paste lscpu -e".to_owned()
        } else if self.advised().is_some() {
            "no part of the best placement is about these threads alone; PLC-PROPOSAL has all of it".to_owned()
        } else if least > SAME_MISSING {
            format!("every placement is {least:.2} CPUs short or more (modelled): fewer vCPUs, or more CPUs")
        } else if self.subjects.iter().all(|subject| subject.demand.0 <= 0.0) {
            "what its threads run is unknown, so no placement is known to be better".to_owned()
        } else if self.plans.len() == 1 {
            "no other placement was found (modelled)".to_owned()
        } else {
            let tried = counted(self.plans.len() as u64 - 1, "other placement that was", "other placements that were");
            format!("none of the {tried} computed is better (modelled)")
        };
        format!("kvmscope check   # {why}")
    }

    /// How many CPUs fewer are missing with these changes of the advised placement; `None`: they are none of it.
    pub(crate) fn gain(&self, changes: &[Change]) -> Option<f64> {
        let (now, plan) = (self.now()?, self.advised()?);
        let units = self.moved_by(plan, changes);
        let gain = || self.missing(now) - self.missing(&part(&self.task, plan, &units));
        (!units.is_empty()).then(gain)
    }

    /// The changes that send these units elsewhere, whatever placement was found, with the CPUs that are missing then; `None` where that
    /// breaks a limit. What is kept stays.
    pub(crate) fn moving(&self, to: &[(usize, CpuSet)]) -> Option<(Vec<Change>, f64)> {
        let mut there = self.now()?.clone();
        let to: Vec<&(usize, CpuSet)> = to.iter().filter(|(unit, _)| !self.task.units[*unit].kept).collect();
        to.iter().for_each(|(unit, cpus)| there.places[*unit].clone_from(cpus));
        let changes: Vec<Change> = to.iter().flat_map(|(unit, _)| self.changes(&there, *unit)).collect();
        let moved: Vec<usize> = to.iter().map(|(unit, _)| *unit).collect();
        let then = part(&self.task, &there, &moved);
        (!changes.is_empty() && then.score.broken == 0.0).then(|| (changes, self.missing(&then)))
    }

    /// The units of a plan that these changes move.
    fn moved_by(&self, plan: &Plan, changes: &[Change]) -> Vec<usize> {
        let moved = |unit: &usize| self.changes(plan, *unit).iter().any(|change| changes.contains(change));
        let mut units: Vec<usize> = (0..plan.places.len()).filter(moved).collect();
        // All polling threads have one mask, which stands with the first of them.
        if let Some(first) = units.iter().find(|unit| self.task.units[**unit].kind == Kind::Pmd).copied() {
            units.extend((first + 1..plan.places.len()).filter(|unit| self.task.units[*unit].kind == Kind::Pmd));
        }
        units
    }
}

/// What a page types, finding by finding.
pub(in crate::placement) struct Advice<'a> {
    proposal: &'a Proposal,
    expectations: Expectations<'a>,
    /// Units that commands move which are typed already.
    typed: Vec<usize>,
    changes: Vec<Change>,
}

/// What the model says of changes.
pub(in crate::placement) enum Verdict {
    /// No part of the placement: nothing is said.
    Unknown,
    /// They may be typed: CPUs missing now and after.
    Holds(f64, f64),
    /// They would cost more than they bring, or send something where it may not be.
    Loses,
}

impl<'a> Advice<'a> {
    pub(crate) fn of(machine: &'a host::Machine, proposal: &'a Proposal) -> Self {
        Self { proposal, expectations: Expectations::of(machine), typed: Vec::new(), changes: Vec::new() }
    }

    /// What the model says of changes alone: of a whole placement.
    pub(crate) fn refuses(&self, changes: &[Change]) -> bool {
        self.expectations.refuses(changes)
    }

    /// Takes the changes of one more finding, if they hold alone, with all before them, and with the first placement.
    pub(crate) fn take(&mut self, changes: &[Change]) -> Verdict {
        let all: Vec<Change> = self.changes.iter().chain(changes).cloned().collect();
        if self.refuses(changes) || self.refuses(&all) {
            return Verdict::Loses;
        }
        let verdict = match (self.proposal.now(), self.proposal.advised(), self.proposal.first()) {
            (Some(now), Some(plan), Some(first)) => self.judge(now, plan, first, changes),
            _ => Verdict::Unknown,
        };
        if !matches!(verdict, Verdict::Loses) {
            self.changes = all;
        }
        verdict
    }

    fn judge(&mut self, now: &Plan, plan: &Plan, first: &Plan, changes: &[Change]) -> Verdict {
        let units = self.proposal.moved_by(plan, changes);
        if units.is_empty() {
            return Verdict::Unknown;
        }
        let missing_now = self.proposal.missing(now);
        let with = |others: &[usize]| {
            let moved: Vec<usize> = units.iter().chain(others).copied().collect();
            let there = part(&self.proposal.task, plan, &moved);
            let missing = self.proposal.missing(&there);
            (there.score.broken == 0.0 && missing <= missing_now + SAME_MISSING).then_some(missing)
        };
        let of_first: Vec<usize> =
            (0..first.places.len()).filter(|unit| first.places[*unit] != now.places[*unit]).collect();
        let both: Vec<usize> = self.typed.iter().chain(&of_first).copied().collect();
        match (with(&[]), with(&self.typed), with(&both)) {
            (Some(after), Some(_), Some(_)) => {
                self.typed.extend(units);
                Verdict::Holds(missing_now, after)
            }
            _ => Verdict::Loses,
        }
    }
}
