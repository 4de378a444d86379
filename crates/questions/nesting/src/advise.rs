//! The rules, applied: what a check saw becomes a finding.

use super::model::Model;
use super::rules::RULES;
use base::in_order;
use base::{Finding, Level};

/// All findings about these machines, worst first.
pub(crate) fn advise(model: &Model) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        let hits = (rule.check)(model).into_iter();
        findings.extend(hits.map(|hit| rule.finding(hit, Level::Unknown)));
    }
    in_order(findings)
}
