//! What the rules look at: numbers become evidence, or nothing.
//!
//! One file per subject; [`super::rules::RULES`] lists the checks.

mod aligned;
pub(super) mod clocks;
mod evidence;
pub(super) mod exits;
pub(super) mod faults;
pub(super) mod nested;
pub(super) mod storms;
pub(super) mod waiting;

#[cfg(test)]
mod tests;

pub(crate) use aligned::aligned;
pub(crate) use clocks::slow_clocks;
pub(crate) use evidence::{damaged, level_conflicts, lost, stale};
pub(crate) use exits::{apic, ept_storm, userspace};
pub(crate) use nested::{shadow, vgif, vls};
pub(crate) use storms::{halt_poll, ipi, pause, timer};
pub(crate) use waiting::preempted;

use base::{About, Cost, Evidence, GivesBack, Level, Setting, Severity};
use facts::estimate::Estimate;
use facts::ledger::levels;
use facts::ledger::measure::{Measures, ReasonTotal};
use facts::ledger::model::Vcpu;
use facts::rule::Hit;
use walk::events::details::Detail;
use walk::events::reasons::Reason;
use walk::state::State;

/// What a hit is about when it is about all vCPUs: the VM, or the machine.
pub(super) fn subject(measure: &Measures<'_>) -> String {
    only_vm(measure).unwrap_or(&measure.part.machine).to_owned()
}

/// The VM, where there is only one.
fn only_vm<'m>(measure: &'m Measures<'_>) -> Option<&'m str> {
    let first = measure.vcpus.first()?;
    measure.vcpus.iter().all(|vcpu| vcpu.vm == first.vm).then_some(first.vm.as_str())
}

/// Fewer exits of a kind than this are an anecdote; their share of a short trace says nothing.
pub(super) const FEWEST_EXITS: u64 = 20;

/// Something seen in a table of VMs, in the rows of this trace's VM if there is only one.
pub(super) fn seen(measure: &Measures<'_>, what: String, table: &'static str) -> Evidence {
    let seen = Evidence::in_table(what, table);
    match only_vm(measure) {
        Some(vm) => seen.key("vm", vm),
        None => seen,
    }
}

/// The reasons of the trace's exits for which `wanted` holds, most frequent first.
pub(super) fn reasons(measure: &Measures<'_>, wanted: impl Fn(&ReasonTotal) -> bool) -> Vec<About> {
    let mut found: Vec<Reason> = Vec::new();
    for total in measure.reasons.iter().filter(|total| wanted(total)) {
        if !found.contains(&total.reason) {
            found.push(total.reason);
        }
    }
    found.into_iter().map(|reason| About::reason(reason.name())).collect()
}

/// The reasons of exits with a detail for which `wanted` holds.
pub(super) fn reasons_with(measure: &Measures<'_>, wanted: impl Fn(Detail) -> bool) -> Vec<About> {
    reasons(measure, |total| total.details.iter().any(|(detail, ..)| wanted(*detail)))
}

/// A state, by the name that the timeline has for it.
pub(super) fn state(measure: &Measures<'_>, state: State) -> About {
    About::state(levels::name(measure.part.level, state))
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

/// The same hits with a switch of a kernel module as their change; which value holds, and whether the CPU can, no trace shows.
pub(super) fn switched_on(module: &str, parameter: &str, mut hits: Vec<Hit>) -> Vec<Hit> {
    let switch = Setting::ModuleOption { module: module.to_owned(), parameter: parameter.to_owned() };
    hits.iter_mut().for_each(|hit| hit.changes.push(switch.clone().change("1", None)));
    hits
}

/// The VM whose vCPUs spend the largest share of their time on something, and that share: on a host of many VMs a share of
/// all time hides it.
pub(super) fn worst_vm<'f>(measure: &Measures<'f>, ns_of: impl Fn(&Vcpu) -> u64) -> (&'f str, f64) {
    let vms = measure.by_vm().into_iter().map(|(vm, vcpus)| (vm, share_of(&vcpus, &ns_of)));
    vms.max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or(("", 0.0))
}

/// The same share of one VM.
pub(super) fn of_vm(measure: &Measures<'_>, vm: &str, ns_of: impl Fn(&Vcpu) -> u64) -> f64 {
    measure.by_vm().into_iter().find(|(name, _)| *name == vm).map_or(0.0, |(_, vcpus)| share_of(&vcpus, &ns_of))
}

