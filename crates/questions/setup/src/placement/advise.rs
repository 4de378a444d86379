//! The rules, applied: what a check saw becomes a finding.

use super::culprits::weighed;
use super::model::Model;
use super::proposal::{Advice, Verdict};
use super::rules::{PROPOSAL, Rule, rules};
use crate::page::Page;
use base::{Evidence, Finding, Severity};
use facts::rule::Hit;
use std::collections::BTreeMap;

/// All findings about one machine; the worse has the first say in what is typed. Ids of several machines differ by the
/// machine's name.
pub(crate) fn advise(model: &Model, several: bool) -> Vec<Finding> {
    let weigh = |rule: &'static Rule, hit| (rule, weighed(model, rule.id, hit));
    let mut hits: Vec<(&Rule, Hit)> =
        rules().flat_map(|rule| (rule.check)(model).into_iter().map(move |hit| weigh(rule, hit))).collect();
    let severities: BTreeMap<String, Severity> = hits.iter().map(|(rule, hit)| (id(rule, hit), hit.severity)).collect();
    for (rule, hit) in &mut hits {
        let own = id(rule, hit);
        hit.explains.retain(|other| *other != own && severities.contains_key(other));
    }
    // A cause is as bad as the worst that it explains, and comes before it.
    let worst = |hit: &Hit| hit.explains.iter().map(|other| severities[other]).fold(hit.severity, Ord::max);
    // Of what costs nothing today, what can be changed comes before what is only looked at, and whole placements are last.
    let can_only_look = |rule: &Rule, hit: &Hit| match worst(hit) {
        Severity::Info if rule.id == PROPOSAL => 2,
        Severity::Info => u8::from(hit.changes.is_empty() && hit.undo.is_empty() && rule.undo.is_empty()),
        _ => 0,
    };
    hits.sort_by_key(|(rule, hit)| (std::cmp::Reverse(worst(hit)), hit.explains.is_empty(), can_only_look(rule, hit)));
    let mut advice = Advice::of(&model.machine, &model.proposal);
    let mut page = Page::of(&model.machine);
    hits.into_iter()
        .filter_map(|(rule, hit)| {
            // Placements are there to choose from, and without its commands one is none.
            let is_choice = rule.id == PROPOSAL;
            let hit = match page.holder(&id(rule, &hit), &lines(rule, &hit), is_choice) {
                Some(_) if is_choice => return None,
                Some(above) => yielding(hit, above),
                None => tenable(model, rule, hit, &mut advice),
            };
            if !is_choice {
                page.add(&id(rule, &hit), &hit.explains, &lines(rule, &hit));
            }
            Some(rule.finding(hit, model.level))
        })
        .map(|mut finding| {
            tongue::translated(&model.machine, &mut finding);
            if several {
                named(&mut finding, &model.id);
            }
            finding
        })
        // Of a pod whose CPU manager has chosen all of it, nothing is left to choose.
        .filter(|finding| finding.rule != PROPOSAL || !finding.fix.is_empty())
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

/// What a finding types.
fn lines(rule: &Rule, hit: &Hit) -> Vec<String> {
    let filled =
        |line: &&str| hit.blanks.iter().fold((*line).to_owned(), |line, (blank, known)| line.replace(blank, known));
    let of_rule = rule.fix.iter().filter(|_| !hit.nothing_to_change).map(filled);
    hit.changes.iter().map(base::Change::command).chain(hit.fix.iter().cloned()).chain(of_rule).collect()
}

/// The hit without its commands, which do not go together with those of a finding above.
fn yielding(mut hit: Hit, above: &str) -> Hit {
    [&mut hit.first, &mut hit.undo].into_iter().for_each(Vec::clear);
    hit.changes.clear();
    hit.fix = vec![format!(
        "kvmscope check   # after {above}: its commands set this, or what these threads get; what is left then?"
    )];
    hit.nothing_to_change = true;
    hit
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
