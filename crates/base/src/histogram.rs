//! A distribution of durations or counts that merges without loss.
//!
//! Three significant digits (relative error below 0.1 %), as HdrHistogram keeps them; its V2 wire form is known to
//! other programs. Sum and maximum are exact.

use hdrhistogram::Histogram as Hdr;

/// Samples of an unsigned quantity.
#[derive(Debug, Clone)]
pub struct Histogram {
    hdr: Hdr<u32>,
    /// Samples that `hdr` does not have yet. Its counters lie far apart: many at once wait for memory together, one at a
    /// time each waits alone.
    fresh: Vec<u64>,
    sum: u128,
    max: u64,
    count: u64,
}

/// Most samples that wait to be counted.
const MOST_FRESH: usize = 256;

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty distribution.
    pub fn new() -> Self {
        let mut hdr = Hdr::new(3).expect("three digits are within HdrHistogram's range of 0 to 5");
        hdr.auto(true);
        Self { hdr, fresh: Vec::new(), sum: 0, max: 0, count: 0 }
    }

    /// Adds one sample.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if self.fresh.len() == MOST_FRESH {
            self.settle();
        }
        self.fresh.push(value);
        self.sum += u128::from(value);
        self.max = self.max.max(value);
        self.count += 1;
    }

    /// Counts the samples that wait. Worth calling before several [quantiles](Self::quantile) are asked for.
    pub fn settle(&mut self) {
        for value in self.fresh.drain(..) {
            count(&mut self.hdr, value);
        }
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        // Both resize on demand, so adding cannot fail.
        let _ = self.hdr.add(&other.hdr);
        other.fresh.iter().for_each(|value| count(&mut self.hdr, *value));
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
        if !self.fresh.is_empty() {
            let mut settled = self.clone();
            settled.settle();
            return settled.quantile(q);
        }
        (self.count > 0).then(|| self.hdr.value_at_quantile(q).min(self.max))
    }
}

#[inline]
fn count(hdr: &mut Hdr<u32>, value: u64) {
    let _ = hdr.record(value); // it resizes on demand, so this cannot fail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_wait_count_like_all_others() {
        let (mut one, mut all) = (Histogram::new(), Histogram::new());
        for value in 1..=1000 {
            one.record(value);
            assert_eq!(one.quantile(1.0), Some(value));
        }
        one.settle();
        all.record(5000);
        all.merge(&one);
        assert_eq!((all.count(), all.max(), all.sum()), (1001, 5000, 505_500));
        assert_eq!((one.quantile(0.5), all.quantile(0.5)), (Some(500), Some(501)));
    }
}
