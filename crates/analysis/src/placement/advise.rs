//! The rules, applied: what a check saw becomes a finding.

use super::model::Model;
use super::rules::{Hit, RULES, Rule};
use base::Finding;

/// All findings about one machine, worst first; ids of several machines differ by the machine's name.
pub fn advise(model: &Model, several: bool) -> Vec<Finding> {
    let found = RULES.iter().flat_map(|rule| (rule.check)(model).into_iter().map(move |hit| finding(rule, hit)));
    let mut findings: Vec<Finding> = found
        .map(|mut finding| {
            finding.level = model.level;
            if several {
                finding.subject = format!("{}:{}", model.id, finding.subject);
            }
            finding
        })
        .collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn finding(rule: &Rule, hit: Hit) -> Finding {
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
        level: base::Level::At(0),
        title: hit.title,
        evidence: hit.evidence,
        cost: hit.cost,
        why: format!("{} If this is wrong: {}", rule.why, rule.wrong),
        fix: lines(typed, hit.fix, rule.fix),
        undo: lines(back, hit.undo, rule.undo),
        changes: hit.changes,
        needs: rule.needs,
        source: rule.source,
    }
}
