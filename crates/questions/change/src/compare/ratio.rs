//! Is one set of measurements larger than another, by how much, and could noise explain it?
//!
//! In: repeated measurements before and after. Out: the ratio of their means with its 95 % interval, and a
//! verdict: only an interval without 1 says that something changed.
//! ```text
//! ln(mean after / mean before)  +-  t(0.975, f) x sqrt(v1/n1 + v2/n2),  v = (s / mean)^2;  then e^ of all three
//! ```
//! The variance of a mean's logarithm is taken to first order (delta method), so that a measurement of 0 has its place.
//! Source: B. L. Welch, "The generalization of Student's problem when several different population variances are involved",
//! Biometrika 34 (1947), for f, the degrees of freedom; the quantile of t by the expansion of Abramowitz and Stegun 26.7.5.

use base::number::plain;
use facts::statistics::student::{Welch, quantile, two_sided};

/// Fewer measurements on either side say nothing of their spread.
const FEWEST: usize = 2;

/// A ratio, with an interval where there were measurements enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Mean of the measurements before.
    pub before: f64,
    /// The same after.
    pub after: f64,
    /// after / before.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// How likely a difference as large as this is if there is none.
    pub chance: Option<f64>,
}

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Verdict {
        /// It grew, and noise does not explain it.
        Higher = "higher",
        /// It shrank, and noise does not explain it.
        Lower = "lower",
        /// Noise could explain it.
        NoChange = "noise could explain it",
        /// There are too few measurements to say.
        Unknown = "too few",
        /// It would be, but for measurements that others disturbed.
        Void = "void, disturbed",
    }
}

impl Ratio {
    /// The ratio of two sets of measurements, none below 0; `None` if a side has none, or nothing but zeros.
    pub fn of(before: &[f64], after: &[f64]) -> Option<Self> {
        let (one, two) = (Side::of(before)?, Side::of(after)?);
        let both_spread = one.count >= FEWEST && two.count >= FEWEST;
        Some(Self::between(&one, &two, both_spread.then(|| welch(&one, &two))))
    }

    /// The same of runs, one value of each. A side of a single run is taken to spread as the other does, which is then a
    /// baseline: runs of one configuration.
    pub fn of_runs(before: &[f64], after: &[f64]) -> Option<Self> {
        let (one, two) = (Side::of(before)?, Side::of(after)?);
        let error = match (one.count >= FEWEST, two.count >= FEWEST) {
            (true, true) => Some(welch(&one, &two)),
            (true, false) => Some(one.spread_for(&two)),
            (false, true) => Some(two.spread_for(&one)),
            (false, false) => None,
        };
        Some(Self::between(&one, &two, error))
    }

    /// Of two sets of which one alone has nothing but zeros: 0, or infinite. Its interval is that number alone where the difference is more than
    /// noise (Student's t), else everything.
    pub(crate) fn with_none(before: &[f64], after: &[f64]) -> Option<Self> {
        let are_none = |values: &[f64]| !values.is_empty() && values.iter().all(|value| *value == 0.0);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let ratio = match (are_none(before), are_none(after)) {
            (true, false) => f64::INFINITY,
            (false, true) => 0.0,
            _ => return None,
        };
        let (both_spread, values) = (before.len().min(after.len()) >= FEWEST, (mean(before), mean(after)));
        let welch = Welch::of(before, after).filter(|_| both_spread && values.0.max(values.1) > 0.0);
        let is_certain = |welch: Welch| welch.interval.0 > 0.0 || welch.interval.1 < 0.0;
        let interval = welch.map(|welch| if is_certain(welch) { (ratio, ratio) } else { (0.0, f64::INFINITY) });
        Some(Self { before: values.0, after: values.1, ratio, interval, chance: welch.map(|welch| welch.chance) })
    }

    /// `x0.13`; `1,868 before, none after`.
    pub fn words(&self) -> String {
        match self.ratio {
            0.0 => format!("{} before, none after", plain(self.before)),
            ratio if ratio.is_infinite() => format!("none before, {} after", plain(self.after)),
            ratio => format!("x{}", plain(ratio)),
        }
    }

    fn between(one: &Side, two: &Side, error: Option<Error>) -> Self {
        let difference = (two.mean / one.mean).ln();
        let interval = error.map(|Error { spread, freedom }| {
            // Without any spread there is no doubt left that repetition could show.
            let half = if spread > 0.0 { quantile(freedom) * spread } else { 0.0 };
            ((difference - half).exp(), (difference + half).exp())
        });
        let chance = error.map(|Error { spread, freedom }| match (spread > 0.0, difference == 0.0) {
            (true, _) => two_sided(difference / spread, freedom),
            (false, same) => f64::from(u8::from(same)),
        });
        Self { before: one.mean, after: two.mean, ratio: difference.exp(), interval, chance }
    }

