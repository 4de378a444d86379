//! The rules, applied: what a check saw becomes a finding.

use super::model::Model;
use super::rules::{Hit, RULES, Rule};
use base::Finding;

/// All findings about these machines, worst first.
pub fn advise(model: &Model) -> Vec<Finding> {
    let found = RULES.iter().flat_map(|rule| (rule.check)(model).into_iter().map(move |hit| finding(rule, hit)));
    let mut findings: Vec<Finding> = found.collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn finding(rule: &Rule, hit: Hit) -> Finding {
    // A typed change prints itself; what a check or the rule adds comes after.
    let lines = |typed: Vec<String>, special: Vec<String>, of_rule: &[&str]| -> Vec<String> {
        let own = of_rule.iter().map(|line| (*line).to_owned());
        typed.into_iter().chain(special).chain(own).collect()
    };
    let typed = hit.changes.iter().map(base::Change::command).collect();
    let back = hit.changes.iter().filter_map(base::Change::undo).collect();
    Finding {
        rule: rule.id,
        subject: hit.subject,
        severity: hit.severity,
        level: hit.level,
        title: hit.title,
        evidence: hit.evidence,
        cost: hit.cost,
        why: rule.why.to_owned(),
        fix: lines(typed, hit.fix, rule.fix),
        undo: lines(back, hit.undo, rule.undo),
        changes: hit.changes,
        needs: hit.needs.unwrap_or(rule.needs),
        source: rule.source,
    }
}
