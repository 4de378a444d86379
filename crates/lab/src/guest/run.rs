//! Runs a guest's vCPU in a thread of its own, under a watchdog.
//!
//! ```text
//! caller   waits for the end, at most `limit` --late--> sets `stop`, signals until the thread answers
//! thread   KVM_RUN, count the exit, again            --EINTR--> sees `stop`, returns
//! ```
//! The signal repeats, because one that arrives between looking at `stop` and entering the guest does nothing.

use super::programs::END_PORT;
use super::seen::{Ended, Exit};
use crate::Error;
use kvm_ioctls::{VcpuExit, VcpuFd};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use vmm_sys_util::signal::{Killable, SIGRTMIN, register_signal_handler};

/// Between two signals to a thread that should stop.
const SIGNAL_EVERY: Duration = Duration::from_millis(5);

/// After so many signals a thread is given up: KVM itself hangs, and no signal ends that.
const MOST_SIGNALS: u32 = 400;

/// What userspace saw of a run.
pub(super) struct Seen {
    pub exits: BTreeMap<Exit, u64>,
    pub ended: Ended,
}

/// Runs the vCPU until its program ends, fails, or has taken longer than `limit`. `memory` is kept until then.
pub(super) fn run<M: Send + 'static>(mut vcpu: VcpuFd, memory: M, limit: Duration) -> Result<Seen, Error> {
    extern "C" fn only_interrupt(_: i32, _: *mut libc::siginfo_t, _: *mut std::ffi::c_void) {}
    let refused = |what: &str, error: &dyn std::fmt::Display| Error::Unable(format!("{what}: {error}"));
    register_signal_handler(SIGRTMIN(), only_interrupt).map_err(|error| refused("no watchdog signal", &error))?;
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let (tell, ends) = channel();
    let vcpu_thread = std::thread::Builder::new().name("test guest".to_owned()).spawn(move || {
        let seen = until_end(&mut vcpu, &told);
        drop((vcpu, memory));
        let _ = tell.send(()); // whoever gave this thread up does not listen
        seen
    });
    let vcpu_thread = vcpu_thread.map_err(|error| refused("no thread for the test guest's vCPU", &error))?;
    if ends.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
        stop.store(true, Ordering::Relaxed);
        let stopped = (0..MOST_SIGNALS).any(|_| {
            let _ = vcpu_thread.kill(SIGRTMIN()); // one that has just ended takes none, and says so by itself
            ends.recv_timeout(SIGNAL_EVERY).is_ok()
        });
        if !stopped {
            return Ok(Seen { exits: BTreeMap::new(), ended: Ended::Stuck });
        }
    }
    vcpu_thread.join().map_err(|_| Error::Unable("the test guest's thread panicked; please report it".to_owned()))
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
