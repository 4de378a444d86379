//! A distribution of durations or counts that merges without loss.
//!
//! ```text
//! value     0 .. 2047    2048 .. 4095   4096 .. 8191   ...
//! counter   one each     one for two    one for four   1,024 counters for each doubling
//! ```
//! HdrHistogram's layout at three significant digits (<https://hdrhistogram.org>; relative error below 0.1 %), with its
//! rule for quantiles. Sum and maximum are exact. Every exit of a trace is counted, so a sample takes a few instructions:
//! its counter lies far from others, so the CPU is asked to fetch it, and some samples are counted together when it has.

mod wire;

pub use wire::WireError;

use crate::counters::{Counters, STRIDE};
use std::borrow::Cow;

/// Samples of an unsigned quantity.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    counters: Counters,
    /// Numbers of the counters of samples that are not counted yet.
    waiting: [u16; MOST_WAITING],
    waits: usize,
    sum: u128,
    max: u64,
    count: u64,
}

/// Samples of similar size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin {
    /// Lower bound, inside.
    pub from: u64,
    /// Upper bound, outside; the largest value there is lies inside all the same.
    pub to: u64,
    /// How many.
    pub count: u64,
}

/// Binary digits of the number of counters for one doubling of the value; the first two have one each for every value.
const DIGITS: u32 = 10;

/// Samples that are counted together.
const MOST_WAITING: usize = 16;

impl Histogram {
    /// An empty distribution.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one sample.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let number = number(value);
        self.counters.fetch(number);
        self.waiting[self.waits % MOST_WAITING] = number;
        self.waits += 1;
        if self.waits == MOST_WAITING {
            self.settle();
        }
        self.sum += u128::from(value);
        self.max = self.max.max(value);
        self.count += 1;
    }

    /// Counts the samples that wait, which each reader would else have to do for itself.
    #[inline]
    pub fn settle(&mut self) {
        for number in &self.waiting[..std::mem::take(&mut self.waits)] {
            self.counters.add(*number, 1);
        }
    }

    /// Adds the same sample many times.
    pub fn record_many(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.record(value);
        let more = count - 1;
        self.counters.add(number(value), u32::try_from(more).unwrap_or(u32::MAX));
        self.sum += u128::from(value) * u128::from(more);
        self.count += more;
    }

    /// The values that were met, ascending, with how often: each stands for its counter, the last is exact.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let counters = self.counted();
        let all = counters.strides().flat_map(|(first, counts)| (first..).zip(counts)).filter(|(_, count)| **count > 0);
        all.map(|(number, count)| (largest(number).min(self.max), u64::from(*count))).collect()
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        self.counters.merge(&other.counted());
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.count += other.count;
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all samples, saturating.
    pub fn sum(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// Largest sample, exact; 0 if there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Mean, exact; `None` if there is no sample.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The sample at or below which a share `q` (0 to 1) of all samples lies; `None` if there is none.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let [value] = self.quantiles([q])?;
        Some(value)
    }

    /// The same for several shares, which ascend.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> Option<[u64; N]> {
        let mut values = [self.max; N];
        let mut wanted = shares.iter().zip(&mut values).peekable();
        let mut below = 0;
        for (first, counts) in self.counted().strides() {
            let here = sum(counts);
            if wanted.peek().is_some_and(|(share, _)| below + here >= self.rank(**share)) {
                let mut upto = below;
                for (number, count) in (first..).zip(counts) {
                    upto += u64::from(*count);
                    while let Some((_, value)) = wanted.next_if(|(share, _)| upto >= self.rank(**share)) {
                        *value = largest(number).min(self.max);
                    }
                }
            }
            below += here;
        }
        (self.count > 0).then_some(values)
    }

    /// The samples as a picture draws them: each doubling in two halves, exact, those without a sample left out.
    pub fn bins(&self) -> Vec<Bin> {
        let mut bins: Vec<Bin> = Vec::new();
        let mut add = |number: usize, count: u64| {
            let (from, to) = half_doubling(largest(number));
            match bins.last_mut() {
                Some(last) if last.from == from => last.count += count,
                _ => bins.push(Bin { from, to, count }),
            }
        };
        for (first, counts) in self.counted().strides() {
            // Only the strides of the smallest values reach over more than one bin.
            if first >= 2 * STRIDE {
                add(first, sum(counts));
            } else {
                let met = (first..).zip(counts).filter(|(_, count)| **count > 0);
                met.for_each(|(number, count)| add(number, u64::from(*count)));
            }
        }
        bins
    }

    fn counted(&self) -> Cow<'_, Counters> {
        if self.waits == 0 {
            return Cow::Borrowed(&self.counters);
        }
        let mut settled = self.clone();
        settled.settle();
        Cow::Owned(settled.counters)
    }

    /// How many samples lie at or below the one wanted.
    fn rank(&self, share: f64) -> u64 {
        ((share.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1)
    }
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().map(|count| u64::from(*count)).sum()
}

