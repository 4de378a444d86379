//! Threads that one listing shows on one CPU, and that together use it whole: the most that a list without waiting can tell.

use crate::placement::culprits::{cpus_named, name};
use crate::placement::model::Model;
use base::number::{list, percent};
use base::{CpuSet, Severity};
use facts::rule::Hit;
use host::machine::{Role, Thread};
use std::collections::BTreeMap;

/// A thread that runs less of a CPU than this shares it with nobody to speak of: our own limit.
pub(in crate::placement) const WORTH: f64 = 0.1;

/// From here on their CPU has nothing left; a larger sum than it has is of threads that moved, or of averages over their lives.
pub(in crate::placement) const WHOLE: f64 = 0.9;
const AT_MOST: f64 = 1.1;

/// CPUs that a vCPU or a polling thread and others were last seen on and use up, where nobody measured how long they waited.
pub(crate) fn on_one_cpu(model: &Model) -> Vec<Hit> {
    let machine = &model.machine;
    let of_packets = |thread: &Thread| thread.vm.is_some() || thread.role == Role::Pmd;
    let mut cpus: BTreeMap<u32, Vec<(&Thread, f64)>> = BTreeMap::new();
    for thread in machine.threads.iter().filter(|thread| thread.wait_share.is_none()) {
        let seen = thread.last_cpu.as_ref().zip(thread.run_share.as_ref());
        if let Some((cpu, run)) = seen.filter(|(_, run)| run.value >= WORTH) {
            cpus.entry(cpu.value).or_default().push((thread, run.value));
        }
    }
    let hit = |(cpu, mut threads): (u32, Vec<(&Thread, f64)>)| {
        let sum: f64 = threads.iter().map(|(_, run)| run).sum();
        let in_need = threads.iter().any(|(thread, _)| matches!(thread.role, Role::Vcpu(_) | Role::Pmd));
        let several = threads.iter().filter(|(thread, _)| of_packets(thread)).count() > 1;
        if !(in_need && several && sum >= WHOLE) {
            return None;
        }
        threads.sort_by(|a, b| b.1.total_cmp(&a.1));
        let said: Vec<String> =
            threads.iter().map(|(thread, run)| format!("{} with {}", name(thread), percent(*run))).collect();
        let at = cpus_named(&CpuSet::one(cpu));
        let (severity, title) = match sum < AT_MOST {
            true => (Severity::Medium, format!("{at} is used whole by {}", list(&said))),
            false => (
                Severity::Low,
                format!("{at} was the last of {}: {} of a CPU, so they wait or move", list(&said), percent(sum)),
            ),
        };
        let place = threads[0].0.last_cpu.as_ref().map_or("", |at| at.place.as_str());
        let mut hit = Hit::new(format!("cpu-{cpu}"), severity, title)
            .seen("each was last on this CPU when the list was made; how long they waited for it is unknown", place);
        for (thread, _) in &threads {
            match (thread.role, thread.tid) {
                (Role::Pmd, _) => hit.fix.push(
                    "ovs-vsctl get Open_vSwitch . other_config:pmd-cpu-mask   # which CPUs the switch polls on"
                        .to_owned(),
                ),
                (_, Some(tid)) => hit.fix.push(format!("taskset -cp {tid}   # which CPUs {} may run on", name(thread))),
                (_, None) => {}
            }
        }
        hit.fix.push("kvmscope check   # on that host: who waits, how long, and which CPUs are free".to_owned());
        Some(hit)
    };
    cpus.into_iter().filter_map(hit).collect()
}
