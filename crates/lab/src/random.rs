//! Draws that can be drawn again: what a seed gives it always gives.

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
pub struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).checked_rem(limit).unwrap_or(0)
    }

    /// Puts `all` into any order.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// `wanted` different numbers below `limit`, ascending; all of them where there are no more (Floyd, CACM 30, 1987).
    pub fn distinct(&mut self, wanted: u64, limit: u64) -> Vec<u64> {
        let wanted = wanted.min(limit);
        let mut drawn = std::collections::BTreeSet::new();
        for last in limit - wanted..limit {
            let number = self.below(last + 1);
            if !drawn.insert(number) {
                drawn.insert(last);
            }
        }
        drawn.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_and_another_one_something_else() {
        let drawn = |seed| Random::of(seed).distinct(20, 1_000);
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        assert_eq!(drawn(3).len(), 20);
        assert_eq!(Random::of(1).distinct(9, 4), [0, 1, 2, 3]);
        assert!(Random::of(1).distinct(9, 0).is_empty());
    }

    #[test]
    fn each_number_is_drawn_as_often_as_any_other() {
        let mut random = Random::of(7);
        let mut counts = [0_u32; 10];
        for _ in 0..10_000 {
            random.distinct(3, 10).into_iter().for_each(|number| counts[number as usize] += 1);
        }
        // 3,000 each, with a standard deviation of 46.
        assert!(counts.iter().all(|count| count.abs_diff(3_000) < 250), "{counts:?}");
        let mut all: Vec<u32> = (0..50).collect();
        random.shuffle(&mut all);
        assert_ne!(all, (0..50).collect::<Vec<_>>());
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
    }
}
