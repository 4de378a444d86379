//! What is made to go wrong on purpose, so that the report can be held against it: it is to find the culprit by what was recorded, and is not
//! told of it. A parameter of [`Settings`](super::Settings) that tests set; no command has it.
//!
//! Nothing of this outlasts the lab: who is stopped goes on, who hogs a CPU ends, and both QEMUs end with this program in any case.

use super::network::Bed;
use super::qemu::{Qemu, Side};
use super::watched::mover;
use super::worker::Worker;
use crate::bench::priority;
use base::qmp::Event;
use lab::Error;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Culprit {
    StopSource,
    StopTarget,
    /// A thread takes the CPU on which the source's migration thread is held.
    Hog,
    /// A capability that both have to have is set on the source alone.
    Capability,
    KillSource,
    KillTarget,
    /// The guest is held between its stop and the switch-over.
    Dark,
    /// The target announces the guest to nobody.
    NoAnnounce,
    /// The link that carries the guest is down, and comes up again.
    LinkDown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// While all memory is sent for the first time.
    FirstPass,
    /// While what was dirtied since is sent.
    Passes,
    /// While the guest stands still.
    Dark,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injection {
    pub culprit: Culprit,
    pub phase: Phase,
    /// For how long, if it does not last.
    pub length: Duration,
}

/// Set on one side alone by [`Culprit::Capability`]: the source then opens connections that the target waits for in vain.
pub(super) const ONE_SIDED: &str = "multifd";
/// Held at by [`Phase::Dark`].
pub(super) const HOLDS: &str = "pause-before-switchover";

impl Injection {
    pub(super) fn capability(self) -> Option<&'static str> {
        match (self.culprit, self.phase) {
            (Culprit::Capability, _) => Some(ONE_SIDED),
            (_, Phase::Dark) => Some(HOLDS),
            _ => None,
        }
    }

    /// Whether its time begins with this event.
    pub(super) fn is_due(self, event: &Event) -> bool {
        let pass = event.data["pass"].as_u64();
        match self.phase {
            Phase::FirstPass => pass == Some(1),
            Phase::Passes => pass == Some(2),
            Phase::Dark => is_held(event),
        }
    }

    /// Does it; what lasts goes on in a thread.
    pub(super) fn begin(self, source: &Qemu, target: &Qemu, bed: Option<&Bed>) -> Result<Option<AtWork>, Error> {
        match self.culprit {
            Culprit::StopSource => stop(Side::Source, source, self.length).map(Some),
            Culprit::StopTarget => stop(Side::Target, target, self.length).map(Some),
            Culprit::Hog => hog(source, self.length).map(Some),
            Culprit::KillSource => signal(Side::Source, &process(Side::Source, source)?, Signal::KILL).map(|()| None),
            Culprit::KillTarget => signal(Side::Target, &process(Side::Target, target)?, Signal::KILL).map(|()| None),
            Culprit::LinkDown => {
                let bed = bed.ok_or_else(|| Error::Absent("without a network there is no link to cut".to_owned()))?;
                let join = bed.cut()?;
                at_work("kvmscope-cut", self.length, |_| std::thread::sleep(STEP), join).map(Some)
            }
            Culprit::Dark => Ok(Some(at_work("kvmscope-hold", self.length, |_| {}, || {})?)),
            // They are there before anything moves.
            Culprit::Capability | Culprit::NoAnnounce => Ok(None),
        }
    }
}

/// The guest is stopped, and waits for `migrate-continue`.
pub(super) fn is_held(event: &Event) -> bool {
    event.data["status"] == "pre-switchover"
}

/// What lasts for a while; it is over when this is dropped.
pub(super) type AtWork = Worker<()>;

/// Does `work` again and again for so long, then what is to be done `after`.
fn at_work(
    name: &str,
    length: Duration,
    work: impl Fn(&AtomicBool) + Send + 'static,
    after: impl FnOnce() + Send + 'static,
) -> Result<AtWork, Error> {
    Worker::start(Builder::new().name(name.to_owned()), move |ends| {
        let until = Instant::now() + length;
        while Instant::now() < until && !ends.load(Ordering::Relaxed) {
            work(ends);
        }
        after();
    })
}

