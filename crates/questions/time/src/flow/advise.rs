//! The rules, applied: what a check saw becomes a finding.

use super::held::weighed;
use super::rules::RULES;
use base::Finding;
use base::in_order;
use base::recording::Emulator;
use facts::ledger::measure::Measures;

/// All findings of one trace, worst first.
pub(crate) fn advise(measure: &Measures<'_>, emulated: Option<Emulator>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        for hit in (rule.check)(measure) {
            let mut finding = rule.finding(weighed(hit, measure), measure.part.level);
            if let Some(emulator) = emulated {
                let costs = finding.cost.value.is_some().then_some(&mut finding.cost.unit);
                let units = costs.into_iter().chain(finding.gives_back.as_mut().map(|gives_back| &mut gives_back.unit));
                units.for_each(|unit| *unit = format!("{unit}, {}", super::section::mark(emulator)));
            }
            findings.push(finding);
        }
    }
    in_order(findings)
}
