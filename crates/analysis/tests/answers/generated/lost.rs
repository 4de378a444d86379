//! What vCPUs lost is what the ledger says, by the same culprits; the ledger is held against the truth.

use super::equal::ledger_of;
use generate::{Story, Target};
use kvmscope_analysis::facts::State;
use kvmscope_analysis::facts::ledger::model::{PartFlow, StretchSums, Vcpu};
use kvmscope_analysis::facts::losses::{By, Definition, LostIn, PartLosses, VcpuLosses};
use std::collections::BTreeMap;

const WHOLLY: [(LostIn, State); 6] = [
    (LostIn::Preempted, State::Preempted),
    (LostIn::Irq, State::Irq),
    (LostIn::Softirq, State::Softirq),
    (LostIn::Nmi, State::Nmi),
    (LostIn::WakeDelay, State::WakeDelay),
    (LostIn::Blocked, State::Blocked),
];

/// The same of a story with gaps. What tasks ran while a vCPU waited is then charged for waits of which the gap, if it is told late,
/// leaves less: here no more is charged than was waited.
pub(super) fn of_story(story: &Story, target: Target) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let (part, losses) = ledger_of(&story.write(target, directory.path()).unwrap());
    let charged = ["how often preempted", "preemptors"];
    let lines = otherwise(&part, &losses).into_iter();
    lines.filter(|line| charged.iter().all(|what| !line.contains(what))).collect()
}

/// Where losses are not what the ledger says.
pub(super) fn otherwise(part: &PartFlow, losses: &PartLosses) -> Vec<String> {
    let vcpus = part.vcpus.iter().zip(&losses.vcpus);
    let lines = vcpus.flat_map(|(vcpu, losses)| {
        of_vcpu(vcpu, losses).into_iter().map(|line| format!("thread {}: lost: {line}", vcpu.tid))
    });
    let missing = (part.vcpus.len() != losses.vcpus.len()).then(|| "losses of other vCPUs".to_owned());
    missing.into_iter().chain(lines).collect()
}

fn of_vcpu(vcpu: &Vcpu, losses: &VcpuLosses) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut differ = |what: &str, found: String, expected: String| {
        if found != expected {
            wrong.push(format!("{what} {found}, in the ledger {expected}"));
        }
    };
    let culprits = losses.lost.culprits();
    for (state, of_ledger) in WHOLLY {
        let ns: u64 = culprits.iter().filter(|(cause, _)| cause.state == state).map(|(_, sums)| sums.total_ns).sum();
        differ(state.name(), ns.to_string(), vcpu.sums.ns(of_ledger).to_string());
    }
    // Who ran while it was preempted: the rest, which the ledger has no row for, is unknown here.
    let preempted = culprits.iter().filter(|(cause, _)| cause.state == LostIn::Preempted);
    let known = preempted.filter_map(|(cause, sums)| match cause.by {
        By::Task(tid) => Some((tid, *sums)),
        // The ledger has the idle task for it.
        By::Throttled => Some((0, *sums)),
        By::Interrupt(_) | By::Exit(_) | By::Stopped | By::Unknown => None,
    });
    let known: BTreeMap<i32, StretchSums> = known.collect();
    let preemptors = || vcpu.sums.preemptors.iter().filter_map(|(tid, sums)| Some(((*tid)?, sums)));
    let counts: BTreeMap<i32, u64> = preemptors().map(|(tid, sums)| (tid, sums.count)).collect();
    let times: BTreeMap<i32, u64> =
        preemptors().filter(|(_, sums)| sums.total_ns > 0).map(|(tid, sums)| (tid, sums.total_ns)).collect();
    let found: BTreeMap<i32, u64> = known.iter().map(|(tid, sums)| (*tid, sums.count)).collect();
    differ("how often preempted", format!("{found:?}"), format!("{counts:?}"));
    let found: BTreeMap<i32, u64> =
        known.iter().filter(|(_, sums)| sums.total_ns > 0).map(|(tid, sums)| (*tid, sums.total_ns)).collect();
    differ("preemptors", format!("{found:?}"), format!("{times:?}"));
    let interrupts = culprits.iter().filter_map(|(cause, sums)| match cause.by {
        By::Interrupt(by) => Some((by, *sums)),
        By::Task(_) | By::Exit(_) | By::Throttled | By::Stopped | By::Unknown => None,
    });
    let interrupts: BTreeMap<_, _> = interrupts.collect();
    differ("interrupts", format!("{interrupts:?}"), format!("{:?}", vcpu.sums.host_interrupts));
    // Pieces and what is unknown do not overlap, and neither do exits.
    let lost = losses.stretches(Definition::Involuntary);
    differ("sum of pieces", losses.lost.total_ns().to_string(), lost.total_ns().to_string());
    let unknown_ns: u64 = losses.unknown.iter().map(base::Span::length_ns).sum();
    let most_ns = losses.at_most(&lost).total_ns();
    differ("lost or unknown", most_ns.to_string(), (lost.total_ns() + unknown_ns).to_string());
    let ordered =
        losses.lost.iter().zip(losses.lost.iter().skip(1)).all(|(one, next)| one.span.to_ns <= next.span.from_ns);
    differ("in order", ordered.to_string(), true.to_string());
    let inside = lost.spans().iter().all(|span| span.from_ns >= losses.span.from_ns && span.to_ns <= losses.span.to_ns);
    differ("inside", inside.to_string(), true.to_string());
    wrong
}
