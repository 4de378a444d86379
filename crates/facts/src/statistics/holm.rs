//! Which of many tests hold together? The chance of one false claim or more among all of them is [`CHANCE`].
//!
//! Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).

/// The chance that is taken of calling anything a change where nothing changed.
pub const CHANCE: f64 = 0.05;

/// Whether each of `tests`, given by its own chance, holds.
pub fn hold(tests: &[f64]) -> Vec<bool> {
    let mut order: Vec<(usize, f64)> = tests.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let holds =
        order.iter().enumerate().take_while(|(rank, (_, chance))| *chance <= CHANCE / (tests.len() - rank) as f64);
    let mut hold = vec![false; tests.len()];
    holds.for_each(|(_, (at, _))| hold[*at] = true);
    hold
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_fails_ends_it() {
        // As Holm's procedure is worked out by hand: 0.05 / 4 = 0.0125, / 3 = 0.0167, / 2 = 0.025.
        assert_eq!(hold(&[0.01, 0.04, 0.03, 0.005]), [true, false, false, true]);
        assert_eq!(hold(&[0.02, 0.04]), [true, true], "each by its own limit");
        assert_eq!(hold(&[0.04, 0.03]), [false, false]);
        assert_eq!(hold(&[]), [false; 0]);
    }
}
