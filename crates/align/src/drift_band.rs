//! A guest's clock that drifts now this way, now that way, but never fast: bounds by a largest drift.
//!
//! A counter that KVM finds unsteady is set a little at every load of the vCPU: small steps that no bound shows, and that
//! add up to a curve. A line through its bounds may obey all of them and still lie beside it. If the rate stays within two
//! slopes, each bound tells something of every other time, the less the farther it is:
//!
//! ```text
//! time |          v  .'  from an upper bound: at most the steep slope later, at least the flat one earlier
//! below|      .'  .'
//!      |   ^ .'          from a lower bound: at least the flat slope later, at most the steep one earlier
//! ```

use super::lines::Bound;

/// What bounds say of a clock whose rate stays within two slopes.
#[derive(Debug, Clone)]
pub struct DriftBand {
    /// Times are counted from here, so that a float holds them exactly.
    origin: (u64, u64),
    slopes: (f64, f64),
    times: Vec<f64>,
    /// For each: what lower bounds up to it say, as y at the origin along the flat slope, and upper ones along the steep.
    before: Vec<(f64, f64)>,
    /// What lower bounds from it on say along the steep slope, and upper ones along the flat.
    behind: Vec<(f64, f64)>,
}

impl DriftBand {
    /// The band between bounds sorted by x; `None` if they contradict each other, or if a side has none.
    pub fn between(bounds: &[Bound], slopes: (f64, f64)) -> Option<Self> {
        let origin = bounds.first().map(|first| (first.x, first.y))?;
        let near = |value: u64, origin: u64| (i128::from(value) - i128::from(origin)) as f64;
        let times: Vec<f64> = bounds.iter().map(|bound| near(bound.x, origin.0)).collect();
        let nothing = (f64::NEG_INFINITY, f64::INFINITY);
        let narrowed = |known: (f64, f64), place: usize, (lower, upper): (f64, f64)| {
            let (bound, x) = (&bounds[place], times[place]);
            let y = near(bound.y, origin.1);
            if bound.is_lower { (known.0.max(y - lower * x), known.1) } else { (known.0, known.1.min(y - upper * x)) }
        };
        let scan = |known: &mut (f64, f64), place: usize, along: (f64, f64)| {
            *known = narrowed(*known, place, along);
            Some(*known)
        };
        let (flat, steep) = slopes;
        let before = (0..times.len()).scan(nothing, |known, place| scan(known, place, (flat, steep))).collect();
        let mut behind: Vec<(f64, f64)> =
            (0..times.len()).rev().scan(nothing, |known, place| scan(known, place, (steep, flat))).collect();
        behind.reverse();
        let band = Self { origin, slopes, times, before, behind };
        let is_open = |bound: &Bound| band.at(bound.x).is_some_and(|(low, high)| low <= high);
        bounds.iter().all(is_open).then_some(band)
    }

    /// The earliest and the latest time below at `x`, rounded outwards; `None` where a side has no bound.
    pub fn at(&self, x: u64) -> Option<(u64, u64)> {
        let near = (i128::from(x) - i128::from(self.origin.0)) as f64;
        let (flat, steep) = self.slopes;
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        if let Some(last) = self.times.partition_point(|time| *time <= near).checked_sub(1) {
            let (lower, upper) = self.before[last];
            (low, high) = (lower + flat * near, upper + steep * near);
        }
        if let Some((lower, upper)) = self.behind.get(self.times.partition_point(|time| *time < near)) {
            (low, high) = (low.max(lower + steep * near), high.min(upper + flat * near));
        }
        let far = |y: f64| self.origin.1.saturating_add_signed(y as i64);
        (low.is_finite() && high.is_finite()).then(|| (far(low.floor()), far(high.ceil())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOPES: (f64, f64) = (0.5, 2.0);

    fn bounds(points: &[(u64, u64, bool)]) -> Vec<Bound> {
        points.iter().map(|(x, y, is_lower)| Bound { x: *x, y: *y, is_lower: *is_lower }).collect()
    }

    #[test]
    fn a_bound_says_less_the_farther_it_is() {
        let band = DriftBand::between(&bounds(&[(100, 1_000, true), (100, 1_010, false)]), SLOPES).unwrap();
        assert_eq!(band.at(100), Some((1_000, 1_010)));
        assert_eq!(band.at(120), Some((1_010, 1_050)), "at least half as fast, at most twice");
        assert_eq!(band.at(80), Some((960, 1_000)));
    }

    #[test]
    fn a_curve_lies_inside_and_a_line_through_its_bounds_does_not() {
        // Slower first, then faster: bounds are tight at the ends and wide in the middle.
        let truth = |x: u64| if x < 1_000 { 10_000 + x * 8 / 10 } else { 10_800 + (x - 1_000) * 12 / 10 };
        let wide = |x: u64| if x == 1_000 { 300 } else { 5 };
        let points: Vec<(u64, u64, bool)> = [0, 1_000, 2_000]
            .into_iter()
            .flat_map(|x| [(x, truth(x) - wide(x), true), (x, truth(x) + wide(x), false)])
            .collect();
        let bounds = bounds(&points);
        let line = super::super::lines::Lines::one(&bounds, SLOPES).unwrap();
        assert!(line.at(1_000).0 > truth(1_000), "the line obeys all bounds");
        let band = DriftBand::between(&bounds, SLOPES).unwrap();
        for x in (0..2_000).step_by(50) {
            let (low, high) = band.at(x).unwrap();
            assert!((low..=high).contains(&truth(x)), "{x}: {low} to {high}, true {}", truth(x));
        }
    }

    #[test]
    fn bounds_that_no_such_clock_obeys_give_nothing() {
        assert!(DriftBand::between(&bounds(&[(0, 0, false), (10, 30, true)]), SLOPES).is_none(), "too fast");
        assert!(DriftBand::between(&bounds(&[(0, 100, true), (100, 140, false)]), SLOPES).is_none(), "too slow");
        assert!(DriftBand::between(&bounds(&[(0, 100, true)]), SLOPES).is_none(), "nothing above");
    }
}
