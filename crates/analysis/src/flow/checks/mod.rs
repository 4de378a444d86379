//! What the rules look at: numbers become evidence, or nothing.
//!
//! One file per subject; [`super::rules::RULES`] lists the checks.

mod aligned;
mod evidence;
mod exits;
mod nested;
mod waiting;

#[cfg(test)]
mod tests;

pub use aligned::aligned;
pub use evidence::{level_conflicts, lost, stale};
pub use exits::{apic, ept_storm, timer, userspace};
pub use nested::{shadow, vgif, vls};
pub use waiting::{halt_poll, preempted};

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

/// Severity of something that takes this share of all exits or of all time.
pub(super) fn by_share(share: f64) -> Severity {
    match share {
        s if s >= 0.30 => Severity::High,
        s if s >= 0.10 => Severity::Medium,
        _ => Severity::Low,
    }
}
