//! Numbers that look random and are the same for the same seed on every machine.
//!
//! SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).

/// A generator of numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// A number in `[from, to)`; `from` if that is empty.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        if to > from { from + self.word() % (to - from) } else { from }
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.between(0, n.max(1)) == 0
    }

    /// One of `choices`.
    ///
    /// # Panics
    /// If there is nothing to choose from.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.between(0, choices.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let first: Vec<u64> = std::iter::repeat_with({
            let mut random = Random::new(1);
            move || random.word()
        })
        .take(3)
        .collect();
        let mut again = Random::new(1);
        assert_eq!(first, [again.word(), again.word(), again.word()]);
        assert_ne!(first[0], Random::new(2).word());
    }
}
