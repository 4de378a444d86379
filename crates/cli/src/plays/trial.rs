//! Did moving threads help? Measured before and after, by how long threads waited for a CPU.
//!
//! ```text
//! watched: the moved threads, and those that want a CPU where they are or where they go
//! before:  windows, each with the CPUs' worth of waiting of all watched --\
//! move                                                                     >--> ratio with interval --> helped or not
//! after:   the same windows                                              --/
//! ```
//! A change that only moves the waiting from one thread to another has not helped, so the threads at the destination count.

use analysis::compare::{Ratio, Verdict};
use analysis::contention::{FLOOR, Move};
use anyhow::{Context, bail};
use base::number::plain;
use host::sched::{Load, Sample, ThreadId};
use lab::snapshot::monotonic_ns;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How far apart two looks are, where one number is wanted.
pub const SPAN: Duration = Duration::from_secs(1);
/// Windows of a measurement.
const WINDOWS: u32 = 8;
/// How often we look whether the user has had enough.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What a trial came to.
pub enum Outcome {
    /// Threads waited less, and noise does not explain it.
    Helped { ratio: Ratio },
    /// They did not.
    DidNotHelp { ratio: Option<Ratio> },
    /// The user ended it.
    Interrupted,
}

impl Outcome {
    /// What the waiting before and after says.
    pub fn of(before: &[f64], after: &[f64]) -> Self {
        match Ratio::of(before, after) {
            Some(ratio) if ratio.verdict() == Verdict::Lower => Outcome::Helped { ratio },
            // All that waited has stopped waiting: a ratio to nothing cannot be told, and needs none.
            None if before.iter().sum::<f64>() > 0.0 && after.iter().sum::<f64>() == 0.0 => Outcome::Helped {
                ratio: Ratio {
                    before: before.iter().sum::<f64>() / before.len() as f64,
                    after: 0.0,
                    ratio: 0.0,
                    interval: None,
                },
            },
            ratio => Outcome::DidNotHelp { ratio },
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ratio, verdict) = match self {
            Outcome::Helped { ratio } => (Some(ratio), "it helped"),
            Outcome::DidNotHelp { ratio: Some(ratio) } if ratio.verdict() == Verdict::Higher => {
                (Some(ratio), "it got worse")
            }
            Outcome::DidNotHelp { ratio } => (ratio.as_ref(), "no difference beyond the noise"),
            Outcome::Interrupted => return write!(out, "ended before it was over"),
        };
        let Some(Ratio { before, after, ratio, interval }) = ratio else {
            return write!(out, "nobody waited for a CPU before or after: {verdict}");
        };
        write!(out, "threads waited {before:.2} CPUs' worth before and {after:.2} after, x{}", plain(*ratio))?;
        if let Some((low, high)) = interval {
            write!(out, " (95 % of {} to {})", plain(*low), plain(*high))?;
        }
        write!(out, ": {verdict}")
    }
}

/// What all threads do for a while.
pub fn loads(proc: &Path, span: Duration) -> anyhow::Result<Vec<Load>> {
    let first = look(proc)?;
    std::thread::sleep(span);
    Ok(first.until(&look(proc)?))
}

/// The threads that a move concerns.
pub fn watched(proc: &Path, moves: &[Move]) -> anyhow::Result<BTreeSet<ThreadId>> {
    let loads = loads(proc, SPAN)?;
    let moved = |load: &Load| moves.iter().any(|one| one.tid == load.id.tid);
    let mut cpus: BTreeSet<u32> = moves.iter().flat_map(|one| one.cpus.iter()).collect();
    cpus.extend(loads.iter().filter(|load| moved(load)).map(|load| load.cpu));
    let concerned = loads.iter().filter(|load| moved(load) || (load.demand() > FLOOR && cpus.contains(&load.cpu)));
    Ok(concerned.map(|load| load.id).collect())
}

/// CPUs' worth of waiting of the watched threads together, in each window; `None` if the user ended it.
pub fn measure(
    proc: &Path,
    watched: &BTreeSet<ThreadId>,
    span: Duration,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Vec<f64>>> {
    let mut waits = Vec::new();
    let mut last = look(proc)?;
    for _ in 0..WINDOWS {
        let since = Instant::now();
        while since.elapsed() < span / WINDOWS {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let next = look(proc)?;
        let loads = last.until(&next);
        waits.push(loads.iter().filter(|load| watched.contains(&load.id)).map(|load| load.wait).sum());
        last = next;
    }
    Ok(Some(waits))
}

/// All threads now.
pub fn look(proc: &Path) -> anyhow::Result<Sample> {
    let sample = Sample::take(proc, &monotonic_ns).with_context(|| proc.display().to_string())?;
    if !sample.known() {
        bail!("this kernel keeps no times of threads (schedstat is all zeros), so nothing can be measured");
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_less_waiting_than_noise_explains_has_helped() {
        let before = [0.9, 0.95, 0.92, 0.91];
        assert!(matches!(Outcome::of(&before, &[0.1, 0.12, 0.11, 0.1]), Outcome::Helped { .. }));
        assert!(matches!(Outcome::of(&before, &[0.0; 4]), Outcome::Helped { .. }));
        assert!(matches!(Outcome::of(&before, &before), Outcome::DidNotHelp { .. }));
        assert!(matches!(Outcome::of(&[0.0; 4], &[0.0; 4]), Outcome::DidNotHelp { ratio: None }));
        let worse = Outcome::of(&[0.1, 0.12, 0.11, 0.1], &before).to_string();
        assert!(worse.ends_with("it got worse"), "{worse}");
    }
}
