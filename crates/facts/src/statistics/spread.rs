//! How far can a number be trusted? As far as launches of the same bench agree.
//!
//! In: one number of each launch. Out: their median, and an interval from the bootstrap: the launches are drawn again, with
//! replacement, many times, and the middle 95 % of the medians of those draws is the interval. Samples of one launch never
//! count as repetitions, because they share what made that launch fast or slow.
//!
//! Source: B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7 (1979), percentile method.
//! With five launches the interval reaches about from the least to the largest of them; fewer than three give none.

use base::Histogram;

/// Draws; the ends of the interval then move by less than the launches' own grain.
const DRAWS: usize = 2_000;
/// Fewer launches say nothing of their spread.
const FEWEST: usize = 3;
/// Left out at either end.
const TAIL: f64 = 0.025;

/// The median of `values`; `None` of none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        even if even.is_multiple_of(2) => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        _ => Some(sorted[middle]),
    }
}

/// The interval of the median of `values`, one of each launch; the same for the same values.
pub fn interval(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < FEWEST {
        return None;
    }
    let mut random = Random::seeded();
    middle((0..DRAWS).filter_map(|_| drawn(values, &mut random)).collect())
}

/// How often the interval of so many launches holds the true median, in words. Of few launches it reaches from the least to
/// the largest, between which the median lies unless all fall on one side of it: 1 - 2^(1-n), at most.
pub fn coverage(launches: usize) -> String {
    /// From here on the ends are inside, and the bootstrap holds what it promises.
    const ENOUGH: usize = 6;
    let share = if launches < ENOUGH { 1.0 - 0.5_f64.powi(launches as i32 - 1) } else { 1.0 - 2.0 * TAIL };
    format!("{} confidence", base::number::percent(share))
}

/// The interval of the ratio of two medians, after to before; both sides are drawn, each from its own launches.
pub fn ratio_interval(before: &[f64], after: &[f64]) -> Option<(f64, f64)> {
    if before.len().min(after.len()) < FEWEST || before.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let mut random = Random::seeded();
    let ratio = |_| Some(drawn(after, &mut random)? / drawn(before, &mut random)?);
    middle((0..DRAWS).filter_map(ratio).collect())
}

/// The median of as many of `values`, drawn with replacement.
fn drawn(values: &[f64], random: &mut Random) -> Option<f64> {
    let draw: Vec<f64> = (0..values.len()).map(|_| values[random.below(values.len())]).collect();
    median(&draw)
}

/// Where the middle of what was drawn begins and ends.
fn middle(mut drawn: Vec<f64>) -> Option<(f64, f64)> {
    drawn.sort_by(f64::total_cmp);
    let at = |share: f64| drawn.get((share * drawn.len().checked_sub(1)? as f64).round() as usize).copied();
    at(TAIL).zip(at(1.0 - TAIL))
}

/// So many deviations from the median are far.
const FAR: u64 = 10;

/// The median absolute deviation of samples from their median, and how many lie more than ten of those above it; `None` of
/// none. Neither is moved by what disturbed a few samples.
pub fn deviation(samples: &Histogram) -> Option<(u64, u64)> {
    let middle = samples.quantile(0.5)?;
    let mut away = Histogram::new();
    samples.buckets().iter().for_each(|(value, count)| away.record_many(value.abs_diff(middle), *count));
    let mad = away.quantile(0.5)?;
    let limit = middle.saturating_add(FAR * mad);
    Some((mad, samples.buckets().iter().filter(|(value, _)| *value > limit).map(|(_, count)| count).sum()))
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): small, and good enough to draw with.
pub struct Random(u64);

impl Random {
    /// Draws the same each time: whoever asks twice gets one answer.
    pub fn seeded() -> Self {
        Self(0x5eed)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_launches_give_an_interval_around_their_median() {
        let values = [100.0, 104.0, 102.0, 101.0, 110.0];
        let (low, high) = interval(&values).unwrap();
        assert_eq!(median(&values), Some(102.0));
        assert!((100.0..102.0).contains(&low) && (102.0..=110.0).contains(&high), "{low} {high}");
        assert_eq!(interval(&values), Some((low, high)));
    }

    #[test]
    fn too_few_launches_have_no_interval_and_equal_ones_no_width() {
        assert_eq!((interval(&[1.0, 2.0]), median(&[1.0, 2.0]), median(&[])), (None, Some(1.5), None));
        assert_eq!(interval(&[7.0; 5]), Some((7.0, 7.0)));
    }

    #[test]
    fn a_ratio_has_the_doubt_of_both_sides() {
        let (one, two) = ([100.0, 104.0, 102.0, 101.0, 110.0], [205.0, 200.0, 210.0, 203.0, 204.0]);
        let (low, high) = ratio_interval(&one, &two).unwrap();
        assert!(low < 2.0 && high > 2.0 && low > 200.0 / 110.0 - 1e-9 && high < 210.0 / 100.0 + 1e-9, "{low} {high}");
        assert_eq!(ratio_interval(&[7.0; 4], &[21.0; 4]), Some((3.0, 3.0)));
        assert_eq!((ratio_interval(&one, &[1.0, 2.0]), ratio_interval(&[0.0; 4], &one)), (None, None));
    }

    #[test]
    fn the_deviation_is_that_of_most_samples_and_the_far_ones_are_counted() {
        let mut samples = Histogram::new();
        for (value, count) in [(90, 20), (100, 50), (104, 27), (150, 3), (9_000, 2)] {
            samples.record_many(value, count);
        }
        // Deviations: 0 fifty times, 4 of 27, 10 of 20: the middle one of 102 is 4, and 104 + 10 x 4 is passed by five.
        assert_eq!(deviation(&samples), Some((4, 5)));
        assert_eq!(deviation(&Histogram::new()), None);
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        // Launches drawn from 0..1000, whose median is 500: the interval of nine of them should hold it nearly always.
        let mut random = Random(1);
        let holds = (0..200).filter(|_| {
            let values: Vec<f64> = (0..9).map(|_| random.below(1_001) as f64).collect();
            interval(&values).is_some_and(|(low, high)| low <= 500.0 && high >= 500.0)
        });
        let holds = holds.count();
        assert!((180..=200).contains(&holds), "{holds} of 200");
    }
}
