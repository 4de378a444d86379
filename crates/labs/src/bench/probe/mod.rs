//! A guest of 64 KB that spins, sleeps or looks for gaps, and takes an interrupt from outside: on KVM, or in QEMU's TCG.
//!
//! ```text
//! this process           the guest
//! Shared  -- task -->    rom: spins | halts | notes gaps
//!         <- notes ---        the counter, whenever it has something to note
//!         -- asked -->        what does your counter show?   (machine::page)
//! EventFd ----------->   vector 0x40: KVM's irqfd, or QEMU's device ivshmem-doorbell
//! ```
//! Both run the same bytes (`rom`) and share the same memory (`shared`), so whoever measures does not care which it is, but for
//! the mark: what QEMU emulates has a true order and false times.

mod ivshmem;
mod kvm;
mod qemu;
mod rom;
pub(crate) mod shared;

use crate::machine::page::{Bounds, Phase};
use base::CpuSet;
use lab::Error;
use shared::{FAULT, Shared, TASK};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vmm_sys_util::eventfd::EventFd;

/// What the guest does. It answers questions but in `Halt` and in `Gaps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Spin = 0,
    /// Sleeps, and takes interrupts.
    Halt = 1,
    /// Reads its counter again and again, and notes readings that are far apart.
    Gaps = 2,
    End = 3,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seats {
    pub vcpu: u32,
    /// Those of everything else; where there is one CPU only, that one.
    pub others: CpuSet,
    /// By the real-time policy SCHED_FIFO.
    pub fifo: bool,
}

impl Seats {
    /// The vCPU on `vcpu`, all else on the others of `cpus`.
    pub fn of(cpus: &CpuSet, vcpu: u32, fifo: bool) -> Self {
        let others: CpuSet = cpus.iter().filter(|cpu| *cpu != vcpu).collect();
        Self { vcpu, others: if others.is_empty() { cpus.clone() } else { others }, fifo }
    }
}

/// A guest that is ready. Dropping it ends it.
pub struct Probe {
    // Fields are dropped in this order: what runs the guest first.
    runs: Runs,
    pub(super) shared: Arc<Shared>,
    pub(super) interrupt: EventFd,
}

enum Runs {
    Kvm(kvm::Running),
    Qemu(qemu::Running),
}

/// A guest that takes longer to become ready does not run.
const TO_BEGIN: Duration = Duration::from_secs(20);
/// How often it is looked at until then.
const LOOK_EVERY: Duration = Duration::from_millis(2);

impl Probe {
    /// A guest on KVM that runs for `length` at most.
    ///
    /// # Errors
    /// If there is no KVM, if it does not take interrupts from an eventfd, or if the guest does not become ready.
    pub fn on_kvm(device: &Path, seats: &Seats, length: Duration) -> Result<Self, Error> {
        let (shared, interrupt) = parts()?;
        let runs = Runs::Kvm(kvm::Running::start(device, seats, length, &shared, &interrupt)?);
        Self { runs, shared, interrupt }.ready()
    }

    /// A guest that QEMU emulates, with its files in `scratch`. QEMU ends with the thread that calls this.
    ///
    /// # Errors
    /// If QEMU is not installed, or if the guest does not become ready.
    pub fn in_qemu(scratch: &Path, seats: &Seats) -> Result<Self, Error> {
        let (shared, interrupt) = parts()?;
        let runs = Runs::Qemu(qemu::Running::start(scratch, &shared, &interrupt)?);
        let mut probe = Self { runs, shared, interrupt }.ready()?;
        if let Runs::Qemu(running) = &mut probe.runs {
            running.seat(seats)?;
        }
        Ok(probe)
    }

    fn ready(mut self) -> Result<Self, Error> {
        let since = Instant::now();
        while !self.shared.page.has_reached(Phase::Ready) {
            self.look()?;
            if since.elapsed() > TO_BEGIN {
                return Err(Error::TimedOut(format!("the guest was not ready after {} s", TO_BEGIN.as_secs())));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(self)
    }

    /// True if QEMU emulates it.
    pub fn is_emulated(&self) -> bool {
        matches!(self.runs, Runs::Qemu(_))
    }

    /// The threads that an interrupt goes through, in order: that of the vCPU is last.
    pub fn tids(&self) -> Vec<i32> {
        match &self.runs {
            Runs::Kvm(running) => vec![running.tid],
            Runs::Qemu(running) => running.tids(),
        }
    }

    /// Looks whether it still runs.
    ///
    /// # Errors
    /// If it does not.
    pub fn look(&mut self) -> Result<(), Error> {
        if self.shared.get(FAULT) != 0 {
            return Err(Error::Died("the guest received an interrupt or an exception that nothing sent".to_owned()));
        }
        match &mut self.runs {
            Runs::Kvm(running) => running.look(),
            Runs::Qemu(running) => running.look(),
        }
    }

    /// Has it do something else; one that sleeps is woken by an interrupt, which it notes.
    ///
    /// # Errors
    /// If the interrupt is refused.
    pub fn order(&self, task: Task) -> Result<(), Error> {
        let before = self.shared.get(TASK);
        self.shared.set(TASK, task as u64);
        if before == Task::Halt as u64 { self.ring() } else { Ok(()) }
    }

    /// The edge.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn ring(&self) -> Result<(), Error> {
        self.interrupt.write(1).map_err(|error| Error::refused("no event for the guest's interrupt", error))
    }

    /// How many ticks its counter is ahead of this processor's.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn ahead(&self) -> Result<Bounds, Error> {
        self.shared.page.ask()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // What refuses this ends at its limit.
        let _ = self.order(Task::End);
        match &mut self.runs {
            Runs::Kvm(running) => running.end(),
            Runs::Qemu(running) => running.end(),
        }
    }
}

fn parts() -> Result<(Arc<Shared>, EventFd), Error> {
    let interrupt = EventFd::new(libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
    let interrupt = interrupt.map_err(|error| Error::refused("no eventfd for an interrupt", error))?;
    Ok((Arc::new(Shared::new()?), interrupt))
}

#[cfg(test)]
mod tests;
