//! In which order does one act on findings?
//!
//! ```text
//! worse before less bad, and a cause as bad as the worst that it explains
//!   then what explains more others
//!     then what was measured, the larger amount of one unit first
//!       then what is only told and would need a reboot goes last
//!         then as given: the order of questions and of their rules
//! ```

use super::{CostKind, Finding, Needs, Severity};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::HashMap;

/// What decides a finding's place, as far as one finding alone does not show it.
struct Rank {
    severity: Severity,
    explains: usize,
    measured: Option<Measured>,
    /// Nobody reboots a host for what costs nothing today.
    can_wait: bool,
}

struct Measured {
    /// Units in the order in which they appear: amounts of two units say nothing about each other.
    unit: usize,
    amount: f64,
}

impl Rank {
    fn compare(&self, other: &Self) -> Ordering {
        let by_amount = || match (&self.measured, &other.measured) {
            (Some(one), Some(two)) => one.unit.cmp(&two.unit).then(two.amount.total_cmp(&one.amount)),
            (one, two) => two.is_some().cmp(&one.is_some()),
        };
        other
            .severity
            .cmp(&self.severity)
            .then(other.explains.cmp(&self.explains))
            .then_with(by_amount)
            .then(self.can_wait.cmp(&other.can_wait))
    }
}

/// The findings in the order in which one acts on them, which is that of every output.
pub fn in_order<F: Borrow<Finding>>(findings: Vec<F>) -> Vec<F> {
    let mut ranked: Vec<(Rank, F)> = ranks(&findings).into_iter().zip(findings).collect();
    ranked.sort_by(|(one, _), (other, _)| one.compare(other));
    ranked.into_iter().map(|(_, finding)| finding).collect()
}

fn ranks<F: Borrow<Finding>>(findings: &[F]) -> Vec<Rank> {
    let explained = explained(findings);
    let mut units: HashMap<&str, usize> = HashMap::new();
    let mut ranks = Vec::with_capacity(findings.len());
    for (finding, explained) in findings.iter().map(Borrow::borrow).zip(explained) {
        let of_others = explained.iter().map(|other| findings[*other].borrow().severity);
        let measured = finding.cost.value.filter(|_| finding.cost.kind == CostKind::Measured).map(|amount| {
            // The first word says what is counted: `share of vCPU time of web` and `share of vCPU time` are both shares.
            let unit = finding.cost.unit.split(' ').next().unwrap_or_default();
            let next = units.len();
            Measured { unit: *units.entry(unit).or_insert(next), amount }
        });
        let severity = of_others.fold(finding.severity, Ord::max);
        let can_wait = severity == Severity::Info && finding.needs == Needs::Reboot;
        ranks.push(Rank { severity, explains: explained.len(), measured, can_wait });
    }
    ranks
}

/// For each finding the others that it explains, also by way of those that it explains: a cause's cause goes first.
fn explained<F: Borrow<Finding>>(findings: &[F]) -> Vec<Vec<usize>> {
    let ids: HashMap<String, usize> =
        findings.iter().enumerate().map(|(at, finding)| (finding.borrow().id(), at)).collect();
    let directly: Vec<Vec<usize>> = findings
        .iter()
        .map(|finding| finding.borrow().explains.iter().filter_map(|id| ids.get(id).copied()).collect())
        .collect();
    let all = |from: usize| {
        let mut found = Vec::new();
        let mut seen = vec![false; if directly[from].is_empty() { 0 } else { findings.len() }];
        let mut open = directly[from].clone();
        while let Some(next) = open.pop() {
            if next != from && !std::mem::replace(&mut seen[next], true) {
                found.push(next);
                open.extend(&directly[next]);
            }
        }
        found
    };
    (0..findings.len()).map(all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cost, Evidence, Level, Needs};

    fn finding(rule: &'static str, subject: &str, severity: Severity, cost: Cost, explains: &[&str]) -> Finding {
        Finding {
            rule,
            subject: subject.into(),
            per: "VM",
            severity,
            level: Level::L0,
            title: String::new(),
            evidence: vec![Evidence::new("seen", "here")],
            cost,
            gives_back: None,
            explains: explains.iter().map(|id| (*id).to_owned()).collect(),
            why: String::new(),
            changes: Vec::new(),
            fix: Vec::new(),
            undo: Vec::new(),
            needs: Needs::Nothing,
            source: "",
        }
    }

    fn ids(findings: Vec<Finding>) -> Vec<String> {
        in_order(findings).iter().map(Finding::id).collect()
    }

    fn measured(value: f64, unit: &str) -> Cost {
        Cost::of(CostKind::Measured, value, unit)
    }

    #[test]
    fn worse_goes_first_then_what_was_measured_then_the_larger_amount() {
        let found = vec![
            finding("A", "known", Severity::Medium, Cost::none(), &[]),
            finding("B", "read", Severity::Medium, Cost::of(CostKind::Published, 9.0, "times"), &[]),
            finding("C", "small", Severity::Medium, measured(0.2, "share of vCPU time"), &[]),
            finding("D", "cycles", Severity::Medium, measured(9_000.0, "cycles"), &[]),
            finding("E", "large", Severity::Medium, measured(0.4, "share of the vCPU time of web"), &[]),
            finding("F", "worst", Severity::High, Cost::none(), &[]),
            finding("G", "known", Severity::Medium, Cost::none(), &[]),
        ];
        assert_eq!(ids(found), ["F@worst", "E@large", "C@small", "D@cycles", "A@known", "B@read", "G@known"]);
    }

    #[test]
    fn what_is_only_told_and_needs_a_reboot_waits() {
        let mut kernel = finding("K", "old", Severity::Info, Cost::none(), &[]);
        kernel.needs = Needs::Reboot;
        let mut worse = finding("W", "boot", Severity::Low, Cost::none(), &[]);
        worse.needs = Needs::Reboot;
        let found = vec![kernel, worse, finding("D", "disk", Severity::Info, Cost::none(), &[])];
        assert_eq!(ids(found), ["W@boot", "D@disk", "K@old"]);
    }

    #[test]
    fn a_cause_stands_before_all_that_it_explains_however_bad_they_are() {
        let found = vec![
            finding("V", "web", Severity::High, measured(0.9, "CPUs short"), &[]),
            finding("V", "db", Severity::Low, Cost::none(), &["V@gone"]),
            finding("C", "host", Severity::Info, Cost::none(), &["V@web", "V@db"]),
            finding("R", "root", Severity::Info, Cost::none(), &["C@host"]),
            finding("X", "other", Severity::High, measured(1.0, "CPUs short"), &[]),
        ];
        assert_eq!(ids(found), ["R@root", "C@host", "X@other", "V@web", "V@db"]);
    }

    #[test]
    fn findings_that_explain_each_other_end() {
        let found = vec![
            finding("A", "1", Severity::Low, Cost::none(), &["B@1", "A@1"]),
            finding("B", "1", Severity::Medium, Cost::none(), &["A@1"]),
        ];
        assert_eq!(ids(found), ["A@1", "B@1"]);
    }
}
