//! Could a difference between two sets of runs be chance? Permutation test.
//!
//! ```text
//! before  37 49 55 57  mean 49.5      If the change did nothing, any other way to deal these values into a set of four and a set
//! after   23 31 46     mean 33.3      of three is as likely: p is the share of all ways whose means differ as much as these do.
//! ```
//! No distribution is assumed, only that runs of both sets were taken alike: in turns. All ways are counted where they are few, else a
//! fixed number of them is drawn, the one that was seen among them.
//!
//! Sources: E. J. G. Pitman, "Significance tests which may be applied to samples from any populations", Supplement to the Journal of the
//! Royal Statistical Society 4 (1937); for drawn ways B. Phipson, G. K. Smyth, "Permutation p-values should never be zero",
//! Statistical Applications in Genetics and Molecular Biology 9 (2010).

use super::spread::Random;

/// So many ways are counted, those of ten runs a side; of more, so many are drawn.
const MOST_WAYS: u64 = 184_756;

/// Sums of the same values in another order differ by rounding alone.
const ROUNDING: f64 = 1e-9;

/// The probability of means that differ as much as these, to either side, if nothing changed; `None` if a side has no run.
pub(crate) fn permutation(before: &[f64], after: &[f64]) -> Option<f64> {
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let all = [before, after].concat();
    let total: f64 = all.iter().sum();
    let differs = |sum: f64| (sum / before.len() as f64 - (total - sum) / after.len() as f64).abs();
    let scale = all.iter().map(|value| value.abs()).fold(0.0, f64::max);
    let seen = differs(before.iter().sum()) - ROUNDING * scale;
    Some(match ways(before.len(), after.len()) {
        Some(ways) => {
            let mut as_far = 0_u64;
            each_way(&all, before.len(), 0.0, &mut |sum| as_far += u64::from(differs(sum) >= seen));
            as_far as f64 / ways as f64
        }
        None => {
            let (mut dealt, mut random, mut as_far) = (all.clone(), Random::seeded(), 1_u64);
            for _ in 0..MOST_WAYS {
                for place in 0..before.len() {
                    dealt.swap(place, place + random.below(all.len() - place));
                }
                as_far += u64::from(differs(dealt[..before.len()].iter().sum()) >= seen);
            }
            as_far as f64 / (MOST_WAYS + 1) as f64
        }
    })
}

/// The least probability that so many runs a side can give: that of sets which do not overlap.
pub(crate) fn least(runs: usize) -> f64 {
    // Mirrored, they are as far apart.
    2.0 / ways(runs, runs).unwrap_or(MOST_WAYS).max(2) as f64
}

/// In how many ways so many values can be dealt into two sets; `None`: in more than are counted.
fn ways(one: usize, other: usize) -> Option<u64> {
    let mut ways = 1_u64;
    for k in 1..=one.min(other) as u64 {
        // Whole at each step: a product of k neighbours is a multiple of k!.
        ways = ways.checked_mul(one.max(other) as u64 + k)? / k;
        if ways > MOST_WAYS {
            return None;
        }
    }
    Some(ways)
}

/// Tells the sum of every set of `count` of `values`, added to `sum`.
fn each_way(values: &[f64], count: usize, sum: f64, tell: &mut impl FnMut(f64)) {
    if count == 0 {
        return tell(sum);
    }
    for first in 0..=values.len() - count {
        each_way(&values[first + 1..], count - 1, sum + values[first], tell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_by_hand_or_by_another_program_is_what_comes_out() {
        // By a loop over itertools.combinations in Python: of 35 ways 4 differ by as much; of 70, 252 and 924 the two extreme ones.
        for (before, after, as_far, of) in [
            (&[37.0, 49.0, 55.0, 57.0][..], &[23.0, 31.0, 46.0][..], 4, 35),
            (&[1.0, 2.0, 3.0, 4.0], &[11.0, 12.0, 13.0, 14.0], 2, 70),
            (&[0.1, 0.2, 0.3, 0.4, 0.5], &[0.5, 0.4, 0.3, 0.2, 0.1], 252, 252),
            (&[5.0, 1.0, 9.0, 2.0, 7.0, 3.0], &[4.0, 8.0, 6.0, 2.5, 1.5, 10.0], 626, 924),
            (&[7.0, 7.0], &[7.0, 7.0, 7.0], 10, 10),
        ] {
            let p = permutation(before, after).unwrap();
            assert!(
                (p - f64::from(as_far) / f64::from(of)).abs() < 1e-12,
                "{before:?} {after:?}: {}",
                p * f64::from(of)
            );
        }
        assert_eq!((permutation(&[], &[1.0]), permutation(&[1.0], &[])), (None, None));
    }

    #[test]
    fn as_few_runs_as_can_find_anything_are_known() {
        assert_eq!([least(1), least(4), least(6)], [1.0, 2.0 / 70.0, 2.0 / 924.0]);
        assert_eq!(permutation(&[1.0, 2.0, 3.0, 4.0], &[9.0, 8.0, 7.0, 6.0]), Some(least(4)));
    }

    #[test]
    fn where_ways_are_drawn_they_say_what_all_would() {
        let side = |from: u64| -> Vec<f64> { (0..12).map(|run| ((from + run * 7_919) % 101) as f64).collect() };
        let (one, other) = (side(3), side(50));
        let drawn = permutation(&one, &other).unwrap();
        let (mut as_far, mut of) = (0_u32, 0_u32);
        let all = [one.clone(), other.clone()].concat();
        let total: f64 = all.iter().sum();
        let seen = (2.0 * one.iter().sum::<f64>() - total).abs();
        each_way(&all, 12, 0.0, &mut |sum| {
            of += 1;
            as_far += u32::from((2.0 * sum - total).abs() >= seen - 1e-6);
        });
        assert_eq!(of, 2_704_156);
        assert!((drawn - f64::from(as_far) / f64::from(of)).abs() < 0.01, "{drawn} {as_far}");
        let apart = permutation(&[1.0; 12], &[2.0; 12]).unwrap();
        assert!(apart > 0.0 && apart < 1e-4, "never zero: {apart}");
    }
}
