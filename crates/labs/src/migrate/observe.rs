//! When did the guest itself stop and go on? Seen from outside, in its memory on both sides.
//!
//! ```text
//! source.memory  .. 41 42 43 43 43 43 43 43      the last beat there
//! target.memory  .. --  0 40 40 43 43 44 45      what arrives is no beat; the first count above the source's is
//! ```
//! Both memories are files that are shared with their QEMU, which makes the first pass slower: a run of which the time in all matters
//! is made without. The guest's own clock says nothing here: it may stand still together with the guest.

use super::sector::HEARTBEAT_AT;
use super::worker::Worker;
use crate::bench::priority;
use base::heartbeat::{Heartbeat, SCHEMA};
use lab::Error;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Between two looks: a hundredth of the shortest dark time that is asked for (3 ms) is 30 us; the kernel adds its slack of 50 us
/// (timerslack_ns in proc(5)), and the guest has the CPU meanwhile.
const LOOK_EVERY: Duration = Duration::from_micros(20);

#[derive(Clone, Copy)]
struct Look {
    at_ns: u64,
    source: u32,
    target: u32,
}

#[derive(Default)]
struct Seen {
    before_ns: Option<u64>,
    source: Option<u32>,
    last_on_source_ns: Option<u64>,
    gap_ns: u64,
    first_on_target_ns: Option<u64>,
}

impl Seen {
    fn take(&mut self, look: Look) {
        let gap_ns = self.before_ns.map_or(0, |before_ns| look.at_ns.saturating_sub(before_ns));
        let is_beat = self.source.is_some_and(|before| before != look.source);
        // What was before the last beat on the source does not matter.
        self.gap_ns = if is_beat { gap_ns } else { self.gap_ns.max(gap_ns) };
        if is_beat {
            self.last_on_source_ns = Some(look.at_ns);
        }
        let ahead = look.target.wrapping_sub(look.source);
        if self.last_on_source_ns.is_some() && (1..u32::MAX / 2).contains(&ahead) {
            self.first_on_target_ns = Some(look.at_ns);
        }
        (self.before_ns, self.source) = (Some(look.at_ns), Some(look.source));
    }

    fn heartbeat(&self, period: Duration) -> Option<Heartbeat> {
        Some(Heartbeat {
            schema: SCHEMA.to_owned(),
            last_on_source_ns: self.last_on_source_ns?,
            first_on_target_ns: self.first_on_target_ns?,
            poller_max_gap_ns: self.gap_ns,
            period_ns: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
        })
    }
}

/// A thread that looks until it has seen the first beat on the target, or this is dropped.
pub(super) struct Observer(Worker<std::io::Result<Option<Heartbeat>>>);

impl Observer {
    /// Looks at both memories from now on. `period` is that of the guest's beats.
    ///
    /// # Errors
    /// If one of them is not there.
    pub(super) fn start(source: &Path, target: &Path, period: Duration, clock_ns: fn() -> u64) -> Result<Self, Error> {
        let open = |path: &Path| File::open(path).map_err(|error| Error::io(path, error));
        let (source, target) = (open(source)?, open(target)?);
        let observe = move |ends: &AtomicBool| {
            pin(priority::GUEST);
            let mut seen = Seen::default();
            while seen.first_on_target_ns.is_none() && !ends.load(Ordering::Relaxed) {
                // The source second: once the target has beaten, that count does not change any more.
                let (target, source) = (beats(&target)?, beats(&source)?);
                seen.take(Look { at_ns: clock_ns(), source, target });
                std::thread::sleep(LOOK_EVERY);
            }
            Ok(seen.heartbeat(period))
        };
        Worker::start(Builder::new(), observe).map(Self)
    }

    /// What it saw; `None` if the guest did not go on within `patience`.
    pub(super) fn end(self, patience: Duration) -> Option<Heartbeat> {
        let until = Instant::now() + patience;
        while !self.0.is_over() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.0.end()?.ok()?
    }
}

/// Keeps this thread on the last CPU that it may use, and before the ordinary threads there: it sleeps for most of the time. Where the
/// kernel refuses either, it looks all the same, and its gaps tell.
pub(super) fn pin(priority: i32) {
    let _ = priority::fifo(priority);
    let Ok(may) = sched_getaffinity(None) else { return };
    if let Some(last) = (0..CpuSet::MAX_CPU).rev().find(|cpu| may.is_set(*cpu)) {
        let mut one = CpuSet::new();
        one.set(last);
        let _ = sched_setaffinity(None, &one);
    }
}

/// What the guest has done so far: its writes, and the packets that it has received, with which it may be busy when it is stopped or goes on.
/// Read, not mapped: reading a hole through a mapping takes memory for it.
fn beats(memory: &File) -> std::io::Result<u32> {
    let mut words = [0; 12];
    memory.read_exact_at(&mut words, u64::from(HEARTBEAT_AT))?;
    Ok(summed(words))
}

fn summed(words: [u8; 12]) -> u32 {
    let word = |at: usize| u32::from_le_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]]);
    word(0).wrapping_add(word(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(looks: &[(u64, u32, u32)]) -> Option<(u64, u64, u64)> {
        let mut seen = Seen::default();
        looks.iter().for_each(|(at_ns, source, target)| {
            seen.take(Look { at_ns: *at_ns, source: *source, target: *target });
        });
        let heartbeat = seen.heartbeat(Duration::from_nanos(7))?;
        Some((heartbeat.last_on_source_ns, heartbeat.first_on_target_ns, heartbeat.poller_max_gap_ns))
    }

    #[test]
    fn what_arrives_is_no_beat_and_gaps_before_the_last_beat_do_not_matter() {
        let moved = [(100, 41, 0), (900, 42, 0), (910, 43, 40), (925, 43, 40), (935, 43, 43), (945, 43, 44)];
        assert_eq!(seen(&moved), Some((910, 945, 15)));
        assert_eq!(seen(&moved[..5]), None, "the page has come, the guest does not go on");
        assert_eq!(seen(&[(1, 5, 0), (2, 5, 6)]), None, "a source that never beat was none");
    }

    #[test]
    fn a_packet_is_a_beat_and_a_sweep_is_none() {
        assert_eq!(summed([1, 1, 0, 0, 9, 9, 9, 9, 2, 0, 0, 0]), 0x103);
        assert_eq!(summed([255, 255, 255, 255, 0, 0, 0, 0, 2, 0, 0, 0]), 1);
    }

    #[test]
    fn a_count_that_wraps_goes_on() {
        assert_eq!(
            seen(&[(1, u32::MAX - 1, u32::MAX - 9), (2, u32::MAX, u32::MAX), (4, u32::MAX, 0)]),
            Some((2, 4, 2))
        );
    }
}
