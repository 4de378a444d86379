//! Which threads beside the vCPUs work for a VM?
//!
//! A trace tells no processes, so names have to: a vhost worker is called after its owner's process (`vhost-4211`,
//! drivers/vhost/vhost.c, Linux 6.12), whose main thread therefore is thread 4211; QEMU calls the threads of its iothreads
//! `IO name` (iothread.c, QEMU 7.2). A thread that is called as vCPU threads are, or after QEMU's program, and runs no vCPU
//! is an emulator thread in libvirt's sense: any thread of the VMM that is neither vCPU nor iothread.

use super::tasks::{Doing, Tasks};
use crate::flow::model::PartFlow;
use base::timeline::LaneKind;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The most that are drawn: a host of a hundred VMs has thousands, and who looks for one finds it by narrowing the trace.
pub const MOST: usize = 128;

/// The threads of `flow` that work for VMs and were met by the scheduler, by kind, then by number: what they are, and what
/// they are called. Of more than [`MOST`] those that ran longest; and how many are left out.
pub fn of<'a>(flow: &'a PartFlow, tasks: &Tasks) -> (Vec<(LaneKind, i32, &'a str)>, usize) {
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
    let others = flow.comms.iter().filter(|(tid, _)| tasks.by_tid.contains_key(tid) && !vcpus.contains(tid));
    let mut found: Vec<_> = others.filter_map(|(tid, comm)| Some((kind(*tid, comm)?, *tid, comm.as_str()))).collect();
    let left_out = found.len().saturating_sub(MOST);
    if left_out > 0 {
        found.sort_by_key(|(_, tid, _)| Reverse(ran_ns(tasks, *tid)));
        found.truncate(MOST);
    }
    found.sort();
    (found, left_out)
}

fn ran_ns(tasks: &Tasks, tid: i32) -> u64 {
    let track = tasks.by_tid.get(&tid).map_or(&[][..], Vec::as_slice);
    let running = track.windows(2).filter(|pair| matches!(pair[0].1, Doing::Running(_)));
    running.map(|pair| pair[1].0 - pair[0].0).sum()
}