/// The number of the counter of `value`, at most 56,319.
#[inline]
fn number(value: u64) -> u16 {
    let shift = (63 - DIGITS) - (value | ((2 << DIGITS) - 1)).leading_zeros();
    (shift << DIGITS) as u16 + (value >> shift) as u16
}

/// The largest value that the counter of this number counts.
fn largest(number: usize) -> u64 {
    let shift = (number >> DIGITS).saturating_sub(1);
    let above = (number - (shift << DIGITS)) as u128 + 1;
    u64::try_from((above << shift) - 1).unwrap_or(u64::MAX)
}

/// The bounds of the half of a doubling that `value` lies in: 4 to 6, 6 to 8, 8 to 12, .. No counter crosses one.
fn half_doubling(value: u64) -> (u64, u64) {
    let width = 1 << value.checked_ilog2().map_or(0, |digits| digits.saturating_sub(1));
    let from = value - value % width;
    (from, from.saturating_add(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of all sizes, spread as latencies are.
    fn samples() -> impl Iterator<Item = u64> {
        let mut state = 1_u64;
        (0..20_000).map(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 8) >> (state % 53)
        })
    }

    #[test]
    fn quantiles_are_those_of_the_reference_implementation() {
        let (mut ours, mut parts) = (Histogram::new(), [Histogram::new(), Histogram::new()]);
        let mut theirs = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        theirs.auto(true);
        for (at, value) in samples().chain([0, 1, 2047, 2048, 4095, 4096]).enumerate() {
            ours.record(value);
            parts[at % 2].record(value);
            theirs.record(value).unwrap();
        }
        let [mut merged, other] = parts;
        merged.merge(&other);
        for q in [0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let expected = Some(theirs.value_at_quantile(q).min(ours.max()));
            assert_eq!((ours.quantile(q), merged.quantile(q)), (expected, expected), "at {q}");
        }
        assert_eq!((ours.count(), ours.sum(), ours.max()), (merged.count(), merged.sum(), merged.max()));
    }

    #[test]
    fn bins_hold_each_sample_once_where_it_belongs() {
        let mut histogram = Histogram::new();
        let values: Vec<u64> = samples().chain([0, 1, 2, 3, 4, 6, 2047, 2048, 3071, 3072, u64::MAX]).collect();
        values.iter().for_each(|value| histogram.record(*value));
        let bins = histogram.bins();
        for Bin { from, to, count } in &bins {
            let inside =
                values.iter().filter(|value| (from..to).contains(value) || (*to, **value) == (u64::MAX, u64::MAX));
            assert_eq!(inside.count() as u64, *count, "from {from} to {to}");
        }
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), histogram.count());
        assert!(bins.is_sorted_by(|one, next| one.to <= next.from));
        assert_eq!(
            [0, 1, 2, 3, 4, 6, 11].map(half_doubling),
            [(0, 1), (1, 2), (2, 3), (3, 4), (4, 6), (6, 8), (8, 12)]
        );
    }

    #[test]
    fn the_largest_values_have_counters_and_an_empty_distribution_has_no_quantile() {
        let mut one = Histogram::new();
        assert_eq!((one.quantile(0.5), one.mean()), (None, None));
        one.record(u64::MAX);
        assert_eq!(one.quantiles([0.0, 0.5, 1.0]), Some([u64::MAX; 3]));
        assert!((0..4096).all(|value| largest(usize::from(number(value))) >= value));
    }
}
