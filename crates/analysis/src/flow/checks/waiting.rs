//! Checks of time in which a vCPU could have run: pre-emption.

use super::{Sample, by_share, seen};
use crate::flow::measure::Measures;
use crate::flow::tables::task_name;
use crate::shared::Hit;
use crate::shared::state::State;
use base::number::{duration, percent, thousands};
use base::{Change, Cost, CostKind};

/// Share of its time from which on a vCPU's waiting is worth a finding.
const PREEMPT_SHARE: f64 = 0.02;

/// vCPUs that stood ready, one finding each.
pub fn preempted(measure: &Measures<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for vcpu in &measure.vcpus {
        let waited_ns = vcpu.sums.ns(State::Preempted);
        let share = waited_ns as f64 / vcpu.sums.wall_ns().max(1) as f64;
        if share < PREEMPT_SHARE {
            continue;
        }
        let times: u64 = vcpu.sums.preemptors.values().map(|sums| sums.count).sum();
        let mut by: Vec<_> = vcpu.sums.preemptors.iter().filter(|(tid, _)| **tid != 0).collect();
        by.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.total_ns));
        let mut evidence = vec![seen(
            format!("stood ready {} of its time, in {} waits", percent(share), thousands(times)),
            "table vcpus",
        )];
        for (tid, sums) in by.iter().take(3) {
            let name = task_name(measure, **tid);
            let took = duration(sums.total_ns as f64);
            let longest = duration(sums.max_ns as f64);
            let text = format!(
                "{name} (tid {tid}) took the CPU {} times, ran {took}, longest {longest}",
                thousands(sums.count)
            );
            evidence.push(seen(text, "table preemptors"));
        }
        let Some((tid, sums)) = by.first() else { continue };
        let name = task_name(measure, **tid);
        let title = format!(
            "vCPU {} of {} waited {} of its time for a CPU, mostly for {name} (tid {tid})",
            vcpu.vcpu,
            vcpu.vm,
            percent(share)
        );
        let severity = by_share(share, Sample { count: times, ns: waited_ns });
        let others = other_cpus(sums.cpu, measure.part.cpus);
        let everywhere = format!("0-{}", measure.part.cpus.saturating_sub(1));
        let mut hit = Hit {
            evidence,
            cost: Cost::of(CostKind::Measured, share, "share of vCPU time"),
            ..Hit::new(format!("{}/{}", vcpu.vm, vcpu.vcpu), severity, title)
        };
        match others {
            Some(cpus) => {
                hit.changes.push(Change::TaskAffinity { thread: (**tid).into(), cpus, from: Some(everywhere) })
            }
            None => hit.fix.push("nproc   # one CPU for all: give the VM's host a second one".into()),
        }
        hits.push(hit);
    }
    hits
}

/// All CPUs but one, as a list for taskset; `None` if there is no other.
fn other_cpus(taken: u32, cpus: u32) -> Option<String> {
    let range = |from: u32, to: u32| match to.checked_sub(from) {
        None => None,
        Some(0) => Some(from.to_string()),
        Some(_) => Some(format!("{from}-{to}")),
    };
    let below = taken.checked_sub(1).and_then(|last| range(0, last));
    let above = range(taken + 1, cpus.saturating_sub(1));
    match (below, above) {
        (Some(below), Some(above)) => Some(format!("{below},{above}")),
        (below, above) => below.or(above),
    }
}
