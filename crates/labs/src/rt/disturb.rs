//! What is done to the guest on purpose, and when? Known truth, against which an attribution is held.
//!
//! ```text
//! | pause | burst | pause | burst | ...      of each burst both ends are kept, by this computer's counter
//! ```

use super::guest::Threads;
use super::load::spin;
use super::quota::Quota;
use super::{Disturbance, Environment, Seats};
use base::CpuSet;
use base::recording::Burst;
use lab::Error;
use lab::setting::thread;
use lab::tracefs::tsc;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often who rests looks whether it is over: seldom, because some rest on the vCPU's CPU.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A priority above every thread that is not critical to the kernel itself.
const FIFO: &str = "fifo:50";

/// What was done in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// What this computer did beside the guest.
    pub environment: Environment,
    /// What was done to the guest.
    pub disturbance: Disturbance,
    /// The CPU of the vCPU, and of those disturbances that need one.
    pub cpu: u32,
    pub vcpu_tid: u32,
    /// The name of the thread that did it, if anything was done.
    pub by: Option<String>,
    pub by_tid: Option<u32>,
    pub bursts: Vec<Burst>,
}

pub(super) struct Disturber<'a> {
    pub(super) kind: Disturbance,
    pub(super) seats: &'a Seats,
    pub(super) guest: Threads,
    /// The control group of a quota.
    pub(super) quota: Option<&'a Quota>,
}

impl Disturbance {
    pub(super) fn thread(self) -> Option<&'static str> {
        match self {
            Disturbance::None => None,
            Disturbance::Hog => Some("hog"),
            Disturbance::Fifo => Some("fifo-burst"),
            Disturbance::Quota => Some("quota"),
            Disturbance::Stop => Some("stopper"),
        }
    }

    /// How long a pause is, and a burst: several a second, and the guest gets on in between.
    fn rhythm(self) -> [Duration; 2] {
        let [pause_ms, burst_ms] = match self {
            Disturbance::None | Disturbance::Hog => [300, 100],
            Disturbance::Fifo => [60, 5],
            Disturbance::Quota => [400, 400],
            Disturbance::Stop => [300, 30],
        };
        [pause_ms, burst_ms].map(Duration::from_millis)
    }
}

impl Disturber<'_> {
    /// Disturbs again and again until it is `over`; gives this thread's id and the bursts.
    pub(super) fn run(&self, over: &AtomicBool) -> Result<(u32, Vec<Burst>), Error> {
        let own = thread::own();
        if let Disturbance::Hog | Disturbance::Fifo = self.kind {
            thread::set_affinity(own, &CpuSet::one(self.seats.vcpu))?;
        } else {
            thread::set_affinity(own, &self.seats.others)?;
        }
        if self.kind == Disturbance::Fifo {
            thread::set_policy(own, FIFO)?;
        }
        let [pause, length] = self.kind.rhythm();
        let mut bursts = Vec::new();
        while !rest(pause, over) {
            let from_tsc = tsc().unwrap_or(0);
            self.burst(length, over)?;
            bursts.push(Burst { from_tsc, to_tsc: tsc().unwrap_or(0) });
        }
        Ok((own, bursts))
    }

    fn burst(&self, length: Duration, over: &AtomicBool) -> Result<(), Error> {
        match self.kind {
            Disturbance::None => Ok(()),
            Disturbance::Hog | Disturbance::Fifo => {
                let since = Instant::now();
                while since.elapsed() < length {
                    spin();
                }
                Ok(())
            }
            Disturbance::Quota => self.quota.map_or(Ok(()), |quota| {
                quota.limit()?;
                rest(length, over);
                quota.lift()
            }),
            Disturbance::Stop => {
                self.signal(Signal::STOP)?;
                rest(length, over);
                self.signal(Signal::CONT)
            }
        }
    }

    fn signal(&self, signal: Signal) -> Result<(), Error> {
        let pid = i32::try_from(self.guest.pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Error::Malformed(format!("{} is no pid", self.guest.pid)))?;
        kill_process(pid, signal).map_err(|error| Error::refused("the guest's process takes no signal", error))
    }
}

/// Waits; true if it is over by then.
fn rest(length: Duration, over: &AtomicBool) -> bool {
    let until = Instant::now() + length;
    while !over.load(Ordering::Relaxed) {
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => break,
            left => std::thread::sleep(LOOK_EVERY.min(left)),
        }
    }
    over.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_process_goes_on_and_bursts_are_kept_in_order() {
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let seats = Seats::of(&thread::affinity(thread::own()).unwrap()).unwrap();
        let guest = Threads { pid: sleeper.id(), vcpu: sleeper.id() };
        let disturber = Disturber { kind: Disturbance::Stop, seats: &seats, guest, quota: None };
        let stat = format!("/proc/{}/stat", sleeper.id());
        let is_stopped = || std::fs::read_to_string(&stat).unwrap().contains(") T ");
        let over = AtomicBool::new(false);
        let (_, bursts) = std::thread::scope(|scope| {
            let done = scope.spawn(|| disturber.run(&over));
            testing::wait_for("the first burst", is_stopped);
            testing::wait_for("its end", || !is_stopped());
            testing::wait_for("the second burst", is_stopped);
            over.store(true, Ordering::Relaxed);
            done.join().unwrap().unwrap()
        });
        assert!(bursts.len() >= 2 && bursts.is_sorted_by_key(|burst| burst.from_tsc), "{bursts:?}");
        assert!(!is_stopped(), "it goes on");
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}
