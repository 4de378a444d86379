//! Are the machines of a comparison alike? Where they are not, whatever differs may come from there.
//!
//! In: the recordings of both sides. Out: a finding with a line for everything in which they differ, or none.

use super::metrics::{Metric, Metrics};
use crate::facts::events::reasons::Isa;
use crate::facts::ledger::measure::measure;
use crate::rule::{Hit, Rule};
use crate::{Case, Input};
use base::number::{list, percent};
use base::recording::Emulator;
use base::rule::{Words, limit};
use base::{Evidence, Finding, Level, Needs, Severity};
use host::Snapshot;
use host::processor::Processor;
use std::collections::BTreeSet;

/// What the finding says besides.
const RULE: Rule<()> = Rule {
    id: "EVD-UNLIKE",
    per: "comparison",
    looks_at: "Emulator, instruction set, level, kernel, processor, CPUs, vCPUs and load of the recordings of both sides.",
    limits: &[limit("times as much busy time of the vCPUs on one side", LOAD_RATIO, "")],
    check: (),
    why: "Numbers of machines, levels, kernels or loads that are not alike differ whatever was changed between them.",
    fix: &["record both sides on the same machine, at the same level, with the same kernel and load"],
    undo: &[],
    needs: Needs::Nothing,
    source: "docs/apply.md, \"Did it help?\"",
};

/// Busy time of one side from which on it is another load than that of the other side: a quarter more.
const LOAD_RATIO: f64 = 1.25;

/// States in which a vCPU has nothing to do.
const IDLE: &[&str] = &["halted", "blocked"];

/// Something that machines can differ in.
struct Trait {
    name: &'static str,
    /// What a difference means for the rest of the numbers.
    severity: Severity,
    of: fn(&Case) -> Option<String>,
}

const TRAITS: &[Trait] = &[
    Trait { name: "emulator", severity: Severity::Medium, of: emulator },
    Trait { name: "instruction set", severity: Severity::Medium, of: isa },
    Trait { name: "level", severity: Severity::Medium, of: level },
    Trait { name: "kernel", severity: Severity::Low, of: kernel },
    Trait { name: "processor", severity: Severity::Low, of: processor },
    Trait { name: "number of CPUs", severity: Severity::Low, of: cpus },
    Trait { name: "number of vCPUs", severity: Severity::Low, of: vcpus },
];

/// What the rule says of itself.
pub(crate) fn words() -> Vec<Words> {
    vec![RULE.words()]
}

/// What differs between the machines and loads of both sides, or within one of them.
pub(super) fn finding(before: &[&Case], after: &[&Case], one: &[Metrics], two: &[Metrics]) -> Option<Finding> {
    let mut severity = Severity::Info;
    let mut unlike: Vec<(&str, String)> = Vec::new();
    for Trait { name, severity: own, of } in TRAITS {
        let [one, two] = [before, after].map(|side| side.iter().filter_map(|case| of(case)).collect::<BTreeSet<_>>());
        let is_alike = one == two && one.len() == 1;
        if is_alike || one.is_empty() || two.is_empty() {
            continue;
        }
        let text = |side: BTreeSet<String>| side.into_iter().collect::<Vec<_>>().join(" or ");
        unlike.push((name, format!("{name}: {} before, {} after", text(one), text(two))));
        severity = severity.max(*own);
    }
    if let Some((one, two)) = busy(one).zip(busy(two)).filter(|(one, two)| one.max(*two) > LOAD_RATIO * one.min(*two)) {
        unlike.push(("load", format!("vCPUs were busy {} of their time before, {} after", percent(one), percent(two))));
        severity = severity.max(Severity::Low);
    }
    if unlike.is_empty() {
        return None;
    }
    let names: Vec<String> = unlike.iter().map(|(name, _)| (*name).to_owned()).collect();
    let title = format!("The recordings differ in {}, which may explain what differs", list(&names));
    let mut hit = Hit::new("recordings", severity, title);
    hit.evidence = unlike.into_iter().map(|(_, what)| Evidence::new(what, "the recordings")).collect();
    Some(RULE.finding(hit, Level::Unknown))
}

fn emulator(case: &Case) -> Option<String> {
    let input: &Input = case.input();
    (!input.parts.is_empty()).then(|| input.recording.emulated.map_or("none", Emulator::name).to_owned())
}

fn isa(case: &Case) -> Option<String> {
    let measures = measure(case.ledger(), case.given());
    match measures.first()?.isa()? {
        Isa::Vmx => Some("VMX".to_owned()),
        Isa::Svm => Some("SVM".to_owned()),
        Isa::Arm64 => Some("arm64".to_owned()),
        Isa::Other(_) | Isa::Printed(_) => None,
    }
}

fn level(case: &Case) -> Option<String> {
    Some(case.input().parts.first()?.level.to_string())
}

fn kernel(case: &Case) -> Option<String> {
    case.input().parts.first()?.trace.facts().uname.clone()
}

fn processor(case: &Case) -> Option<String> {
    let machine = &case.input().parts.first()?.machine;
    let snapshot: &Snapshot = case.machines().of_machine(machine)?.last()?;
    Some(Processor::of(snapshot)?.name).filter(|name| !name.is_empty())
}

fn cpus(case: &Case) -> Option<String> {
    Some(case.input().parts.first()?.trace.facts().cpus.to_string())
}

fn vcpus(case: &Case) -> Option<String> {
    let measures = measure(case.ledger(), case.given());
    Some(measures.first()?.vcpus.len().to_string())
}

/// Share of the vCPUs' time in which they had something to do, as the mean over recordings; none without traces.
fn busy(side: &[Metrics]) -> Option<f64> {
    let of = |metrics: &Metrics, state: &str| {
        let values = metrics.get(&Metric::State(state.to_owned()))?;
        Some(values.iter().sum::<f64>() / values.len().max(1) as f64)
    };
    let one = |metrics: &Metrics| Some(1.0 - IDLE.iter().map(|state| of(metrics, state)).sum::<Option<f64>>()?);
    let shares: Vec<f64> = side.iter().filter_map(one).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_the_time_that_vcpus_had_something_to_do() {
        let metrics = |halted: f64, blocked: f64| {
            let state = |name: &str, share: f64| (Metric::State(name.to_owned()), vec![share; 8]);
            Metrics::from([state("halted", halted), state("blocked", blocked), state("guest_l1", 0.1)])
        };
        assert!((busy(&[metrics(0.5, 0.1), metrics(0.3, 0.1)]).unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(busy(&[Metrics::new()]), None);
    }
}
