//! What the rules look at: numbers become evidence, or nothing.
//!
//! One file per subject; [`super::rules::RULES`] lists the checks.

mod aligned;
mod evidence;
mod exits;
mod nested;
mod storms;
mod waiting;

#[cfg(test)]
mod tests;

pub use aligned::aligned;
pub use evidence::{damaged, level_conflicts, lost, stale};
pub use exits::{apic, ept_storm, userspace};
pub use nested::{shadow, vgif, vls};
pub use storms::{halt_poll, ipi, pause, timer};
pub use waiting::preempted;

use super::measure::Measures;
use crate::shared::Hit;
use base::{Cost, Evidence, Severity};

/// What a hit is about when it is about all vCPUs: the VM, or the machine.
pub(super) fn subject(measure: &Measures<'_>) -> String {
    match measure.vcpus.first() {
        Some(first) if measure.vcpus.iter().all(|vcpu| vcpu.vm == first.vm) => first.vm.clone(),
        _ => measure.part.machine.clone(),
    }
}

/// Fewer exits of a kind than this are an anecdote; their share of a short trace says nothing.
pub(super) const FEWEST_EXITS: u64 = 20;

pub(super) fn seen(what: String, place: &str) -> Evidence {
    Evidence { what, place: place.to_owned() }
}

pub(super) fn hit(
    measure: &Measures<'_>,
    severity: Severity,
    title: String,
    evidence: Vec<Evidence>,
    cost: Cost,
) -> Vec<Hit> {
    vec![Hit { evidence, cost, ..Hit::new(subject(measure), severity, title) }]
}

/// What a share was taken from: how many events, and the time that they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// Exits, waits, chains.
    pub count: u64,
    /// The time behind them.
    pub ns: u64,
}

/// What a finding that is `high` or `medium` must have been seen in, at least: so many events, or so much time. A share of
/// a recording of 14 events in 3 ms is large by chance. Choices, not measurements (docs/flow.md, "Findings").
const ENOUGH_FOR_HIGH: Sample = Sample { count: 100, ns: 100_000_000 };
const ENOUGH_FOR_MEDIUM: Sample = Sample { count: 20, ns: 10_000_000 };

impl Sample {
    fn reaches(self, least: Sample) -> bool {
        self.count >= least.count || self.ns >= least.ns
    }
}

/// Severity of something that takes this share of all exits or of all time, seen in `sample`.
pub(super) fn by_share(share: f64, sample: Sample) -> Severity {
    let by_share = match share {
        s if s >= 0.30 => Severity::High,
        s if s >= 0.10 => Severity::Medium,
        _ => Severity::Low,
    };
    let most = match sample {
        s if s.reaches(ENOUGH_FOR_HIGH) => Severity::High,
        s if s.reaches(ENOUGH_FOR_MEDIUM) => Severity::Medium,
        _ => Severity::Low,
    };
    by_share.min(most)
}
