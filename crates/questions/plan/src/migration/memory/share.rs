//! How large is a share of all, if some of each part were looked at, and how well is that known?
//!
//! A sample that is drawn in each part: the share of all is the sum of the parts' shares by their sizes, and so is its variance. The
//! interval is Wilson's, which stays within 0 and 1 and is not empty where nothing was found, with as many observations as would give
//! that variance if they had been drawn of all at once.
//! Sources: Cochran, Sampling Techniques (1977), 5.6 and 2.8; Wilson, JASA 22 (1927); Korn and Graubard, Survey Methodology 24 (1998).

/// Of the standard normal distribution, both sides: 95 % lie within.
pub(super) const Z: f64 = 1.96;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Drawn {
    pub all: f64,
    /// How many of these were looked at.
    pub sampled: f64,
    pub found: f64,
}

/// A share with its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Share {
    /// As likely as not.
    pub share: f64,
    /// It is hardly less.
    pub low: f64,
    pub high: f64,
}

impl Share {
    /// That of all parts; `None` if nothing was drawn of one that has something.
    pub fn of(parts: &[Drawn]) -> Option<Self> {
        let parts: Vec<&Drawn> = parts.iter().filter(|part| part.all > 0.0).collect();
        let all: f64 = parts.iter().map(|part| part.all).sum();
        if parts.is_empty() || parts.iter().any(|part| part.sampled <= 0.0) {
            return None;
        }
        let sum = |of: &dyn Fn(&Drawn) -> f64| parts.iter().map(|part| of(part)).sum::<f64>();
        let share = sum(&|part| part.all / all * part.found / part.sampled);
        // Of a part in which nothing was found, or everything, the variance is not 0.
        let near = |part: &Drawn| (part.found + 1.0) / (part.sampled + 2.0);
        let variance = sum(&|part| {
            let left = (1.0 - part.sampled / part.all).max(0.0);
            (part.all / all).powi(2) * left * near(part) * (1.0 - near(part)) / part.sampled
        });
        if variance <= 0.0 {
            return Some(Self::exactly(share));
        }
        let mean = sum(&|part| part.all / all * near(part));
        let (low, high) = wilson(share, mean * (1.0 - mean) / variance);
        Some(Self { share, low, high })
    }

    pub fn exactly(share: f64) -> Self {
        Self { share, low: share, high: share }
    }

    /// That of a whole of which this is the share of a part, besides what is certain.
    pub fn within(self, part: f64, certain: f64) -> Self {
        let [share, low, high] = [self.share, self.low, self.high].map(|one| certain + part * one);
        Self { share, low, high }
    }
}

fn wilson(share: f64, observations: f64) -> (f64, f64) {
    let square = Z * Z / observations;
    let middle = (share + square / 2.0) / (1.0 + square);
    let half = Z / (1.0 + square) * (share * (1.0 - share) / observations + square / (4.0 * observations)).sqrt();
    ((middle - half).max(0.0).min(share), (middle + half).min(1.0).max(share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::statistics::spread::Random;

    #[test]
    fn of_one_part_it_is_wilsons_interval() {
        // Wilson's interval of 10 of 100, which are few of very many: 0.0552 to 0.1744 (Newcombe, Statistics in Medicine 17, 1998, gives the method).
        let (low, high) = wilson(0.1, 100.0);
        assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4, "{low} {high}");
        let nothing = Share::of(&[Drawn { all: 1e9, sampled: 100.0, found: 0.0 }]).unwrap();
        assert!(nothing.low == 0.0 && nothing.high > 0.01 && nothing.high < 0.06, "{nothing:?}");
    }

    #[test]
    fn what_was_looked_at_whole_is_known_and_what_was_not_is_not() {
        let whole = [Drawn { all: 60.0, sampled: 60.0, found: 30.0 }, Drawn { all: 40.0, sampled: 40.0, found: 0.0 }];
        assert_eq!(Share::of(&whole), Some(Share::exactly(0.3)));
        assert_eq!(Share::of(&[whole[0], Drawn { all: 5.0, ..Drawn::default() }]), None);
        assert_eq!(Share::of(&[whole[0], Drawn::default()]), Some(Share::exactly(0.5)), "an empty part has no share");
        assert_eq!(Share::of(&[]), None);
        let within = Share { share: 0.5, low: 0.4, high: 0.6 }.within(0.2, 0.7);
        assert!((within.share - 0.8).abs() < 1e-12 && (within.high - 0.82).abs() < 1e-12);
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_truth() {
        // A GiB nearly all of zeros, one of which a third is, and a small rest of which nothing is.
        let truth = [(262_144.0, 0.97), (262_144.0, 0.33), (30_000.0, 0.0)];
        let all: f64 = truth.iter().map(|(all, _)| all).sum();
        let share: f64 = truth.iter().map(|(size, share)| size / all * share).sum();
        let mut random = Random::seeded();
        let mut held = 0;
        for _ in 0..2_000 {
            let parts = truth.map(|(all, share)| {
                let found = (0..200).filter(|_| (random.below(1_000_000) as f64) < share * 1e6).count();
                Drawn { all, sampled: 200.0, found: found as f64 }
            });
            let said = Share::of(&parts).unwrap();
            held += u32::from((said.low..=said.high).contains(&share));
        }
        assert!((1_860..=1_980).contains(&held), "{held} of 2,000");
    }
}
