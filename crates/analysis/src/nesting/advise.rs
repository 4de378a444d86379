//! The rules, applied: what a check saw becomes a finding.

use super::model::Model;
use super::rules::RULES;
use crate::rule::Hit;
use base::{Change, Finding, Level, Setting};

/// All findings about these machines, worst first.
pub fn advise(model: &Model) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        let hits = (rule.check)(model).into_iter();
        findings.extend(hits.map(|hit| rule.finding(lasting(hit), Level::Unknown)));
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// A change of a module's parameter comes with the file that keeps it, and with what removes that file.
fn lasting(mut hit: Hit) -> Hit {
    hit.fix.splice(0..0, hit.changes.iter().filter_map(kept));
    hit.undo.splice(0..0, hit.changes.iter().filter_map(forgotten));
    hit
}

/// The file that makes a module's parameter last beyond a reboot (modprobe.d(5)).
fn file(change: &Change) -> Option<(String, String)> {
    let Change { setting: Setting::ModuleOption { module, parameter }, to, .. } = change else { return None };
    Some((format!("/etc/modprobe.d/kvmscope-{parameter}.conf"), format!("options {module} {parameter}={to}")))
}

/// The command that writes it.
fn kept(change: &Change) -> Option<String> {
    file(change).map(|(path, line)| format!("echo {line} > {path}   # keeps it after a reboot"))
}

/// The command that removes it.
fn forgotten(change: &Change) -> Option<String> {
    file(change).map(|(path, _)| format!("rm -f {path}"))
}
