//! How large may a share be, of which so few of so many samples were seen?
//!
//! In: samples, and how many of them were over a limit. Out: the one-sided upper bound on the share of all samples there could
//! be, by Clopper and Pearson ("The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika
//! 26, 1934): the share at which so few would be seen with a probability of 1 - confidence. It is exact for independent
//! samples, and never too low for any share.

use super::beta::incomplete_beta;

/// The upper bound on the share of which `seen` of `samples` were seen; `None` without samples.
pub fn upper_bound(seen: u64, samples: u64, confidence: f64) -> Option<f64> {
    if samples == 0 {
        return None;
    }
    if seen >= samples {
        return Some(1.0);
    }
    if seen == 0 {
        // (1 - share)^samples = 1 - confidence.
        return Some(-((-confidence).ln_1p() / samples as f64).exp_m1());
    }
    // More than `seen` are seen with the probability I(share; seen + 1, samples - seen), which grows with the share. Positive
    // floating-point numbers are in the order of their bits: 62 steps find the last of them.
    let more = |bits: u64| incomplete_beta(f64::from_bits(bits), seen as f64 + 1.0, (samples - seen) as f64);
    let (mut below, mut above) = (0, 1.0_f64.to_bits());
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if more(middle) < confidence {
            below = middle;
        } else {
            above = middle;
        }
    }
    Some(f64::from_bits(above))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bound(seen: u64, samples: u64) -> f64 {
        upper_bound(seen, samples, 0.95).unwrap()
    }

    #[test]
    fn bounds_are_those_that_were_computed_elsewhere() {
        // The seed's numbers of the latency goals, to the digits that are printed there.
        for (seen, samples, printed) in
            [(0, 120_000, "2.50e-5"), (0, 3_600_000, "8.32e-7"), (0, 79_810_183, "3.75e-8"), (5, 79_810_183, "1.32e-7")]
        {
            assert_eq!(format!("{:.2e}", bound(seen, samples)), printed, "{seen} of {samples}");
        }
        // A share of 1 in 1,000,000 is out of the question from here on; published for this size of sample.
        assert!(bound(0, 2_995_732) < 1e-6 && bound(0, 2_995_000) > 1e-6);
    }

    #[test]
    fn without_samples_nothing_is_bounded_and_all_seen_is_everything() {
        assert_eq!(upper_bound(0, 0, 0.95), None);
        assert_eq!((upper_bound(7, 7, 0.95), upper_bound(9, 7, 0.95)), (Some(1.0), Some(1.0)));
    }

    /// The probability of at most `seen` of `samples`, term by term.
    fn at_most(seen: u64, samples: u64, share: f64) -> f64 {
        let mut term = (1.0 - share).powi(samples as i32);
        let mut sum = term;
        for k in 0..seen {
            term *= (samples - k) as f64 / (k + 1) as f64 * share / (1.0 - share);
            sum += term;
        }
        sum
    }

    proptest! {
        #[test]
        fn at_the_bound_so_few_are_as_rare_as_wanted(samples in 1u64..150, part in 0.0..0.8f64, confidence in 0.5..0.999f64) {
            let seen = (part * samples as f64) as u64;
            prop_assume!(seen < samples);
            let share = upper_bound(seen, samples, confidence).unwrap();
            let so_few = at_most(seen, samples, share);
            prop_assert!((so_few - (1.0 - confidence)).abs() < 1e-9, "{} of {}: {}", seen, samples, so_few);
        }

        #[test]
        fn fewer_samples_and_more_seen_bound_less(seen in 0u64..1_000, samples in 1_000u64..100_000_000, more in 1u64..1_000_000) {
            let here = bound(seen, samples);
            prop_assert!(bound(seen, samples + more) < here);
            prop_assert!(bound(seen + 1, samples) > here);
        }
    }
}
