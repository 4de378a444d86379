//! The rules, applied: what a check saw becomes a finding.

use super::model::Model;
use super::rules::{Hit, RULES, Rule};
use base::{Change, Finding};

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
    let typed = hit.changes.iter().flat_map(|change| [Some(change.command()), kept(change)]).flatten().collect();
    let back = hit.changes.iter().flat_map(|change| [change.undo(), forgotten(change)]).flatten().collect();
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

/// The file that makes a module's parameter last beyond a reboot (modprobe.d(5)).
fn file(change: &Change) -> Option<(String, String)> {
    let Change::ModuleOption { module, parameter, to, .. } = change else { return None };
    Some((format!("/etc/modprobe.d/kvmscope-{parameter}.conf"), format!("options {module} {parameter}={to}")))
}

/// The command that writes it.
fn kept(change: &Change) -> Option<String> {
    file(change).map(|(path, line)| format!("echo {line} > {path}   # also after a reboot"))
}

/// The command that removes it.
fn forgotten(change: &Change) -> Option<String> {
    file(change).map(|(path, _)| format!("rm -f {path}"))
}
