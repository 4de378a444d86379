//! The second vCPU of tests that need two: it runs its own loop, on a CPU of its own, until the test is over.
//!
//! The first vCPU is measured; what this one does is part of what is measured, and its exits are counted apart.

use crate::bench::stats::{Counted, Stats};
use base::CpuSet;
use kvm_ioctls::{VcpuExit, VcpuFd};
use lab::Error;
use lab::setting::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use vmm_sys_util::signal::{Killable, SIGRTMIN};

/// Between two signals to a vCPU that should stop, and how many it gets before it is given up.
const SIGNAL_EVERY: Duration = Duration::from_millis(1);
const MOST_SIGNALS: u32 = 2_000;

/// A vCPU at work. The watchdog's signal must have its handler by now.
pub(super) struct Partner {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    stats: Option<Stats>,
}

impl Partner {
    /// Lets `vcpu` run on `cpu`.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub(super) fn start(mut vcpu: VcpuFd, cpu: u32) -> Result<Self, Error> {
        let stats = Stats::of(&vcpu).ok();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("test guest".to_owned()).spawn(move || {
            // Where it may not move, it stays beside the first vCPU: slow, and the audit says so.
            let _ = thread::set_affinity(thread::own(), &CpuSet::one(cpu));
            while !told.load(Ordering::Relaxed) {
                match vcpu.run() {
                    Ok(VcpuExit::Intr | VcpuExit::Hlt) => {}
                    Err(error) if matches!(error.errno(), libc::EINTR | libc::EAGAIN) => {}
                    // The first vCPU waits for it then, until the watchdog comes.
                    Ok(_) | Err(_) => return,
                }
            }
        });
        let thread = thread.map_err(|error| Error::refused("no thread for a second vCPU", error))?;
        Ok(Self { stop, thread: Some(thread), stats })
    }

    /// KVM's counters of it, now.
    pub(super) fn counted(&self) -> Option<Counted> {
        self.stats.as_ref()?.read().ok()
    }
}

impl Drop for Partner {
    /// Stops it, and waits until it no longer uses the guest's memory.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return };
        for _ in 0..MOST_SIGNALS {
            if thread.is_finished() {
                let _ = thread.join();
                return;
            }
            let _ = thread.kill(SIGRTMIN());
            std::thread::sleep(SIGNAL_EVERY);
        }
    }
}