fn share_of(vcpus: &[&Vcpu], ns_of: &impl Fn(&Vcpu) -> u64) -> f64 {
    let wall_ns: u64 = vcpus.iter().map(|vcpu| vcpu.sums.wall_ns()).sum();
    vcpus.iter().map(|vcpu| ns_of(vcpu)).sum::<u64>() as f64 / wall_ns.max(1) as f64
}

/// Time of a vCPU's exits for which `wanted` holds.
pub(super) fn exits_ns(measure: &Measures<'_>, vcpu: &Vcpu, wanted: impl Fn(Reason) -> bool) -> u64 {
    let exits = measure.exits_of(vcpu).filter(|(_, reason, _)| wanted(*reason));
    exits.map(|(.., sums)| sums.cost_ns.sum()).sum()
}

/// What vCPUs would get back of a state, of each vCPU at most what was measured: `ns_of` it, and never more than its time.
pub(super) fn gives_back(measure: &Measures<'_>, state: String, ns_of: impl Fn(&Vcpu) -> u64) -> Option<GivesBack> {
    gives_back_between(measure, state, |vcpu| {
        let ns = ns_of(vcpu) as f64;
        Estimate { low: 0.0, mid: ns, high: ns }
    })
}

/// The same where more is known of each vCPU than what was measured.
pub(super) fn gives_back_between(
    measure: &Measures<'_>,
    state: String,
    ns_of: impl Fn(&Vcpu) -> Estimate,
) -> Option<GivesBack> {
    let (mut all, mut of_vcpus) = (Estimate::exact(0.0), Vec::new());
    for vcpu in &measure.vcpus {
        let [low, mid, high] = ns_of(vcpu).each().map(|ns| ns.min(vcpu.sums.wall_ns() as f64));
        all = all + Estimate { low, mid, high };
        of_vcpus.push((vcpu.vm.clone(), vcpu.vcpu, mid as u64));
    }
    of_vcpus.retain(|(.., ns)| *ns > 0);
    let [low, share, high] = all.each().map(|ns| ns / measure.wall_ns.max(1) as f64);
    (share > 0.0).then(|| GivesBack { state, share, low, high, unit: "share of vCPU time".to_owned(), of_vcpus })
}

/// The same of the time of exits for which `wanted` holds: KVM spends it working for the level that has most of them.
pub(super) fn exits_give_back(
    measure: &Measures<'_>,
    wanted: impl Fn(&ReasonTotal) -> bool,
    ns_of: impl Fn(&Vcpu) -> u64,
) -> Option<GivesBack> {
    gives_back(measure, handling(measure, wanted)?, ns_of)
}

/// The state in which KVM works on exits for which `wanted` holds: for the level that takes most time with them.
pub(super) fn handling(measure: &Measures<'_>, wanted: impl Fn(&ReasonTotal) -> bool) -> Option<String> {
    let most = measure.reasons.iter().filter(|total| wanted(total)).max_by_key(|total| total.total_ns)?;
    Some(match most.level {
        Level::At(depth) => format!("handling_l{depth}"),
        Level::Below | Level::Unknown => "handling_unknown_level".to_owned(),
    })
}

/// What a share was taken from: how many events, and the time that they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub count: u64,
    /// The time behind them.
    pub ns: u64,
}

/// What a finding that is `high` or `medium` must have been seen in, at least: so many events, or so much time. A share of
/// a recording of 14 events in 3 ms is large by chance. Choices, not measurements (docs/read/flow.md, "Findings").
const ENOUGH_FOR_HIGH: Sample = Sample { count: 100, ns: 100_000_000 };
const ENOUGH_FOR_MEDIUM: Sample = Sample { count: 20, ns: 10_000_000 };

impl Sample {
    fn reaches(self, least: Sample) -> bool {
        self.count >= least.count || self.ns >= least.ns
    }
}

/// Severity of something that takes this share of the vCPUs' time, seen in `sample`. Below a hundredth nobody would notice
/// a change, however frequent it is: cheap exits are no evil.
pub(super) fn by_share(share: f64, sample: Sample) -> Severity {
    let by_share = match share {
        s if s >= 0.25 => Severity::High,
        s if s >= 0.10 => Severity::Medium,
        s if s >= 0.01 => Severity::Low,
        _ => Severity::Info,
    };
    let most = match sample {
        s if s.reaches(ENOUGH_FOR_HIGH) => Severity::High,
        s if s.reaches(ENOUGH_FOR_MEDIUM) => Severity::Medium,
        _ => Severity::Low,
    };
    by_share.min(most)
}
