//! The rules, applied: what a check saw becomes a finding.

use super::model::Model;
use super::rules::rules;
use base::Finding;

/// All findings about one machine, worst first; ids of several machines differ by the machine's name.
pub fn advise(model: &Model, several: bool) -> Vec<Finding> {
    let found = rules().flat_map(|rule| (rule.check)(model).into_iter().map(|hit| rule.finding(hit, model.level)));
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
