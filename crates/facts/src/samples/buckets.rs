//! A distribution whose samples are known as intervals.
//!
//! ```text
//! cyclictest truncates   bucket 15 us holds [15.000, 16.000) us: of its samples over 15.000 us nobody knows how many
//! oslat rounds up        bucket 15 us holds [14.000, 15.000) us
//! overflow               [end of the histogram, maximum]
//! ```
//! So a count over a limit is an interval, and it is exact where the limit lies between two buckets.

use super::{Measures, SampleClock, Source};
use base::Span;
use std::collections::BTreeMap;

/// Samples of the same length, as far as the file tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// None is shorter.
    pub from_ns: u64,
    pub to_ns: u64,
    pub count: u64,
}

/// Which end of an interval the program printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rounding {
    /// The lower one: it cuts off what is less than its unit.
    #[default]
    Down,
    Up,
}

/// A sample of which the file tells when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timed {
    /// When, on the file's clock.
    pub end_ns: u64,
    /// How long it was, as printed.
    pub length_ns: u64,
}

/// The samples of one thread or CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    pub source: Source,
    /// The thread, as the file names it.
    pub thread: String,
    /// Its thread id, where the file has it.
    pub tid: Option<i32>,
    /// Threads that what it waited for went through before, in their order, where the file has them.
    pub through: Vec<i32>,
    /// The CPU that it was bound to, where the file has it.
    pub cpu: Option<u32>,
    /// Every sample is in one; ascending.
    pub buckets: Vec<Bucket>,
    pub count: u64,
    /// Those that the program counted without their length.
    pub overflow: u64,
    /// The shortest one, as an interval.
    pub min: Option<Span>,
    /// The longest one, as an interval.
    pub max: Option<Span>,
    /// The mean of the lengths as printed.
    pub mean_ns: Option<f64>,
    /// The unit of lengths: what the program cuts off is less.
    pub unit_ns: u64,
    /// Which end of an interval it printed.
    pub rounding: Rounding,
    /// How far each length may be off beside that, where it is a difference of two clocks.
    pub error_ns: u64,
    pub timed: Vec<Timed>,
    pub clock: SampleClock,
}

/// More samples with times are not kept: 64 MB of them, 70 minutes of a program that samples once a millisecond.
const MOST_TIMED: usize = 1 << 22;

impl Samples {
    /// A thread or CPU of which nothing was read yet.
    pub fn new(source: Source, thread: impl Into<String>) -> Self {
        Self {
            source,
            thread: thread.into(),
            tid: None,
            through: Vec::new(),
            cpu: None,
            buckets: Vec::new(),
            count: 0,
            overflow: 0,
            min: None,
            max: None,
            mean_ns: None,
            unit_ns: 1_000,
            rounding: Rounding::Down,
            error_ns: 0,
            timed: Vec::new(),
            clock: SampleClock::None,
        }
    }

    pub fn measures(&self) -> Measures {
        self.source.measures()
    }

    /// The shortest and the longest sample, as the program printed them.
    pub fn extremes_ns(&self) -> (Option<u64>, Option<u64>) {
        (self.min.map(|min| self.printed(min)), self.max.map(|max| self.printed(max)))
    }

    /// The length that the program prints of samples in an interval.
    pub fn printed(&self, interval: Span) -> u64 {
        match self.rounding {
            Rounding::Down => interval.from_ns,
            Rounding::Up => interval.to_ns,
        }
    }

    /// How many samples are longer than `limit_ns`: at least and at most.
    pub fn over(&self, limit_ns: u64) -> (u64, u64) {
        let sum = |wanted: &dyn Fn(&Bucket) -> bool| {
            self.buckets.iter().filter(|bucket| wanted(bucket)).fold(0, |sum: u64, one| sum.saturating_add(one.count))
        };
        let (most_ns, least_ns) = (limit_ns.saturating_add(self.error_ns), limit_ns.saturating_sub(self.error_ns));
        let low = sum(&|bucket| bucket.from_ns > most_ns);
        let high = sum(&|bucket| bucket.to_ns > least_ns.saturating_add(1));
        let is_longest = self.max.is_some_and(|max| max.from_ns > most_ns);
        let low = low.max(u64::from(is_longest && self.count > 0));
        (low, high.max(low))
    }

