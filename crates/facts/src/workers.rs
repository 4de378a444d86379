//! Which threads beside the vCPUs work for a VM?
//!
//! A trace tells no processes, so names have to: a vhost worker is called after its owner's process (`vhost-4211`,
//! drivers/vhost/vhost.c, Linux 6.12), whose main thread therefore is thread 4211; QEMU calls the threads of its iothreads
//! `IO name` (iothread.c, QEMU 7.2). A thread that is called as vCPU threads are, or after QEMU's program, and runs no vCPU
//! is an emulator thread in libvirt's sense: any thread of the VMM that is neither vCPU nor iothread.

use super::ledger::model::PartFlow;
use base::timeline::LaneKind;
use std::collections::BTreeSet;

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
