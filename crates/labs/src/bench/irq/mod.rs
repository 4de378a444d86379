//! How long does it take from an interrupt's edge outside a guest to the guest's handler?
//!
//! ```text
//! ringer        edge: counter, eventfd      edge        edge        edge            this computer's counter
//!                  \                          \            \          \
//! the handler       '--> counter, count        '--> ...     '----------'--> ...     the guest's, which is ahead by a constant
//! ```
//! That constant is bounded from both sides by questions before and after (`machine::page`), and its bounds are the error of every
//! length. KVM4NFV planned this test and never had it: "a periodic hardware interrupt of 1 ms" in its design document.

mod pairing;

pub use pairing::{Answered, Pairing};

use super::priority;
use super::probe::shared::COUNT;
use super::probe::{Probe, Seats, Task};
use crate::machine::page::Bounds;
use lab::Error;
use lab::setting::thread;
use lab::tracefs::tsc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vmm_sys_util::eventfd::EventFd;

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub seats: Seats,
    pub period: Duration,
    pub length: Duration,
    /// The guest sleeps between interrupts, instead of spinning.
    pub halts: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Interrupts {
    /// The threads that an interrupt goes through, in order: the one that rings first, that of the vCPU last.
    pub tids: Vec<i32>,
    pub edges: u64,
    pub pairing: Pairing,
    /// How far the guest's counter is ahead of this computer's, in ticks.
    pub ahead: Bounds,
}

/// More edges are not kept: 70 minutes of one each millisecond, and what `analysis` keeps of samples with times.
pub const MOST_EDGES: u64 = 1 << 22;

/// How often notes are taken: many times before the guest writes over them.
const EVERY: Duration = Duration::from_millis(50);
/// How long the last edges may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Edges in their order, for a reader beside the thread that rings.
struct Edges {
    at: Vec<AtomicU64>,
    count: AtomicU64,
}

impl Edges {
    fn with_room(most: u64) -> Self {
        Self { at: (0..most).map(|_| AtomicU64::new(0)).collect(), count: AtomicU64::new(0) }
    }

    /// Those from number `seen` on.
    fn since(&self, seen: u64) -> impl Iterator<Item = u64> {
        let count = self.count.load(Ordering::Acquire);
        self.at[seen as usize..count as usize].iter().map(|edge| edge.load(Ordering::Relaxed))
    }
}

impl Plan {
    /// How many edges fit.
    pub fn most_edges(&self) -> u64 {
        (self.length.as_nanos() / self.period.as_nanos().max(1)).try_into().unwrap_or(u64::MAX)
    }

    /// Measures until the time is over, or until `stop` is set.
    ///
    /// # Errors
    /// If the guest ends early or does not say what its counter shows, or if a thread may not run as it is to.
    pub fn run(&self, probe: &mut Probe, stop: &AtomicBool) -> Result<Interrupts, Error> {
        let before = probe.ahead()?;
        let edges = Edges::with_room(self.most_edges().min(MOST_EDGES));
        let mut pairing = Pairing::new(before);
        let mut seen = probe.shared.get(COUNT);
        probe.order(if self.halts { Task::Halt } else { Task::Spin })?;
        let interrupt = probe.interrupt.try_clone().map_err(|error| Error::refused("no second eventfd", error))?;
        let over = AtomicBool::new(false);
        let ringer = std::thread::scope(|scope| {
            let named = std::thread::Builder::new().name("ringer".to_owned());
            let ringer = named.spawn_scoped(scope, || self.ring(&interrupt, &edges, &over));
            let ringer = ringer.map_err(|error| Error::refused("no thread that rings", error))?;
            let mut heard = Ok(());
            while !ringer.is_finished() {
                std::thread::sleep(EVERY);
                pair(probe, &mut seen, &edges, &mut pairing);
                heard = heard.and_then(|()| probe.look());
                over.store(heard.is_err() || stop.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            let ringer =
                ringer.join().unwrap_or_else(|_| Err(Error::Died("the thread that rings has failed".to_owned())));
            heard.and(ringer)
        })?;
        let since = Instant::now();
        while pairing.waits() && since.elapsed() < PATIENCE {
            pair(probe, &mut seen, &edges, &mut pairing);
            std::thread::sleep(Duration::from_millis(1));
        }
        probe.order(Task::Spin)?;
        let ahead = before.around(probe.ahead()?);
        let tids = [vec![ringer], probe.tids()].concat();
        Ok(Interrupts { tids, edges: edges.count.load(Ordering::Acquire), pairing, ahead })
    }

    /// Rings as often as there is time and room; gives this thread's id.
    fn ring(&self, interrupt: &EventFd, edges: &Edges, over: &AtomicBool) -> Result<i32, Error> {
        thread::set_affinity(thread::own(), &self.seats.others)?;
        if self.seats.fifo {
            priority::fifo(priority::WATCHDOG)?;
        }
        let begun = Instant::now();
        let mut next = begun + self.period;
        for (number, edge) in (1..).zip(&edges.at) {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            if over.load(Ordering::Relaxed) || begun.elapsed() > self.length {
                break;
            }
            edge.store(tsc().unwrap_or(0), Ordering::Relaxed);
            edges.count.store(number, Ordering::Release);
            interrupt.write(1).map_err(|error| Error::refused("no event for the guest's interrupt", error))?;
            // Who is late does not hurry: edges in a row would be one interrupt.
            next = (next + self.period).max(Instant::now());
        }
        Ok(rustix::thread::gettid().as_raw_nonzero().get())
    }
}

/// Notes first: what answers an edge was noted behind it.
fn pair(probe: &Probe, seen: &mut u64, edges: &Edges, pairing: &mut Pairing) {
    let taken = probe.shared.take(seen);
    let now = tsc().unwrap_or(u64::MAX);
    pairing.edges(edges.since(pairing.rung));
    pairing.notes(&taken, now);
}

#[cfg(test)]
mod tests;