    /// The smallest length, as printed, with at least this share of the samples at or below it; `None` if that is a length that
    /// the program did not keep.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let rank = ((share.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        if rank >= self.count {
            return self.extremes_ns().1.filter(|_| self.count > 0);
        }
        let mut below: u64 = 0;
        let bucket = self.buckets.iter().find(|bucket| {
            below = below.saturating_add(bucket.count);
            below >= rank
        })?;
        self.is_kept(bucket).then(|| self.length_ns(bucket))
    }

    /// Whether the program told the length of these samples.
    pub fn is_kept(&self, bucket: &Bucket) -> bool {
        bucket.to_ns.saturating_sub(bucket.from_ns) <= self.unit_ns
    }

    /// The length that the program prints of them; of those whose length it did not tell, the least that it can be.
    pub fn length_ns(&self, bucket: &Bucket) -> u64 {
        let interval = Span { from_ns: bucket.from_ns, to_ns: bucket.to_ns };
        if self.is_kept(bucket) { self.printed(interval) } else { bucket.from_ns }
    }

    /// The samples that ended when they are `wanted`; `None` if not every sample has a time.
    pub fn ended(&self, wanted: impl Fn(u64) -> bool) -> Option<Self> {
        if self.timed.len() as u64 != self.count {
            return None;
        }
        let timed: Vec<Timed> = self.timed.iter().copied().filter(|sample| wanted(sample.end_ns)).collect();
        let mut lengths = Lengths::default();
        timed.iter().for_each(|sample| lengths.add(sample.length_ns / self.unit_ns));
        Some(lengths.of(Self { timed, ..self.clone() }))
    }

    /// The interval of a length that was printed as `units`.
    pub(super) fn interval(&self, units: u64) -> Span {
        let at = |units: u64| units.saturating_mul(self.unit_ns);
        match self.rounding {
            Rounding::Down => Span { from_ns: at(units), to_ns: at(units.saturating_add(1)) },
            Rounding::Up => Span { from_ns: at(units.saturating_sub(1)), to_ns: at(units.max(1)) },
        }
    }

    /// Adds samples that were printed as `units`; they must not come before those that are there.
    pub fn add(&mut self, units: u64, count: u64) {
        let Span { from_ns, to_ns } = self.interval(units);
        self.add_between(from_ns, to_ns, count);
    }

    /// Adds samples of lengths in an interval.
    pub(super) fn add_between(&mut self, from_ns: u64, to_ns: u64, count: u64) {
        if count > 0 {
            self.buckets.push(Bucket { from_ns, to_ns, count });
            self.count = self.count.saturating_add(count);
        }
    }

    /// Sets the extremes, as printed; a thread without samples has none.
    pub fn between(&mut self, min: Option<u64>, max: Option<u64>) {
        (self.min, self.max) = (min.map(|min| self.interval(min)), max.map(|max| self.interval(max)));
    }

    /// Adds samples whose lengths the program did not keep: none is shorter than `from_ns`, nor longer than the longest.
    pub(crate) fn add_unkept(&mut self, from_ns: u64, count: u64) {
        let to_ns = self.max.map_or(u64::MAX, |max| max.to_ns);
        self.add_between(from_ns.min(to_ns), to_ns, count);
    }

    /// All samples in one interval: what a program tells that prints the extremes alone.
    pub(super) fn only_extremes(&mut self, count: u64) {
        let from_ns = self.min.map_or(0, |min| min.from_ns);
        self.add_unkept(from_ns, count);
    }

    /// Keeps a sample with its time; false if there are too many.
    pub(super) fn add_timed(&mut self, end_ns: u64, length_ns: u64) -> bool {
        let has_room = self.timed.len() < MOST_TIMED;
        if has_room {
            self.timed.push(Timed { end_ns, length_ns });
        }
        has_room
    }
}

/// Lengths as printed, counted one by one.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    counts: BTreeMap<u64, u64>,
    sum: u128,
    count: u64,
}

impl Lengths {
    pub(super) fn add(&mut self, units: u64) {
        *self.counts.entry(units).or_default() += 1;
        self.sum += u128::from(units);
        self.count += 1;
    }