    pub fn verdict(&self) -> Verdict {
        match self.interval {
            None => Verdict::Unknown,
            Some((low, _)) if low > 1.0 => Verdict::Higher,
            Some((_, high)) if high < 1.0 => Verdict::Lower,
            Some(_) => Verdict::NoChange,
        }
    }
}

impl Verdict {
    /// True if it says that something changed.
    pub fn is_claim(self) -> bool {
        matches!(self, Verdict::Higher | Verdict::Lower)
    }
}

/// The standard error of a difference of logarithms, and its degrees of freedom.
#[derive(Clone, Copy)]
struct Error {
    spread: f64,
    freedom: f64,
}

/// Of two sets that spread each in its own way.
fn welch(one: &Side, two: &Side) -> Error {
    let (a, b) = (one.variance / one.count as f64, two.variance / two.count as f64);
    let freedom = (a + b).powi(2) / (a.powi(2) / (one.count - 1) as f64 + b.powi(2) / (two.count - 1) as f64);
    Error { spread: (a + b).sqrt(), freedom }
}

/// Mean of measurements, and their variance in units of the mean.
struct Side {
    count: usize,
    mean: f64,
    variance: f64,
}

impl Side {
    /// The error of the difference to a side that spreads alike.
    fn spread_for(&self, other: &Side) -> Error {
        let (own, others) = (self.count as f64, other.count as f64);
        Error { spread: (self.variance * (1.0 / own + 1.0 / others)).sqrt(), freedom: own - 1.0 }
    }

    fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value / mean - 1.0).powi(2)).sum();
        let usable = count > 0 && mean > 0.0 && mean.is_finite();
        usable.then(|| Self { count, mean, variance: squares / count.saturating_sub(1).max(1) as f64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_printed_table() {
        // Abramowitz and Stegun, table 26.10.
        for (freedom, printed) in [(2.0, 4.303), (5.0, 2.571), (10.0, 2.228), (30.0, 2.042), (1e6, 1.960)] {
            assert!((quantile(freedom) - printed).abs() < 0.006, "{freedom}: {}", quantile(freedom));
        }
    }

    #[test]
    fn what_differs_beyond_its_noise_is_said_and_what_does_not_is_not() {
        let high = Ratio::of(&[2.7, 2.72, 2.74], &[8.5, 8.58, 8.6]).unwrap();
        assert_eq!(high.verdict(), Verdict::Higher);
        assert!((high.ratio - 3.147).abs() < 0.01, "{high:?}");
        assert_eq!(Ratio::of(&[8.5, 8.6], &[2.7, 2.72]).unwrap().verdict(), Verdict::Lower);
        assert_eq!(Ratio::of(&[1.0, 3.0, 2.0], &[2.0, 1.1, 3.1]).unwrap().verdict(), Verdict::NoChange);
        assert_eq!(Ratio::of(&[1.0], &[9.0, 9.1]).unwrap().verdict(), Verdict::Unknown);
        assert_eq!(Ratio::of(&[0.0], &[1.0]), None);
    }

    #[test]
    fn what_one_side_never_had_is_gone_or_new_if_it_is_more_than_noise() {
        let gone = Ratio::with_none(&[1_800.0, 1_900.0, 1_850.0], &[0.0; 3]).unwrap();
        assert_eq!((gone.ratio, gone.verdict()), (0.0, Verdict::Lower));
        assert_eq!(gone.words(), "1,850 before, none after");
        let new = Ratio::with_none(&[0.0; 3], &[11.0, 12.0, 13.0]).unwrap();
        assert_eq!((new.verdict(), new.words().as_str()), (Verdict::Higher, "none before, 12 after"));
        // Once in three runs is nothing that could not come by chance.
        assert_eq!(Ratio::with_none(&[0.0; 3], &[0.0, 0.0, 9.0]).unwrap().verdict(), Verdict::NoChange);
        assert_eq!(Ratio::with_none(&[5.0], &[0.0; 3]).unwrap().verdict(), Verdict::Unknown, "no baseline of zeros");
        assert_eq!(Ratio::with_none(&[0.0; 3], &[0.0; 3]), None);
        assert_eq!(Ratio::with_none(&[1.0; 3], &[2.0; 3]), None);
    }

    #[test]
    fn the_interval_is_the_one_that_welch_gives() {
        // By hand: means 1 and 2; variances (0.1)^2 + (0.1)^2 each over n = 2; f = 2; t = 4.303.
        let ratio = Ratio::of(&[0.9, 1.1], &[1.8, 2.2]).unwrap();
        let half = 4.303 * (2.0_f64 * 0.02 / 2.0).sqrt();
        let (low, high) = ratio.interval.unwrap();
        assert!((low.ln() - (2.0_f64.ln() - half)).abs() < 1e-9 && (high.ln() - (2.0_f64.ln() + half)).abs() < 1e-9);
    }
}
