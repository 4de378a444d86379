//! The rules, applied: what a check saw becomes a finding.

use super::expected::Expectations;
use super::model::Model;
use super::rules::{Rule, rules};
use crate::rule::Hit;
use base::Finding;

/// All findings about one machine, worst first; ids of several machines differ by the machine's name.
pub fn advise(model: &Model, several: bool) -> Vec<Finding> {
    let expectations = Expectations::of(&model.machine);
    let finding = |rule: &Rule, hit| rule.finding(tenable(hit, &expectations), model.level);
    let found = rules().flat_map(|rule| (rule.check)(model).into_iter().map(|hit| finding(rule, hit)));
    let mut findings: Vec<Finding> = found
        .map(|mut finding| {
            if several {
                finding.subject = format!("{}:{}", model.id, finding.subject);
            }
            finding
        })
        .collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// The hit without changes that the model expects to make things worse: a part of a placement may, where the whole does not.
fn tenable(mut hit: Hit, expectations: &Expectations<'_>) -> Hit {
    if expectations.refuses(&hit.changes) {
        hit.changes.clear();
        hit.fix.insert(
            0,
            "# no command: this move alone would take more CPU time from threads than it gives (modelled); table \
             proposal has whole placements, if there are better ones"
                .to_owned(),
        );
    }
    hit
}
