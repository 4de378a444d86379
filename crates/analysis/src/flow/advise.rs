//! The rules, applied: what a check saw becomes a finding.

use super::measure::Measures;
use super::rules::RULES;
use base::Finding;
use base::recording::Emulator;

/// All findings of one trace, worst first.
pub fn advise(measure: &Measures<'_>, emulated: Option<Emulator>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        for hit in (rule.check)(measure) {
            let mut cost = hit.cost;
            if let (Some(emulator), true) = (emulated, cost.value.is_some()) {
                cost.unit = format!("{}, {}", cost.unit, super::section::mark(emulator));
            }
            let own = |special: Vec<String>, rule: &[&str]| {
                special.into_iter().chain(rule.iter().map(|line| (*line).to_owned())).collect()
            };
            findings.push(Finding {
                rule: rule.id,
                subject: hit.subject,
                severity: hit.severity,
                level: measure.level_above(rule.above),
                title: hit.title,
                evidence: hit.evidence,
                cost,
                why: rule.why.to_owned(),
                changes: hit.changes,
                fix: own(hit.fix, rule.fix),
                undo: own(hit.undo, rule.undo),
                needs: rule.needs,
                source: rule.source,
            });
        }
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