    /// `samples` with these lengths and no others.
    pub(super) fn of(self, mut samples: Samples) -> Samples {
        (samples.buckets, samples.count, samples.overflow) = (Vec::new(), 0, 0);
        let ends = (self.counts.first_key_value(), self.counts.last_key_value());
        let units = |end: Option<(&u64, &u64)>| end.map(|(units, _)| *units);
        samples.between(units(ends.0), units(ends.1));
        samples.mean_ns = (self.count > 0).then(|| self.sum as f64 / self.count as f64 * samples.unit_ns as f64);
        self.counts.iter().for_each(|(units, count)| samples.add(*units, *count));
        samples.timed.sort_by_key(|sample| sample.end_ns);
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The histogram of KVM4NFV's slides of 2015-11-12, "Cyclictest (After)": 79,810,183 samples.
    const KVM4NFV: [(u64, u64); 10] = [
        (7, 3),
        (8, 11_757_562),
        (9, 67_812_652),
        (10, 159_222),
        (11, 69_100),
        (12, 11_004),
        (13, 379),
        (14, 207),
        (15, 49),
        (16, 5),
    ];

    fn published() -> Samples {
        let mut samples = Samples::new(Source::Cyclictest, "0");
        samples.between(Some(7), Some(16));
        KVM4NFV.iter().for_each(|(us, count)| samples.add(*us, *count));
        samples
    }

    #[test]
    fn a_limit_inside_a_bucket_is_exceeded_by_an_interval_of_samples() {
        let samples = published();
        assert_eq!(samples.count, 79_810_183);
        assert_eq!(samples.over(15_000), (5, 54), "bucket 15 holds [15, 16) us");
        assert_eq!(samples.over(14_999), (54, 54), "the limit lies between two buckets");
        assert_eq!(samples.over(15_999), (5, 5));
        assert_eq!((samples.over(16_999), samples.over(6_999)), ((0, 0), (79_810_183, 79_810_183)));
        assert_eq!(samples.over(16_500), (0, 5), "the longest may or may not be over it");
        assert_eq!(samples.extremes_ns(), (Some(7_000), Some(16_000)));
        assert_eq!((samples.quantile_ns(0.99), samples.quantile_ns(0.999)), (Some(9_000), Some(11_000)));
    }

    #[test]
    fn the_longest_is_over_a_limit_though_its_bucket_is_not() {
        let mut samples = Samples::new(Source::Cyclictest, "0");
        samples.between(Some(3), Some(900));
        samples.add(3, 100);
        samples.add_unkept(90_000, 7);
        assert_eq!(samples.over(50_000), (7, 7));
        assert_eq!(samples.over(300_000), (1, 7), "the maximum is one of seven");
        assert_eq!(samples.over(900_999), (0, 0));
        assert_eq!(
            (samples.quantile_ns(0.5), samples.quantile_ns(0.95), samples.quantile_ns(1.0)),
            (Some(3_000), None, Some(900_000))
        );
        let mut alone = Samples::new(Source::Cyclictest, "0");
        alone.between(Some(3), Some(900));
        alone.only_extremes(50);
        assert_eq!((alone.over(2_999), alone.over(10_000), alone.quantile_ns(0.5)), ((50, 50), (1, 50), None));
    }

    #[test]
    fn what_is_rounded_up_lies_below_what_is_printed() {
        let mut samples = Samples { rounding: Rounding::Up, ..Samples::new(Source::Oslat, "0") };
        samples.between(Some(1), Some(15));
        samples.add(1, 10);
        samples.add(15, 4);
        assert_eq!((samples.over(14_000), samples.over(13_999), samples.over(14_999)), ((0, 4), (4, 4), (0, 0)));
        assert_eq!(samples.extremes_ns(), (Some(1_000), Some(15_000)));
    }

    #[test]
    fn samples_are_chosen_by_when_they_ended() {
        let mut lengths = Lengths::default();
        let mut samples = Samples::new(Source::Jitterdebugger, "0");
        for (end_ns, units) in [(100, 5), (200, 90), (300, 7)] {
            lengths.add(units);
            samples.add_timed(end_ns, units * 1_000);
        }
        let samples = lengths.of(samples);
        let inside = samples.ended(|end_ns| end_ns >= 200).unwrap();
        assert_eq!(
            (inside.count, inside.extremes_ns(), inside.mean_ns),
            (2, (Some(7_000), Some(90_000)), Some(48_500.0))
        );
        assert!(published().ended(|_| true).is_none(), "it has no times");
        assert_eq!(samples.ended(|_| false).unwrap().count, 0);
    }
}
