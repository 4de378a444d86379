//! The lines between bounds: all of them, and none else.

use kvmscope_analysis::facts::align::hull::{Point, Region};
use kvmscope_analysis::facts::align::lines::{Bound, Lines};
use proptest::prelude::*;

const SLOPES: (f64, f64) = (0.5, 2.0);

/// Bounds around the line through (0, `b`) of slope `a`, by distances below and above it.
fn around(a: f64, b: f64, slack: &[(u32, u16, bool)]) -> (Vec<Point>, Vec<Point>) {
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    let mut x = 0.0;
    for (dx, distance, is_lower) in slack {
        x += f64::from(*dx);
        let y = a * x + b;
        if *is_lower {
            lower.push((x, (y - f64::from(*distance)).floor()))
        } else {
            upper.push((x, (y + f64::from(*distance)).ceil()))
        }
    }
    (lower, upper)
}

fn obeys(a: f64, b: f64, lower: &[Point], upper: &[Point], slack: f64) -> bool {
    lower.iter().all(|(x, y)| a * x + b >= y - slack) && upper.iter().all(|(x, y)| a * x + b <= y + slack)
}

proptest! {
    #[test]
    fn hold_the_true_line_everywhere(
        a in 0.6f64..1.9, b in -1_000_000f64..1_000_000.0,
        slack in prop::collection::vec((0u32..100_000, 0u16..5_000, any::<bool>()), 4..80),
        at in prop::collection::vec(-1_000_000f64..10_000_000.0, 8),
    ) {
        let (lower, upper) = around(a, b, &slack);
        prop_assume!(!lower.is_empty() && !upper.is_empty());
        let region = Region::between(&lower, &upper, SLOPES).expect("the true line obeys all bounds");
        for x in at {
            let (low, high) = region.at(x);
            let y = a * x + b;
            prop_assert!(low - 0.01 <= y && y <= high + 0.01, "{y} is not in {low} to {high} at {x}");
        }
        let (flat, steep) = region.slopes();
        prop_assert!(flat <= a + 1e-9 && a <= steep + 1e-9);
    }

    #[test]
    fn reach_as_far_as_a_line_can(
        a in 0.6f64..1.9, b in -1_000f64..1_000.0,
        slack in prop::collection::vec((1u32..1_000, 1u16..500, any::<bool>()), 4..30),
        tries in prop::collection::vec((-0.2f64..0.2, -600f64..600.0), 60),
        x in -5_000f64..40_000.0,
    ) {
        let (lower, upper) = around(a, b, &slack);
        prop_assume!(!lower.is_empty() && !upper.is_empty());
        let region = Region::between(&lower, &upper, SLOPES).unwrap();
        let (low, high) = region.at(x);
        for (da, db) in tries {
            let (a, b) = (a + da, b + db);
            if obeys(a, b, &lower, &upper, 0.0) && (SLOPES.0..=SLOPES.1).contains(&a) {
                let y = a * x + b;
                prop_assert!(low - 0.01 <= y && y <= high + 0.01, "{y} is not in {low} to {high}");
            }
        }
        // Both ends are reached by a line that obeys.
        let ends = [low, high].map(|y| {
            (0..=2_000).any(|step| {
                let (flat, steep) = region.slopes();
                let a = flat + (steep - flat) * f64::from(step) / 2_000.0;
                obeys(a, y - a * x, &lower, &upper, 1.0 + (steep - flat) * 40_000.0 / 2_000.0)
            })
        });
        prop_assert_eq!(ends, [true, true]);
    }

    #[test]
    fn there_is_none_through_bounds_that_cross(
        a in 0.6f64..1.9, slack in prop::collection::vec((1u32..1_000, 1u16..500, any::<bool>()), 4..30), place in any::<prop::sample::Index>(),
    ) {
        let (lower, mut upper) = around(a, 0.0, &slack);
        prop_assume!(!lower.is_empty() && !upper.is_empty());
        let (x, y) = lower[place.index(lower.len())];
        upper.push((x, y - 1.0));
        upper.sort_by(|one, other| one.0.total_cmp(&other.0));
        prop_assert!(Region::between(&lower, &upper, SLOPES).is_none());
    }
}

#[test]
fn a_step_splits_the_bounds_where_it_is() {
    let of = |x: u64, step: u64| {
        let (low, high) = (x + step, x + step + 10);
        [Bound { x, y: low, is_lower: true }, Bound { x: x + 1, y: high, is_lower: false }]
    };
    let bounds: Vec<Bound> = (0..400).flat_map(|n| of(100 * n, if n < 250 { 7 } else { 100_007 })).collect();
    assert!(Lines::one(&bounds, (0.999, 1.001)).is_none());
    let lines = Lines::split(&bounds, (0.999, 1.001)).unwrap();
    assert_eq!((lines.len(), lines.jump()), (2, true));
    let (low, high) = lines.at(10_000);
    assert!(low >= 10_006 && high <= 10_018, "{low} to {high}");
    let (low, high) = lines.at(24_950);
    assert!(low < 25_000 && high > 124_000, "between the two either may hold: {low} to {high}");
}

#[test]
fn the_counter_of_a_host_up_for_years_is_placed_to_the_tick() {
    let (x0, y0) = (1u64 << 60, (1u64 << 61) + 12_345);
    let bound = |n: u64, is_lower: bool| {
        let y = if is_lower { y0 + 1_000 * n - 2 } else { y0 + 1_000 * n + 2 };
        Bound { x: x0 + 1_000 * n, y, is_lower }
    };
    let bounds: Vec<Bound> = (0..500).map(|n| bound(n, n % 2 == 0)).collect();
    let (low, high) = Lines::one(&bounds, (0.999, 1.001)).unwrap().at(x0 + 250_000);
    assert!(low >= y0 + 250_000 - 4 && high <= y0 + 250_000 + 4 && low <= high, "{low} to {high}");
}
