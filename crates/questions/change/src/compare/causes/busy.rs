//! What were vCPUs busy with in one recording, and how much work was done meanwhile?

use super::parts::{Component, Parts};
use base::Level;
use facts::Case;
use facts::ledger::levels;
use facts::ledger::measure::{Measures, measure};
use facts::ledger::witness::Witnesses;
use std::collections::{BTreeMap, BTreeSet};
use walk::state::{State, TracedLevel};

/// States in which no CPU works for a vCPU, or nobody knows; by their columns' names.
const NOT_BUSY: [&str; 5] = ["halted", "blocked", "preempted", "wake_delay", "unknown"];
/// Fewer units of work are too few to divide by.
const FEWEST_UNITS: f64 = 10.0;

/// The time of one recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Busy {
    pub parts: Parts,
    /// Units of work in a second of the vCPUs' time: exits of nested guests, and what marks count.
    pub work: BTreeMap<String, f64>,
}

impl Busy {
    /// What the vCPUs that are wanted were busy with; `None` if there are none.
    pub(super) fn of(case: &Case) -> Option<Self> {
        let measures = measure(case.ledger(), case.given());
        let witnesses = Witnesses::of(&measures, case.given().narrow.witness);
        let measures: Vec<&Measures<'_>> = measures.iter().filter(|measure| witnesses.has_states(measure)).collect();
        let wall_ns: u64 = measures.iter().map(|measure| measure.wall_ns).sum();
        if wall_ns == 0 {
            return None;
        }
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        let mut wanted = BTreeSet::new();
        for measure in &measures {
            for vcpu in &measure.vcpus {
                wanted.insert((vcpu.vm.clone(), vcpu.vcpu));
                for (level, reason, sums) in measure.exits_of(vcpu) {
                    let name = levels::name(measure.part.level, State::Handling(traced(measure.part.level, level)));
                    *counts.entry((name, reason.name())).or_default() += sums.count;
                }
            }
        }
        let mut times: BTreeMap<Component, u64> = BTreeMap::new();
        for vcpu in case.stacks().iter().filter(|vcpu| wanted.contains(&(vcpu.vm.clone(), vcpu.vcpu))) {
            for ((state, reason), sum) in &vcpu.sums {
                if NOT_BUSY.contains(&state.name.as_str()) {
                    continue;
                }
                *times.entry(Component::new(&state.name, &state.title, reason)).or_default() += sum.time_ns;
            }
        }
        let times = times.into_iter().map(|(part, ns)| {
            let count = counts.get(&(part.state().to_owned(), part.reason().to_owned())).copied();
            (part, ns, count.unwrap_or(0))
        });
        Some(Self { parts: Parts::of_time(times, wall_ns), work: work(&measures, wall_ns) })
    }
}

/// Units of work in a second of vCPUs' time, by their names.
fn work(measures: &[&Measures<'_>], wall_ns: u64) -> BTreeMap<String, f64> {
    let mut units: BTreeMap<String, f64> = BTreeMap::new();
    for measure in measures {
        let nested = measure.level_above(2);
        let exits: u64 =
            measure.reasons.iter().filter(|reason| reason.level == nested).map(|reason| reason.count).sum();
        if exits > 0 && nested != Level::Unknown {
            *units.entry(format!("exit of {nested}")).or_default() += exits as f64;
        }
        for (unit, count) in &measure.part.work {
            *units.entry(unit.clone()).or_default() += count;
        }
    }
    units.retain(|_, count| *count >= FEWEST_UNITS);
    units.into_iter().map(|(unit, count)| (unit, count / (wall_ns as f64 / 1e9))).collect()
}

/// A level as a trace of `host` counts it.
fn traced(host: Level, level: Level) -> TracedLevel {
    match (host, level) {
        (Level::At(host), Level::At(level)) if level > host => TracedLevel::at(level - host),
        (Level::Below | Level::Unknown, Level::At(level)) if level > 0 => TracedLevel::at(level),
        _ => TracedLevel::Lost,
    }
}
