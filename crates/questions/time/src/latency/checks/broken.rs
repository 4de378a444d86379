//! Goals that are broken: the worst moment, and what takes its main culprits away from the vCPU.

use super::super::goals::Verdicts;
use super::super::measure::Named;
use super::seen;
use base::number::{duration, many, percent};
use base::{About, Change, Cost, CostKind, Evidence, Severity, Span};
use facts::Case;
use facts::apart::{affinity, apart, ends_by_itself, interrupt_leaves};
use facts::budget::{Alone, Verdict, exact};
use facts::ledger::model::{PartFlow, Vcpu};
use facts::losses::LostIn;
use facts::rule::Hit;
use host::machine::Machine;
use walk::state::State;

/// Causes, and other vCPUs, that a finding lists; tables have the others.
const MOST_LISTED: usize = 5;

/// Who took less of the worst moment, and breaks the goal never alone, is not moved: our own limit.
const WORTH_MOVING: f64 = 0.1;

/// A finding for each goal that fails.
pub(crate) fn broken(goals: &[Verdicts<'_>]) -> Vec<Hit> {
    goals.iter().filter(|verdicts| verdicts.verdict() == Verdict::Fail).map(hit).collect()
}

fn hit(verdicts: &Verdicts<'_>) -> Hit {
    let worst = verdicts.worst();
    let mut hit = Hit::new(&verdicts.goal.id, Severity::High, verdicts.title());
    if let Some(bounds) = worst.judgement.bounds {
        hit.cost = Cost::of(CostKind::Measured, bounds.value_ns as f64, unit(verdicts));
        let (low, high) = (bounds.low_ns as f64, bounds.high_ns.map(|high_ns| high_ns as f64));
        (hit.cost.low, hit.cost.high) = (Some(low), high);
    }
    hit.evidence.push(moment(verdicts));
    let of_trace = worst.whose.place.map(|(part, vcpu)| (&verdicts.case.ledger().parts[part], vcpu));
    if let Some((part, vcpu)) = of_trace {
        hit.level = Some(part.level);
        culprits(verdicts, part, &part.vcpus[vcpu], &mut hit);
    }
    let others = verdicts.all.iter().skip(1).filter(|judged| judged.judgement.verdict == Verdict::Fail);
    hit.evidence.extend(others.take(MOST_LISTED).filter_map(|judged| {
        let (vm, vcpu, bounds) = (judged.whose.vm.as_ref()?, judged.whose.vcpu?, judged.judgement.bounds?);
        Some(seen(verdicts, judged, format!("vCPU {vcpu} of {vm}: {}", exact(bounds.value_ns))))
    }));
    hit
}

fn unit(verdicts: &Verdicts<'_>) -> String {
    let goal = verdicts.goal;
    match goal.window_ns {
        Some(window_ns) => format!("ns in a window of {}", exact(window_ns)),
        None if goal.metric.is_of_losses() => "ns without a break".to_owned(),
        None => format!("ns {}", goal.stat.name()),
    }
}

/// The worst moment, whose place opens it on the timeline.
fn moment(verdicts: &Verdicts<'_>) -> Evidence {
    let worst = verdicts.worst();
    let what: Vec<String> = [verdicts.between(), verdicts.samples()].into_iter().flatten().collect();
    let exactly = || {
        worst.judgement.bounds.map_or_else(|| verdicts.title(), |bounds| format!("exactly {}", exact(bounds.value_ns)))
    };
    let what = if what.is_empty() { exactly() } else { what.join("; ") };
    let seen = seen(verdicts, worst, what);
    let span = worst.at_ns.zip(worst.judgement.worst);
    let span = span.map(|(from_ns, own)| About::Span(Span { from_ns, to_ns: from_ns + own.length_ns() }));
    seen.about(span)
}

/// Who took the time in the worst moment, and what keeps them from doing so again.
fn culprits(verdicts: &Verdicts<'_>, part: &PartFlow, vcpu: &Vcpu, hit: &mut Hit) {
    let own = vcpu.tid;
    if let Some(quota) = part.quotas.get(&own) {
        let throttled = percent(quota.throttled.share());
        let what = format!(
            "the CPU quota of {} throttled the vCPU in {throttled} of periods, up to {} of what it waited: raise it first",
            quota.group,
            duration(quota.throttled.ns.min(vcpu.sums.guests_ns(State::Preempted)) as f64)
        );
        hit.evidence.push(Evidence::new(what, "cpu.stat, two snapshots"));
    }
    let of_vcpu = |evidence: Evidence| match (&verdicts.worst().whose.vm, verdicts.worst().whose.vcpu) {
        (Some(vm), Some(vcpu)) => evidence.key("vm", vm.as_str()).key("vcpu", u64::from(vcpu)),
        _ => evidence,
    };
    for (named, what, is_worth) in ranked(verdicts) {
        let seen = of_vcpu(Evidence::in_table(what, "latency.culprits")).key("by", named.by.as_str());
        let thread = named.by_tid.filter(|tid| *tid != 0);
        hit.evidence.push(seen.about(thread.map(|tid| About::Thread { tid })));
        if !is_worth {
            continue;
        }
        let moved = named.irq.and_then(|irq| interrupt_moved(verdicts.case, part, own, irq));
        hit.changes.extend(moved.filter(|change| !hit.changes.contains(change)));
        let waited = matches!(named.state, LostIn::Preempted | LostIn::WakeDelay);
        let Some(rival) = thread.filter(|tid| waited && !ends_by_itself(part, *tid)) else { continue };
        if let (Some(own_cpus), Some(cpus)) = (affinity(part, own), affinity(part, rival)) {
            hit.changes
                .extend(apart(part, (own, own_cpus), (rival, cpus)).filter(|change| !hit.changes.contains(change)));
        }
    }
    if hit.changes.is_empty() {
        hit.fix.push("kvmscope check   # shows which threads share CPUs with vCPUs".to_owned());
    }
}

/// Who breaks the goal most often over the recording, and who took most of the worst moment, with what is said of each, and whether
/// its going would help.
fn ranked(verdicts: &Verdicts<'_>) -> Vec<(Named, String, bool)> {
    let worst = verdicts.causes();
    let all_ns: u64 = worst.iter().map(|(_, ns)| *ns).sum();
    let in_worst = |named: &Named| worst.iter().find(|(known, _)| known == named).map(|(_, ns)| exact(*ns));
    let mut all: Vec<(Named, String, bool)> = Vec::new();
    for (named, alone) in verdicts.alone().into_iter().take(MOST_LISTED) {
        let over = match (alone, verdicts.goal.window_ns) {
            (Alone::Windows(share), Some(window_ns)) => {
                format!("breaks {} of all windows of {} alone", percent(share), exact(window_ns))
            }
            (Alone::Windows(share), None) => format!("breaks {} of all windows alone", percent(share)),
            (Alone::Losses(count), _) => format!("is over the limit {} by itself", many(count, "time")),
        };
        let took = in_worst(&named).map_or(String::new(), |ns| format!(", and took {ns} in the worst moment"));
        let what = format!("{} {over}{took}", named.phrase());
        all.push((named, what, true));
    }
    for (named, ns) in worst.iter().take(MOST_LISTED) {
        if !all.iter().any(|(known, ..)| known == named) {
            let is_worth = *ns as f64 >= WORTH_MOVING * all_ns as f64;
            all.push((named.clone(), format!("{} {}", exact(*ns), named.phrase()), is_worth));
        }
    }
    all.truncate(MOST_LISTED);
    all
}

/// A device's interrupt leaves the CPUs of the vCPU that it interrupted, where a snapshot says which both may use.
fn interrupt_moved(case: &Case, part: &PartFlow, own: i32, irq: u32) -> Option<Change> {
    let own_cpus = affinity(part, own)?;
    let machine = Machine::of_snapshots(&case.machines().of_machine(&part.machine)?.snapshots);
    interrupt_leaves(machine.irqs.iter().find(|one| one.number == irq)?, own_cpus)
}
