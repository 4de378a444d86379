//! How likely is a difference as large as this, if there is none? Student's t.
//!
//! In: a difference in units of its standard error, and the degrees of freedom, which Welch's formula makes a fraction. Out: the
//! two-sided probability, by the regularized incomplete beta function: p = I(f / (f + t^2); f / 2, 1 / 2).
//! Source: Abramowitz and Stegun 26.7.1.

use super::beta::incomplete_beta;

/// Probability of a t as far from 0 as this, to either side.
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    let x = freedom / (freedom + t * t);
    incomplete_beta(x, freedom / 2.0, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_agree_with_the_printed_table() {
        // Abramowitz and Stegun, table 26.10: t whose tails on both sides hold so much.
        for (freedom, t, p) in [
            (1.0, 12.706, 0.05),
            (2.0, 4.303, 0.05),
            (4.0, 2.776, 0.05),
            (10.0, 2.228, 0.05),
            (30.0, 2.042, 0.05),
            (6.0, 3.707, 0.01),
            (6.0, 5.959, 0.001),
        ] {
            assert!((two_sided(t, freedom) / p - 1.0).abs() < 0.001, "{freedom}: {}", two_sided(t, freedom));
        }
        assert_eq!((two_sided(0.0, 3.0), two_sided(f64::INFINITY, 3.0)), (1.0, 0.0));
    }
}
