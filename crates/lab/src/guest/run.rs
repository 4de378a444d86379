//! Runs a guest's vCPU under the watchdog, and counts why it came back.

use super::programs::END_PORT;
use super::seen::{Ended, Exit};
use super::watchdog::watched;
use crate::Error;
use kvm_ioctls::{VcpuExit, VcpuFd};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What userspace saw of a run.
pub(super) struct Seen {
    pub exits: BTreeMap<Exit, u64>,
    pub ended: Ended,
}

/// Runs the vCPU until its program ends, fails, or has taken longer than `limit`. `memory` is kept until then.
pub(super) fn run<M: Send + 'static>(mut vcpu: VcpuFd, memory: M, limit: Duration) -> Result<Seen, Error> {
    let seen = watched(limit, move |stop| {
        let seen = until_end(&mut vcpu, stop);
        drop((vcpu, memory));
        seen
    })?;
    Ok(seen.unwrap_or_else(|| Seen { exits: BTreeMap::new(), ended: Ended::Stuck }))
}

/// Enters the guest again and again, and counts why it came back.
fn until_end(vcpu: &mut VcpuFd, stop: &AtomicBool) -> Seen {
    let mut exits = BTreeMap::new();
    let ended = loop {
        if stop.load(Ordering::Relaxed) {
            break Ended::Stuck;
        }
        let left = match vcpu.run() {
            Ok(left) => left,
            Err(error) if error.errno() == libc::EINTR || error.errno() == libc::EAGAIN => continue,
            Err(error) => break Ended::Failed(format!("KVM_RUN: {error}")),
        };
        let exit = Exit::from(&left);
        match left {
            VcpuExit::IoOut(END_PORT, _) => break Ended::Whole,
            VcpuExit::IoIn(_, data) | VcpuExit::MmioRead(_, data) => data.fill(0),
            VcpuExit::IoOut(..) | VcpuExit::MmioWrite(..) | VcpuExit::Hlt | VcpuExit::Intr => {}
            VcpuExit::InternalError => {
                break Ended::Failed("KVM could not emulate an instruction (internal error)".to_owned());
            }
            other => break Ended::Failed(format!("{other:?}")),
        }
        *exits.entry(exit).or_insert(0) += 1;
    };
    Seen { exits, ended }
}
