//! How likely is a difference as large as this, if there is none? Student's t.
//!
//! In: a difference in units of its standard error, and the degrees of freedom, which Welch's formula makes a fraction. Out: the
//! two-sided probability, by the regularized incomplete beta function: p = I(f / (f + t^2); f / 2, 1 / 2).
//! Source: Abramowitz and Stegun 26.7.1.

use super::beta::incomplete_beta;

/// Quantile 0.975 of the normal distribution.
const Z: f64 = 1.959_963_985;

/// Quantiles 0.975 of Student's t for 1 to 4 degrees of freedom, where the expansion is off by more than 0.2 %
/// (Abramowitz and Stegun, table 26.10).
const T_FEW: [f64; 4] = [12.706, 4.303, 3.182, 2.776];

/// Probability of a t as far from 0 as this, to either side.
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    let x = freedom / (freedom + t * t);
    incomplete_beta(x, freedom / 2.0, 0.5)
}

/// Quantile 0.975 of Student's t.
pub fn quantile(freedom: f64) -> f64 {
    if freedom < T_FEW.len() as f64 + 1.0 {
        // Between two whole numbers the lower one, which gives the wider interval; rounding must not lose a whole one.
        return T_FEW[((freedom + 1e-6).floor() as usize).clamp(1, T_FEW.len()) - 1];
    }
    let g1 = (Z.powi(3) + Z) / 4.0;
    let g2 = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
    let g3 = (3.0 * Z.powi(7) + 19.0 * Z.powi(5) + 17.0 * Z.powi(3) - 15.0 * Z) / 384.0;
    Z + g1 / freedom + g2 / freedom.powi(2) + g3 / freedom.powi(3)
}

/// The difference of the means of two sets that spread each in its own way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// Its 95 % interval.
    pub interval: (f64, f64),
    /// How likely a difference as large as this is if there is none.
    pub chance: f64,
}

impl Welch {
    /// The second mean less the first one. A set of one value is taken to spread as the other does; `None` of two such.
    /// Source: B. L. Welch, Biometrika 34 (1947).
    pub fn of(before: &[f64], after: &[f64]) -> Option<Self> {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let variance = |values: &[f64]| {
            let mean = mean(values);
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
        };
        let (n1, n2) = (before.len() as f64, after.len() as f64);
        let (spread, freedom) = match (before.len(), after.len()) {
            (0, _) | (_, 0) | (1, 1) => return None,
            (1, _) => ((variance(after) * (1.0 / n1 + 1.0 / n2)).sqrt(), n2 - 1.0),
            (_, 1) => ((variance(before) * (1.0 / n1 + 1.0 / n2)).sqrt(), n1 - 1.0),
            _ => {
                let (a, b) = (variance(before) / n1, variance(after) / n2);
                let freedom = (a + b).powi(2) / (a.powi(2) / (n1 - 1.0) + b.powi(2) / (n2 - 1.0));
                ((a + b).sqrt(), freedom)
            }
        };
        let difference = mean(after) - mean(before);
        if spread > 0.0 {
            let half = quantile(freedom) * spread;
            let interval = (difference - half, difference + half);
            return Some(Self { interval, chance: two_sided(difference / spread, freedom) });
        }
        // Without any spread there is no doubt left that repetition could show.
        Some(Self { interval: (difference, difference), chance: f64::from(u8::from(difference == 0.0)) })
    }
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

    #[test]
    fn a_difference_has_the_interval_that_welch_gives_it() {
        // By hand: 11.25 in errors of 1.0308 is t = 10.914 with 4.850 degrees of freedom; its chance by integrating the density with 200,000 steps.
        let welch = Welch::of(&[10.0, 12.0, 11.0], &[20.0, 22.0, 24.0, 23.0]).unwrap();
        assert!((welch.chance / 0.000_134_838 - 1.0).abs() < 0.001, "{welch:?}");
        // Of 4.85 the quantile of 4 is taken, which is 2.776.
        assert!((welch.interval.0 - 8.388).abs() < 0.01 && (welch.interval.1 - 14.112).abs() < 0.01, "{welch:?}");
        assert_eq!(Welch::of(&[1.0], &[2.0]), None);
        assert_eq!(Welch::of(&[1.0, 1.0], &[1.0, 1.0]).unwrap().chance, 1.0);
        let baseline = Welch::of(&[1.0, 1.2, 0.8], &[3.0]).unwrap();
        assert!(baseline.interval.0 > 0.0 && baseline.interval.1 > 2.0);
    }
}
