//! The rules, applied: what a check saw becomes a finding.

use super::held::weighed;
use super::rules::RULES;
use crate::facts::ledger::measure::Measures;
use base::Finding;
use base::in_order;
use base::recording::Emulator;

/// All findings of one trace, worst first.
pub fn advise(measure: &Measures<'_>, emulated: Option<Emulator>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        for hit in (rule.check)(measure) {
            let mut finding = rule.finding(weighed(hit, measure), measure.part.level);
            if let (Some(emulator), true) = (emulated, finding.cost.value.is_some()) {
                finding.cost.unit = format!("{}, {}", finding.cost.unit, super::section::mark(emulator));
            }
            findings.push(finding);
        }
    }
    in_order(findings)
}
