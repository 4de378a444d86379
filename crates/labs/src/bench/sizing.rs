//! How many operations make a sample, and how many samples a test?
//!
//! A sample must outlast the timer that frames it by far, or the timer is what is measured; a test must not take longer
//! than it was given. Both follow from a few samples of one operation each.

use base::Histogram;
use std::time::Duration;

/// A sample takes so many times what an empty one does.
const TIMES_THE_TIMER: u64 = 50;
/// Operations in a sample, at most: more only hide what single ones do.
const MOST_OPERATIONS: u64 = 4096;
/// Samples of a test: enough for a 99th percentile, and not more than a figure needs.
const SAMPLES: (u64, u64) = (200, 20_000);
/// This share of the first samples warms caches and predictors, and is left out.
const WARM: f64 = 0.1;

/// Samples, and operations in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub samples: u64,
    pub operations: u64,
}

/// A few samples of one operation, by which the rest is sized.
pub const FIRST: Run = Run { samples: 32, operations: 1 };

impl Run {
    /// The run that fits into `target`, if the median sample of [`FIRST`] took `one` ticks, and an empty one `timer`.
    pub(crate) fn sized(timer: u64, one: u64, ns_per_tick: f64, target: Duration) -> Self {
        let own = one.saturating_sub(timer).max(1);
        let operations = (TIMES_THE_TIMER * timer.max(1)).div_ceil(own).clamp(1, MOST_OPERATIONS);
        let sample_ns = (timer + own * operations) as f64 * ns_per_tick;
        let samples = (target.as_nanos() as f64 / sample_ns) as u64;
        Self { samples: samples.clamp(SAMPLES.0, SAMPLES.1), operations }
    }

    /// All operations of the run.
    pub fn all(self) -> u64 {
        self.samples * self.operations
    }
}

/// The distribution of samples, without those that warm up.
pub(crate) fn warm(samples: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    let first = (samples.len() as f64 * WARM).ceil() as usize;
    samples.iter().skip(first).for_each(|sample| histogram.record(*sample));
    histogram
}

/// The sample in the middle; 0 of none.
pub fn median(samples: &[u64]) -> u64 {
    warm(samples).quantile(0.5).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_outlasts_the_timer_and_a_test_keeps_to_its_time() {
        let target = Duration::from_millis(200);
        let cheap = Run::sized(60, 64, 0.5, target);
        assert_eq!((cheap.operations, cheap.samples), (750, SAMPLES.1));
        let dear = Run::sized(60, 40_000, 0.5, target);
        assert_eq!((dear.operations, dear.samples), (1, 10_000));
        let slow = Run::sized(60, 9_000_000, 0.5, target);
        assert_eq!((slow.operations, slow.samples), (1, SAMPLES.0));
        let free = Run::sized(60, 60, 0.5, target);
        assert_eq!((free.operations, free.samples), (3000, SAMPLES.1));
    }

    #[test]
    fn the_first_samples_do_not_count() {
        let samples: Vec<u64> = [vec![9_000; 10], vec![10; 90]].concat();
        assert_eq!((warm(&samples).count(), warm(&samples).max(), median(&samples)), (90, 10, 10));
    }
}
