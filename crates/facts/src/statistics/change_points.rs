//! Where does a series of numbers change its level?
//!
//! ```text
//! values   5 6 5 7 6 5 | 9 8 9 10 9       ranks r; U_k = 2 (r_1 + .. + r_k) - k (n + 1) is far from 0 where low ranks end
//! then the same of either side, as long as a split is rarer than what is accepted
//! ```
//! By ranks, so that one wild value makes no change; the chance is that of as large a max |U_k| among orders of the same values, drawn at random.
//! Sources: A. N. Pettitt, "A non-parametric approach to the change-point problem", Applied Statistics 28 (1979); for drawn orders Phipson and
//! Smyth (2010), as in `permutation`; binary segmentation after Scott and Knott, Biometrics 30 (1974).

use super::spread::Random;

/// Fewer values on either side of a change are none.
pub const LEAST: usize = 3;
/// Orders that are drawn.
const DRAWS: u32 = 9_999;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Place of the first value of the new level.
    pub at: usize,
    /// How likely a split as clear as this is in a series without any.
    pub chance: f64,
}

/// The clearest split; `None` of too few values.
pub fn clearest(values: &[f64]) -> Option<ChangePoint> {
    let mut ranks = ranks(values);
    let (at, seen) = largest(&ranks)?;
    let (mut random, mut as_clear) = (Random::seeded(), 1_u32);
    for _ in 0..DRAWS {
        for place in (1..ranks.len()).rev() {
            ranks.swap(place, random.below(place + 1));
        }
        as_clear += u32::from(largest(&ranks).is_some_and(|(_, other)| other >= seen));
    }
    Some(ChangePoint { at, chance: f64::from(as_clear) / f64::from(DRAWS + 1) })
}

/// All splits that are rarer than `accepted`, in order.
pub fn all(values: &[f64], accepted: f64) -> Vec<ChangePoint> {
    let Some(one) = clearest(values).filter(|one| one.chance <= accepted) else { return Vec::new() };
    let (before, after) = values.split_at(one.at);
    let mut found = all(before, accepted);
    found.push(one);
    found.extend(all(after, accepted).into_iter().map(|later| ChangePoint { at: later.at + one.at, ..later }));
    found
}

/// Where |U_k| is largest, and how large.
fn largest(ranks: &[f64]) -> Option<(usize, f64)> {
    let (mut sum, mut most) = (0.0, None);
    for (place, rank) in ranks.iter().enumerate() {
        sum += rank;
        let before = place + 1;
        if before < LEAST || ranks.len() - before < LEAST {
            continue;
        }
        let size = (2.0 * sum - before as f64 * (ranks.len() + 1) as f64).abs();
        if most.is_none_or(|(_, largest)| size > largest) {
            most = Some((before, size));
        }
    }
    most
}

/// Ranks from 1; equal values share the middle of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    for alike in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let first = order.iter().position(|place| *place == alike[0]).unwrap_or_default();
        let middle = first as f64 + (alike.len() + 1) as f64 / 2.0;
        alike.iter().for_each(|place| ranks[*place] = middle);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_changes_is_found_where_it_does_and_a_wild_value_is_none() {
        let steps = [5.0, 6.0, 5.2, 7.0, 6.1, 5.5, 9.0, 8.0, 9.1, 10.0, 9.5, 8.8];
        let found = all(&steps, 0.05);
        assert_eq!(found.iter().map(|one| one.at).collect::<Vec<_>>(), [6]);
        let wild = [5.0, 6.0, 5.2, 900.0, 6.1, 5.5, 5.3, 6.2, 5.9, 5.1, 6.3, 5.4];
        assert_eq!(all(&wild, 0.05), []);
        assert_eq!(clearest(&[1.0, 1.0, 1.0, 2.0, 2.0]), None, "two are too few");
        assert_eq!(all(&[3.0; 20], 0.05), []);
    }

    #[test]
    fn two_changes_are_both_found() {
        let level = |value: f64| (0..12).map(move |number| value + f64::from(number % 3) * 0.1);
        let values: Vec<f64> = level(1.0).chain(level(3.0)).chain(level(2.0)).collect();
        assert_eq!(all(&values, 0.01).iter().map(|one| one.at).collect::<Vec<_>>(), [12, 24]);
    }

    #[test]
    fn a_series_without_a_change_is_claimed_to_have_one_in_at_most_one_case_of_twenty() {
        const TRIALS: u32 = 300;
        let mut random = Random::seeded();
        let claims = (0..TRIALS).filter(|_| {
            let values: Vec<f64> = (0..16).map(|_| random.below(1_000_000) as f64).collect();
            clearest(&values).is_some_and(|one| one.chance <= 0.05)
        });
        // 15 of 300 are expected; 3.3 deviations more are 27.
        assert!(claims.count() <= 27);
    }
}
