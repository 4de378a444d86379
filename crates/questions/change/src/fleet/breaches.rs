//! Which goals of latency budgets do how many hosts break?

use super::classes::Host;
use std::collections::BTreeMap;

/// One goal over all hosts that were judged by it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Breaches<'f> {
    pub budget: &'f str,
    pub goal: &'f str,
    pub metric: &'f str,
    pub limit_ns: u64,
    /// Hosts with a FAIL in any recording, by name.
    pub failed: Vec<&'f str>,
    /// Hosts that pass everywhere.
    pub passed: usize,
    /// Hosts without a FAIL whose verdict is open somewhere.
    pub open: usize,
    /// The largest number that was judged, and whose it is.
    pub worst: Option<(u64, &'f str)>,
}

/// What one host's verdicts on a goal come to.
#[derive(Default)]
struct OfHost {
    failed: bool,
    open: bool,
    worst_ns: Option<u64>,
}

/// Every goal, those that most hosts break first.
pub(super) fn breaches<'f>(hosts: &[Host<'f>]) -> Vec<Breaches<'f>> {
    let mut goals: BTreeMap<(&str, &str), Breaches<'f>> = BTreeMap::new();
    for host in hosts {
        let mut own: BTreeMap<(&str, &str), OfHost> = BTreeMap::new();
        for verdict in host.recordings.iter().flat_map(|(_, one)| &one.verdicts) {
            let key = (verdict.budget.as_str(), verdict.goal.as_str());
            goals.entry(key).or_insert_with(|| Breaches {
                budget: &verdict.budget,
                goal: &verdict.goal,
                metric: &verdict.metric,
                limit_ns: verdict.limit_ns,
                failed: Vec::new(),
                passed: 0,
                open: 0,
                worst: None,
            });
            let of = own.entry(key).or_default();
            of.failed |= verdict.verdict == "FAIL";
            of.open |= verdict.verdict != "FAIL" && verdict.verdict != "PASS";
            of.worst_ns = of.worst_ns.max(verdict.value_ns);
        }
        for (key, of) in own {
            let Some(goal) = goals.get_mut(&key) else { continue };
            match (of.failed, of.open) {
                (true, _) => goal.failed.push(host.name),
                (false, true) => goal.open += 1,
                (false, false) => goal.passed += 1,
            }
            if let Some(worst_ns) = of.worst_ns.filter(|ns| goal.worst.is_none_or(|(most, _)| *ns > most)) {
                goal.worst = Some((worst_ns, host.name));
            }
        }
    }
    let mut all: Vec<Breaches<'f>> = goals.into_values().collect();
    all.sort_by_key(|goal| (std::cmp::Reverse(goal.failed.len()), goal.budget, goal.goal));
    all
}
