//! Where may threads run that waited for a CPU or were interrupted, and those that ran meanwhile, and how is the machine set up? No trace tells;
//! a snapshot of the same machine in the same recording does.

use super::model::{PartFlow, SpentQuota, Vcpu};
use crate::machines::{HostSnapshots, Machines};
use host::Machine;
use host::machine::{Quota, Thread};
use std::collections::BTreeSet;
use walk::state::State;

/// Tasks that ran most while a vCPU waited: findings name no more of each.
const MOST_TASKS: usize = 3;

/// Gives each trace the last snapshot of its machine, and reads of it the threads that findings on pre-emption may name. Names
/// decide whether a thread id is still that thread's.
pub(super) fn add(machines: &Machines, parts: &mut [PartFlow]) {
    for part in parts {
        let known = machines.of_machine(&part.machine);
        part.snapshot = known.and_then(HostSnapshots::last).cloned();
        let wanted = threads(part);
        let Some(known) = known.filter(|_| !wanted.is_empty()) else { continue };
        let machine = Machine::of_threads(&known.snapshots, &|tid| wanted.contains(&tid));
        let is_same = |tid: i32, thread: &Thread| part.comms.get(&tid).is_none_or(|comm| *comm == thread.name);
        let same = || {
            machine
                .threads
                .iter()
                .filter_map(|thread| Some((thread.tid?, thread)))
                .filter(|(tid, thread)| is_same(*tid, thread))
        };
        part.quotas = same().filter_map(|(tid, thread)| Some((tid, quota(&machine, thread)?))).collect();
        part.threads = same().map(|(tid, thread)| (tid, thread.clone())).collect();
    }
}

/// The quota that throttled a thread most between two samples, if one did.
fn quota(machine: &Machine, thread: &Thread) -> Option<SpentQuota> {
    let measured = |(path, quota): (&String, &Quota)| {
        let throttled = quota.measured.as_ref()?.value;
        (throttled.throttled > 0).then(|| SpentQuota { group: path.clone(), throttled })
    };
    machine.quotas_of(thread).filter_map(measured).max_by_key(|quota| quota.throttled.ns)
}

/// vCPUs that were pre-empted or interrupted, and who ran.
fn threads(part: &PartFlow) -> BTreeSet<i32> {
    let mut threads = BTreeSet::new();
    let lost = |vcpu: &&Vcpu| [State::Preempted, State::Irq].iter().any(|state| vcpu.sums.ns(*state) > 0);
    for vcpu in part.vcpus.iter().filter(lost) {
        threads.insert(vcpu.tid);
        let mut by: Vec<_> = vcpu.sums.preemptors.iter().collect();
        by.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.total_ns));
        threads.extend(by.into_iter().take(MOST_TASKS).filter_map(|(tid, _)| *tid));
    }
    threads
}
