//! The rules, applied: what a check saw becomes a finding.

use super::held::weighed;
use super::rules::RULES;
use base::recording::Emulator;
use base::{Finding, GivesBack, in_order};
use facts::ledger::levels;
use facts::ledger::measure::Measures;
use std::collections::BTreeMap;
use walk::state::{STATES, State};

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
    count_once(measure, &mut findings);
    in_order(findings)
}

/// Several findings may be about the same time, which comes back once: each keeps what those that give back more have left.
fn count_once(measure: &Measures<'_>, findings: &mut [Finding]) {
    let mut given: Vec<&mut GivesBack> =
        findings.iter_mut().filter_map(|finding| finding.gives_back.as_mut()).collect();
    given.sort_by(|one, other| other.share.total_cmp(&one.share));
    let share = |state: State| measure.state_ns(|other| other == state) as f64 / measure.wall_ns.max(1) as f64;
    let mut left: BTreeMap<String, f64> = BTreeMap::new();
    for state in (0..STATES).map(State::of_index) {
        *left.entry(levels::name(measure.part.level, state)).or_default() += share(state);
    }
    for gives_back in given {
        if let Some(left) = left.get_mut(&gives_back.state) {
            gives_back.at_most(*left);
            *left -= gives_back.share;
        }
    }
    for finding in findings {
        finding.gives_back = finding.gives_back.take().filter(|gives_back| gives_back.share > 0.0);
    }
}
