//! A distribution of durations or counts that merges without loss.
//!
//! Three significant digits (relative error below 0.1 %), as HdrHistogram keeps them; its V2 wire form is known to
//! other programs. Sum and maximum are exact.

use hdrhistogram::Histogram as Hdr;

/// Samples of an unsigned quantity.
#[derive(Debug, Clone)]
pub struct Histogram {
    hdr: Hdr<u32>,
    sum: u128,
    max: u64,
    count: u64,
}

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
        Self { hdr, sum: 0, max: 0, count: 0 }
    }

    /// Adds one sample.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let _ = self.hdr.record(value); // it resizes on demand, so this cannot fail
        self.sum += u128::from(value);
        self.max = self.max.max(value);
        self.count += 1;
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        // Both resize on demand, so adding cannot fail.
        let _ = self.hdr.add(&other.hdr);
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
        (self.count > 0).then(|| self.hdr.value_at_quantile(q).min(self.max))
    }
}
