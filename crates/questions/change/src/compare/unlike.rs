//! Are the machines of a comparison alike? Where they are not, whatever differs may come from there.
//!
//! In: the recordings of both sides. Out: a finding with a line for everything in which they differ, or none.

use super::metrics::{Metric, Metrics};
use base::number::{list, percent};
use base::recording::Emulator;
use base::rule::{Words, limit};
use base::{Evidence, Finding, Level, Severity};
use facts::ledger::measure::measure;
use facts::rule::{Hit, Rule};
use facts::{Case, Input};
use host::Snapshot;
use host::processor::Processor;
use std::collections::BTreeSet;
use walk::events::reasons::Isa;

/// What the finding says besides.
const RULE: Rule<()> = Rule {
    id: "EVD-UNLIKE",
    per: "comparison",
    looks_at: "Emulator, instruction set, level, kernel, processor, CPUs, vCPUs and load of the recordings of both sides.",
    limits: &[limit("times as much time wanted, run, and in guest code on one side", LOAD_RATIO, "")],
    why: "Numbers of machines, levels, kernels or loads that are not alike differ whatever was changed between them.",
    fix: &["record both sides on the same machine, at the same level, with the same kernel and load"],
    source: "docs/use/compare.md, \"Whether it is more than noise\"",
    ..Rule::checked_by(())
};

/// Time of one side from which on it is another load than that of the other side: a quarter more.
const LOAD_RATIO: f64 = 1.25;

/// States in which a vCPU has nothing to do.
const IDLE: &[&str] = &["halted", "blocked"];

/// States in which it has something to do and waits for a CPU.
const WAITING: &[&str] = &["preempted", "wake_delay"];

/// How the names of states begin in which guest code ran.
const GUEST: &str = "guest_";

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
    if let Some((one, two)) = load(one).zip(load(two)).filter(|(one, two)| is_another(*one, *two)) {
        let (one, two) = (one.wanted, two.wanted);
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

/// What vCPUs had to do, as shares of their time.
#[derive(Debug, Clone, Copy)]
struct Load {
    wanted: f64,
    /// And had a CPU.
    ran: f64,
    guest: f64,
}

/// Whether two loads differ by more than a change of the host could bring about. One that ends waiting for a CPU, or exits,
/// lets the same work be done in less time, or more of it in the same time: one of the three shares then stays.
fn is_another(one: Load, two: Load) -> bool {
    let differs = |of: fn(&Load) -> f64| {
        let (one, two) = (of(&one), of(&two));
        (one.max(two) > LOAD_RATIO * one.min(two)).then_some(one < two)
    };
    let all = [differs(|load| load.wanted), differs(|load| load.ran), differs(|load| load.guest)];
    all[0].is_some() && all.iter().all(|differs| *differs == all[0])
}

/// The load of one side, as the mean over recordings; none without traces.
fn load(side: &[Metrics]) -> Option<Load> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let one = |metrics: &Metrics| {
        let of = |state: &str| Some(mean(metrics.get(&Metric::State(state.to_owned()))?));
        let wanted = 1.0 - IDLE.iter().map(|state| of(state)).sum::<Option<f64>>()?;
        let waited: f64 = WAITING.iter().filter_map(|state| of(state)).sum();
        let guest =
            metrics.iter().filter(|(metric, _)| matches!(metric, Metric::State(state) if state.starts_with(GUEST)));
        Some([wanted, wanted - waited, guest.map(|(_, values)| mean(values)).sum()])
    };
    let shares: Vec<[f64; 3]> = side.iter().filter_map(one).collect();
    let of = |at: usize| shares.iter().map(|shares| shares[at]).sum::<f64>() / shares.len() as f64;
    (!shares.is_empty()).then(|| Load { wanted: of(0), ran: of(1), guest: of(2) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// vCPUs that halted, waited for a CPU and ran guest code for these shares of their time.
    fn of(halted: f64, preempted: f64, guest: f64) -> Metrics {
        let state = |name: &str, share: f64| (Metric::State(name.to_owned()), vec![share; 8]);
        Metrics::from([
            state("halted", halted),
            state("blocked", 0.1),
            state("preempted", preempted),
            state("guest_l1", guest),
        ])
    }

    #[test]
    fn a_load_is_the_time_that_vcpus_had_something_to_do() {
        let both = load(&[of(0.5, 0.0, 0.1), of(0.3, 0.0, 0.1)]).unwrap();
        assert!((both.wanted - 0.5).abs() < 1e-9 && (both.guest - 0.1).abs() < 1e-9, "{both:?}");
        assert!(load(&[Metrics::new()]).is_none());
    }

    #[test]
    fn a_change_that_frees_cpus_is_no_other_load() {
        let differ = |one: Metrics, two: Metrics| is_another(load(&[one]).unwrap(), load(&[two]).unwrap());
        assert!(differ(of(0.7, 0.0, 0.15), of(0.3, 0.0, 0.5)), "more was to be done");
        assert!(!differ(of(0.1, 0.4, 0.35), of(0.5, 0.0, 0.35)), "what was waited before is idle now");
        assert!(!differ(of(0.0, 0.4, 0.5), of(0.0, 0.0, 0.9)), "a guest that uses all that it gets");
        assert!(!differ(of(0.1, 0.0, 0.3), of(0.5, 0.0, 0.3)), "fewer exits for the same work");
    }
}
