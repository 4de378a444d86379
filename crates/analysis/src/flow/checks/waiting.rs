//! Checks of time in which a vCPU could have run: pre-emption.

use super::{Sample, by_share, seen};
use crate::flow::measure::Measures;
use crate::flow::model::Vcpu;
use crate::flow::tables::task_name;
use crate::shared::Hit;
use crate::shared::state::State;
use base::number::{duration, many, percent};
use base::{Cost, CostKind};
use std::cmp::Reverse;

/// Share of its time from which on a vCPU's waiting is worth a finding.
const PREEMPT_SHARE: f64 = 0.02;

/// Programs that record: what they take from a vCPU ends with the recording.
const RECORDERS: &[&str] = &["kvmscope", "trace-cmd", "perf", "lttng-consumerd", "lttng-sessiond"];

/// Kernel threads that are bound to one CPU each (kernel/smpboot.c, kernel/workqueue.c, Linux 6.12).
const BOUND: &[&str] = &["ksoftirqd/", "migration/", "kworker/", "rcuc/", "cpuhp/", "irq_work/", "idle_inject/"];

/// vCPUs that were runnable and did not run, one finding each.
pub fn preempted(measure: &Measures<'_>) -> Vec<Hit> {
    measure.vcpus.iter().filter_map(|vcpu| waited(measure, vcpu)).collect()
}

fn waited(measure: &Measures<'_>, vcpu: &Vcpu) -> Option<Hit> {
    let waited_ns = vcpu.sums.ns(State::Preempted);
    let share = waited_ns as f64 / vcpu.sums.wall_ns().max(1) as f64;
    if share < PREEMPT_SHARE {
        return None;
    }
    let waits: u64 = vcpu.sums.preemptors.values().map(|sums| sums.count).sum();
    let mut by: Vec<_> = vcpu.sums.preemptors.iter().filter(|(tid, _)| **tid != Some(0)).collect();
    by.sort_by_key(|(_, sums)| Reverse(sums.total_ns));
    let (most, sums) = by.first().copied()?;
    let mut evidence =
        vec![seen(format!("runnable for {} of its time, in {}", percent(share), many(waits, "wait")), "table vcpus")];
    for (tid, sums) in by.iter().take(3) {
        let (ran, longest) = (duration(sums.total_ns as f64), duration(sums.max_ns as f64));
        let text = match tid {
            Some(tid) => format!(
                "{} (tid {tid}) took the CPU {}, ran {ran}, longest {longest}",
                task_name(measure, *tid),
                many(sums.count, "time")
            ),
            None => format!("unknown tasks ran {ran}: the switches between them are not in the trace"),
        };
        evidence.push(seen(text, "table preemptors"));
    }
    let most_of_it = 2 * sums.total_ns > waited_ns;
    let whom = match most {
        Some(tid) => {
            let how = if most_of_it { "mostly" } else { "longest" };
            format!("{how} for {} (tid {tid})", task_name(measure, *tid))
        }
        None => "and the trace does not show for whom".to_owned(),
    };
    let title = format!("vCPU {} of {} waited {} of its time for a CPU, {whom}", vcpu.vcpu, vcpu.vm, percent(share));
    let severity = by_share(share, Sample { count: waits, ns: waited_ns });
    Some(Hit {
        evidence,
        cost: Cost::of(CostKind::Measured, share, "share of vCPU time"),
        fix: most.map_or_else(Vec::new, |tid| away(measure, tid, sums.cpu, vcpu)),
        ..Hit::new(format!("{}/{}", vcpu.vm, vcpu.vcpu), severity, title)
    })
}

/// How to get `tid` and the vCPU off one CPU. A trace holds nobody's affinity: what to set, and what the undo is, shows
/// only once it has been read.
fn away(measure: &Measures<'_>, tid: i32, cpu: u32, vcpu: &Vcpu) -> Vec<String> {
    let name = task_name(measure, tid);
    if RECORDERS.contains(&name.as_str()) || measure.part.gone.contains(&tid) {
        return Vec::new();
    }
    let (tid, name) = if BOUND.iter().any(|bound| name.starts_with(bound)) {
        (vcpu.tid, format!("vCPU {}", vcpu.vcpu))
    } else {
        (tid, name)
    };
    vec![format!(
        "taskset -cp {tid}   # the CPUs of {name} now, which are the undo; then the same with a list without CPU {cpu}"
    )]
}