/// A thread that waits looks so often whether it is to end.
const STEP: Duration = Duration::from_millis(1);

/// Its process, by something that never names another one.
fn process(side: Side, qemu: &Qemu) -> Result<OwnedFd, Error> {
    let refused = |errno| Error::Refused { what: format!("the {}", side.name()), said: format!("pidfd_open: {errno}") };
    pidfd_open(qemu.pid(), PidfdFlags::empty()).map_err(refused)
}

fn signal(side: Side, process: &OwnedFd, signal: Signal) -> Result<(), Error> {
    pidfd_send_signal(process, signal)
        .map_err(|errno| Error::Refused { what: format!("a signal to the {}", side.name()), said: errno.to_string() })
}

fn stop(side: Side, qemu: &Qemu, length: Duration) -> Result<AtWork, Error> {
    let process = process(side, qemu)?;
    signal(side, &process, Signal::STOP)?;
    let go_on = move || {
        let _ = pidfd_send_signal(&process, Signal::CONT);
    };
    at_work("kvmscope-stop", length, |_| std::thread::sleep(STEP), go_on)
}

/// Holds the source's migration thread on the first CPU that we may use, and takes that CPU: before ordinary threads where the kernel allows it.
fn hog(source: &Qemu, length: Duration) -> Result<AtWork, Error> {
    let tid = mover(source.id()).and_then(|tid| Pid::from_raw(i32::try_from(tid).ok()?));
    let tid =
        tid.ok_or_else(|| Error::Absent("the source has no thread that QEMU names as that of a migration".to_owned()))?;
    let io =
        |errno: rustix::io::Errno| Error::Refused { what: "the migration thread".to_owned(), said: errno.to_string() };
    let before = sched_getaffinity(Some(tid)).map_err(io)?;
    let first = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).unwrap_or_default();
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(Some(tid), &one).map_err(io)?;
    let begun = AtomicBool::new(false);
    let work = move |ends: &AtomicBool| {
        if !begun.swap(true, Ordering::Relaxed) {
            let _ = sched_setaffinity(None, &one);
            let _ = priority::fifo(priority::GUEST);
        }
        for _ in 0..SPINS {
            if ends.load(Ordering::Relaxed) {
                return;
            }
            std::hint::spin_loop();
        }
    };
    at_work("kvmscope-hog", length, work, move || {
        let _ = sched_setaffinity(Some(tid), &before);
    })
}

/// Some 100 us between two looks at the clock.
const SPINS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_phase_begins_with_its_event() {
        let event = |name: &str, data| Event { name: name.to_owned(), data, at_ns: None };
        let pass = |pass: u64| event("MIGRATION_PASS", json!({ "pass": pass }));
        let held = event("MIGRATION", json!({ "status": "pre-switchover" }));
        let due = |phase: Phase, event: &Event| {
            Injection { culprit: Culprit::Hog, phase, length: Duration::ZERO }.is_due(event)
        };
        let due_at = |phase| [&pass(1), &pass(2), &pass(3), &held].map(|event| due(phase, event));
        assert_eq!(due_at(Phase::FirstPass), [true, false, false, false]);
        assert_eq!(due_at(Phase::Passes), [false, true, false, false]);
        assert_eq!(due_at(Phase::Dark), [false, false, false, true]);
    }

    #[test]
    fn what_lasts_is_over_when_it_is_dropped() {
        let is_undone = Arc::new(AtomicBool::new(false));
        let undone = Arc::clone(&is_undone);
        let work = at_work(
            "test",
            Duration::from_secs(3_600),
            |_| std::thread::sleep(STEP),
            move || undone.store(true, Ordering::Relaxed),
        );
        let work = work.unwrap();
        assert!(!work.is_over());
        drop(work);
        assert!(is_undone.load(Ordering::Relaxed));
    }
}
