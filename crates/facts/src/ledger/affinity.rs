//! Where may threads run that waited for a CPU or were interrupted, and those that ran meanwhile, and how is the machine set up? No trace tells;
//! a snapshot of the same machine in the same recording does.

use super::model::{PartFlow, Vcpu};
use crate::machines::{HostSnapshots, Machines};
use host::Machine;
use std::collections::BTreeSet;
use walk::state::State;

/// Tasks that ran most while a vCPU waited: findings name no more of each.
const MOST_TASKS: usize = 3;

/// Gives each trace the last snapshot of its machine, and reads of it the threads that findings on pre-emption may name. Names
/// decide whether a thread id is still that thread's.
pub(super) fn add(machines: &Machines, parts: &mut [PartFlow]) {
    for part in parts {
        part.snapshot = machines.of_machine(&part.machine).and_then(HostSnapshots::last).cloned();
        let wanted = threads(part);
        let Some(snapshot) = part.snapshot.as_ref().filter(|_| !wanted.is_empty()) else { continue };
        let known = Machine::threads_with_ids(snapshot, &|tid| wanted.contains(&tid));
        let same = known.into_iter().filter_map(|thread| Some((thread.tid?, thread)));
        part.threads =
            same.filter(|(tid, thread)| part.comms.get(tid).is_none_or(|comm| *comm == thread.name)).collect();
    }
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
