//! Which threads beside the vCPUs work for a VM?
//!
//! A trace tells no processes, so names have to: a vhost worker is called after its owner's process (`vhost-4211`,
//! drivers/vhost/vhost.c, Linux 6.12), whose main thread therefore is thread 4211; QEMU calls the threads of its iothreads
//! `IO name` (iothread.c, QEMU 7.2). A thread that is called as vCPU threads are, or after QEMU's program, and runs no vCPU
//! is an emulator thread in libvirt's sense: any thread of the VMM that is neither vCPU nor iothread.

use super::tasks::Doing;
use crate::facts::ledger::model::PartFlow;
use base::timeline::LaneKind;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The most that are drawn: a host of a hundred VMs has thousands, and who looks for one finds it by narrowing the trace.
pub const MOST: usize = 128;

/// The threads of `flow` that work for VMs by their names: what they are, and what they are called.
pub fn of(flow: &PartFlow) -> Vec<(LaneKind, i32, &str)> {
    let vcpus: BTreeSet<i32> = flow.vcpus.iter().map(|vcpu| vcpu.tid).collect();
    let called: BTreeSet<&str> = flow.vcpus.iter().map(|vcpu| vcpu.comm.as_str()).collect();
    let main = |comm: &str| comm.strip_prefix("vhost-").and_then(|owner| owner.parse::<i32>().ok());
    let owners: BTreeSet<i32> = flow.comms.values().filter_map(|comm| main(comm)).collect();
    let kind = |tid: i32, comm: &str| {
        if comm.starts_with("vhost-") {
            Some(LaneKind::Vhost)
        } else if comm.starts_with("IO ") {
            Some(LaneKind::Iothread)
        } else if owners.contains(&tid) || called.contains(comm) || comm.starts_with("qemu-") {
            Some(LaneKind::Emulator)
        } else {
            None
        }
    };
    let others = flow.comms.iter().filter(|(tid, _)| !vcpus.contains(tid));
    others.filter_map(|(tid, comm)| Some((kind(*tid, comm)?, *tid, comm.as_str()))).collect()
}

/// Those of `workers` that the scheduler met, of which `ran_ns` says how long they ran, by kind, then by number. Of more than
/// [`MOST`] those that ran longest; and how many are left out.
pub fn longest(
    workers: Vec<(LaneKind, i32, &str)>,
    ran_ns: impl Fn(i32) -> Option<u64>,
) -> (Vec<(LaneKind, i32, &str)>, usize) {
    let met = workers.into_iter().filter_map(|worker| Some((Reverse(ran_ns(worker.1)?), worker)));
    let mut met: Vec<_> = met.collect();
    let left_out = met.len().saturating_sub(MOST);
    if left_out > 0 {
        met.sort_by_key(|(ran_ns, _)| *ran_ns);
        met.truncate(MOST);
    }
    let mut found: Vec<_> = met.into_iter().map(|(_, worker)| worker).collect();
    found.sort();
    (found, left_out)
}

/// Says how many are left out, if some are.
pub fn note(drawn: usize, left_out: usize) -> Option<String> {
    (left_out > 0)
        .then(|| format!("Of {} threads on the VMMs' side those {MOST} that ran longest are drawn.", drawn + left_out))
}

/// How long a task ran.
pub fn ran_ns(track: &[(u64, Doing)]) -> u64 {
    let running = track.windows(2).filter(|pair| matches!(pair[0].1, Doing::Running(_)));
    running.map(|pair| pair[1].0 - pair[0].0).sum()
}
