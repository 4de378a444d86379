//! What a collector of metrics counts in a recording, so that recordings of one host add up.

use crate::Case;
use crate::ledger::levels;
use crate::ledger::measure::measure;
use crate::ledger::witness::{Witnesses, told_levels};
use base::Histogram;
use std::collections::BTreeMap;
use walk::state::{STATES, State};

/// Sums of one recording or of many.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// Time from exit to entry, by level of the guest and reason.
    pub exits_ns: BTreeMap<(String, String), Histogram>,
    /// All exits, also those whose entry was not seen, by level and reason.
    pub exits: BTreeMap<(String, String), u64>,
    /// Time of vCPUs by state, as tables name it.
    pub states_ns: BTreeMap<String, u64>,
    /// What the host took from vCPUs without being asked, by the state in which they were.
    pub lost_ns: BTreeMap<&'static str, u64>,
    pub events_lost: u64,
    pub recorded_ns: u64,
}

impl Counted {
    pub fn of(case: &Case) -> Self {
        let mut counted = Self::default();
        let measures = measure(case.ledger(), case.given());
        let witnesses = Witnesses::of(&measures, case.given().narrow.witness);
        for measure in &measures {
            let part = measure.part;
            counted.recorded_ns = counted.recorded_ns.max(part.window.length_ns());
            counted.events_lost += part.losses.iter().map(|loss| loss.count).sum::<u64>();
            for vcpu in &measure.vcpus {
                for (level, reason, sums) in measure.exits_of(vcpu).filter(|_| witnesses.has_exits(measure)) {
                    let key = (level.to_string(), reason.name());
                    *counted.exits.entry(key.clone()).or_default() += sums.count;
                    counted.exits_ns.entry(key).or_default().merge(&sums.cost_ns);
                }
                for state in (0..STATES).map(State::of_index).filter(|_| witnesses.has_states(measure)) {
                    let ns = vcpu.sums.states_ns[state.index()];
                    *counted.states_ns.entry(levels::name(part.level, state)).or_default() += ns;
                }
            }
        }
        let told = told_levels(case);
        let parts = case.ledger().parts.iter().zip(case.losses());
        for (_, losses) in parts.filter(|(part, _)| told.contains(&part.level)) {
            for (cause, sums) in losses.vcpus.iter().flat_map(|vcpu| vcpu.lost.culprits()) {
                *counted.lost_ns.entry(cause.state.name()).or_default() += sums.total_ns;
            }
        }
        counted
    }

    /// Adds those of another recording.
    pub fn add(&mut self, other: &Self) {
        for (key, histogram) in &other.exits_ns {
            self.exits_ns.entry(key.clone()).or_default().merge(histogram);
        }
        for (key, count) in &other.exits {
            *self.exits.entry(key.clone()).or_default() += count;
        }
        for (state, ns) in &other.states_ns {
            *self.states_ns.entry(state.clone()).or_default() += ns;
        }
        for (state, ns) in &other.lost_ns {
            *self.lost_ns.entry(state).or_default() += ns;
        }
        self.events_lost += other.events_lost;
        self.recorded_ns += other.recorded_ns;
    }
}
