//! The rules, applied: what a check saw becomes a finding.

use super::culprits::weighed;
use super::model::Model;
use super::proposal::{Advice, Verdict};
use super::rules::{PROPOSAL, Rule, rules};
use crate::tongue;
use base::{Evidence, Finding};
use facts::rule::Hit;
use std::collections::BTreeSet;

/// All findings about one machine; the worse has the first say in what is typed. Ids of several machines differ by the
/// machine's name.
pub(crate) fn advise(model: &Model, several: bool) -> Vec<Finding> {
    let weigh = |rule: &'static Rule, hit| (rule, weighed(model, rule.id, hit));
    let mut hits: Vec<(&Rule, Hit)> =
        rules().flat_map(|rule| (rule.check)(model).into_iter().map(move |hit| weigh(rule, hit))).collect();
    let ids: BTreeSet<String> = hits.iter().map(|(rule, hit)| id(rule, hit)).collect();
    for (rule, hit) in &mut hits {
        let own = id(rule, hit);
        hit.explains.retain(|other| *other != own && ids.contains(other));
    }
    hits.sort_by_key(|(_, hit)| std::cmp::Reverse(hit.severity));
    let mut advice = Advice::of(&model.machine, &model.proposal);
    hits.into_iter()
        .map(|(rule, hit)| rule.finding(tenable(model, rule, hit, &mut advice), model.level))
        .map(|mut finding| {
            tongue::translated(&model.machine, &mut finding);
            if several {
                named(&mut finding, &model.id);
            }
            finding
        })
        .collect()
}

fn id(rule: &Rule, hit: &Hit) -> String {
    format!("{}@{}", rule.id, hit.subject)
}

/// Names the machine in the finding's id, and in those that it explains.
fn named(finding: &mut Finding, machine: &str) {
    finding.subject = format!("{machine}:{}", finding.subject);
    for id in &mut finding.explains {
        if let Some((rule, subject)) = id.split_once('@') {
            *id = format!("{rule}@{machine}:{subject}");
        }
    }
}

/// The hit with what the model expects of its changes; without them, where they would make things worse: a part of a placement
/// may, where the whole does not. Whole placements are there to choose from, and stand for themselves.
fn tenable(model: &Model, rule: &Rule, mut hit: Hit, advice: &mut Advice<'_>) -> Hit {
    if rule.id == PROPOSAL || hit.changes.is_empty() {
        return hit;
    }
    match advice.take(&hit.changes) {
        Verdict::Unknown => {}
        Verdict::Holds(now, after) => {
            let [now, after] = [now, after].map(|short| format!("{short:.2}"));
            let mut what = match now == after {
                true => format!("CPUs short: {now}, now and with these commands (modelled)"),
                false => format!("CPUs short: {now} now, {after} with these commands (modelled)"),
            };
            if let Some(waited) = model.unexplained() {
                what += &format!("; threads waited {waited:.2} CPUs (measured), more than the model explains");
            }
            hit = hit.with(Evidence::in_table(what, "placement.plans"));
        }
        Verdict::Loses => {
            hit.changes.clear();
            hit.fix.insert(
                0,
                "# no command: this move alone would take more CPU time from threads than it gives (modelled); table \
                 proposal has whole placements, if there are better ones"
                    .to_owned(),
            );
        }
    }
    hit
}
