//! A distribution of durations or counts that merges without loss.
//!
//! ```text
//! value     0 .. 2047    2048 .. 4095   4096 .. 8191   ...
//! counter   one each     one for two    one for four   1,024 counters for each doubling
//! ```
//! HdrHistogram's layout at three significant digits (<https://hdrhistogram.org>; relative error below 0.1 %), with its
//! rule for quantiles. Sum and maximum are exact. Counting takes a few instructions, since every exit of a trace is
//! counted; the reference implementation, which also keeps what we do not ask for, takes several times as many.

/// Samples of an unsigned quantity.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// For each doubling its counters; `None` where no sample lies.
    doublings: Vec<Option<Doubling>>,
    sum: u128,
    max: u64,
    count: u64,
}

/// The counters of values of one doubling.
#[derive(Debug, Clone)]
struct Doubling {
    counts: Box<[u32; COUNTERS]>,
    /// Bit i is set if a counter of the i-th stride is not 0.
    met: u32,
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

/// Binary digits of the counters for one doubling of the value.
const DIGITS: u32 = 10;

/// Counters for one doubling; the first two have one each for every value.
const COUNTERS: usize = 1 << DIGITS;

/// Counters that are looked over at once: nearly all are 0, so it is noted which are not.
const STRIDE: usize = COUNTERS / u32::BITS as usize;

impl Histogram {
    /// An empty distribution.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one sample.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let place = place(value);
        let doubling = match self.doublings.get_mut(place >> DIGITS) {
            Some(Some(doubling)) => doubling,
            _ => self.begin(place >> DIGITS),
        };
        doubling.add(place & (COUNTERS - 1), 1);
        self.sum += u128::from(value);
        self.max = self.max.max(value);
        self.count += 1;
    }

    /// Adds the same sample many times.
    pub fn record_many(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.record(value);
        let more = count - 1;
        let place = place(value);
        self.begin(place >> DIGITS).add(place & (COUNTERS - 1), u32::try_from(more).unwrap_or(u32::MAX));
        self.sum += u128::from(value) * u128::from(more);
        self.count += more;
    }

    /// The values that were met, ascending, with how often: each stands for its counter, the last is exact.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let all = self.strides().flat_map(|(first, counts)| (first..).zip(counts).filter(|(_, count)| **count > 0));
        all.map(|(place, count)| (largest(place).min(self.max), u64::from(*count))).collect()
    }

    /// The counters of a doubling, made if there are none.
    #[cold]
    fn begin(&mut self, doubling: usize) -> &mut Doubling {
        if doubling >= self.doublings.len() {
            self.doublings.resize(doubling + 1, None);
        }
        self.doublings[doubling].get_or_insert_with(|| Doubling { counts: Box::new([0; COUNTERS]), met: 0 })
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        for (first, counts) in other.strides() {
            let into = self.begin(first >> DIGITS);
            let from = first % COUNTERS;
            for (count, more) in into.counts[from..from + STRIDE].iter_mut().zip(counts) {
                *count = count.saturating_add(*more);
            }
            into.met |= 1 << (from / STRIDE);
        }
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
        for (first, counts) in self.strides() {
            let here = sum(counts);
            if wanted.peek().is_some_and(|(share, _)| below + here >= self.rank(**share)) {
                let mut upto = below;
                for (place, count) in (first..).zip(counts) {
                    upto += u64::from(*count);
                    while let Some((_, value)) = wanted.next_if(|(share, _)| upto >= self.rank(**share)) {
                        *value = largest(place).min(self.max);
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
        let mut add = |place: usize, count: u64| {
            let (from, to) = half_doubling(largest(place));
            match bins.last_mut() {
                Some(last) if last.from == from => last.count += count,
                _ => bins.push(Bin { from, to, count }),
            }
        };
        for (first, counts) in self.strides() {
            // Only the strides of the smallest values reach over more than one bin.
            if first >= 2 * STRIDE {
                add(first, sum(counts));
            } else {
                let met = (first..).zip(counts).filter(|(_, count)| **count > 0);
                met.for_each(|(place, count)| add(place, u64::from(*count)));
            }
        }
        bins
    }

    /// The counters that are not all 0, [`STRIDE`] at once, with the place of the first.
    fn strides(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let doublings = self.doublings.iter().enumerate().filter_map(|(number, one)| Some((number, one.as_ref()?)));
        doublings.flat_map(|(number, doubling)| {
            let strides = (number * COUNTERS..).step_by(STRIDE).zip(doubling.counts.chunks(STRIDE)).enumerate();
            strides.filter(|(stride, _)| doubling.met >> stride & 1 == 1).map(|(_, stride)| stride)
        })
    }

    /// How many samples lie at or below the one wanted.
    fn rank(&self, share: f64) -> u64 {
        ((share.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1)
    }
}

impl Doubling {
    #[inline]
    fn add(&mut self, counter: usize, more: u32) {
        let count = &mut self.counts[counter % COUNTERS];
        *count = count.saturating_add(more);
        self.met |= 1 << (counter % COUNTERS / STRIDE);
    }
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().map(|count| u64::from(*count)).sum()
}

/// The counter of `value`.
#[inline]
fn place(value: u64) -> usize {
    let shift = (63 - DIGITS) - (value | ((2 << DIGITS) - 1)).leading_zeros();
    ((shift as usize) << DIGITS) + (value >> shift) as usize
}

/// The largest value that the counter at `place` counts.
fn largest(place: usize) -> u64 {
    let shift = (place >> DIGITS).saturating_sub(1);
    let above = (place - (shift << DIGITS)) as u128 + 1;
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
        assert!((0..4096).all(|value| largest(place(value)) >= value));
    }
}
