//! Which findings would help how many hosts? By each host's newest recording: what was changed since is no finding any more.

use super::classes::Host;
use super::model::{Example, Fleet, Found};
use base::Severity;
use facts::statistics::spread::median;
use std::collections::BTreeMap;

/// One rule over all hosts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ranked<'f> {
    pub rule: &'f str,
    pub severity: Severity,
    pub hosts: Vec<&'f str>,
    pub findings: usize,
    /// What it costs a host at worst, median over the hosts; with the unit and how it is known, where all agree on those.
    pub cost: Option<(f64, &'f str, &'f str)>,
    pub example: Option<&'f Example>,
}

/// Every rule with a finding, by severity, then by the number of hosts.
pub(super) fn ranked<'f>(fleet: &'f Fleet, hosts: &[Host<'f>]) -> Vec<Ranked<'f>> {
    let mut rules: BTreeMap<&str, Vec<(&str, &Found)>> = BTreeMap::new();
    for host in hosts {
        for found in &host.newest().findings {
            rules.entry(&found.rule).or_default().push((host.name, found));
        }
    }
    let mut all: Vec<Ranked<'f>> = rules.into_iter().map(|(rule, found)| of_rule(fleet, rule, &found)).collect();
    all.sort_by_key(|one| (std::cmp::Reverse((one.severity, one.hosts.len())), one.rule));
    all
}

fn of_rule<'f>(fleet: &'f Fleet, rule: &'f str, found: &[(&'f str, &'f Found)]) -> Ranked<'f> {
    let mut hosts: Vec<&str> = found.iter().map(|(host, _)| *host).collect();
    hosts.dedup();
    let severity =
        found.iter().filter_map(|(_, found)| Severity::named(&found.severity)).max().unwrap_or(Severity::Info);
    let mut costs: BTreeMap<&str, f64> = BTreeMap::new();
    let (unit, kind) =
        found.first().map_or(("", ""), |(_, first)| (first.cost_unit.as_str(), first.cost_kind.as_str()));
    let mut agree = true;
    for (host, one) in found {
        agree &= (one.cost_unit.as_str(), one.cost_kind.as_str()) == (unit, kind);
        let Some(cost) = one.cost else { continue };
        let worst = costs.entry(host).or_insert(f64::NEG_INFINITY);
        *worst = worst.max(cost.value());
    }
    let cost = median(&costs.into_values().collect::<Vec<_>>()).filter(|_| agree).map(|cost| (cost, unit, kind));
    Ranked { rule, severity, hosts, findings: found.len(), cost, example: fleet.examples.get(rule) }
}
