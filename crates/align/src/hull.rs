//! Which straight lines lie above all lower bounds and below all upper bounds?
//!
//! In:  points (x, least y) and (x, most y), x a time on one clock, y on the other. Out: all lines y = a x + b that obey
//! them, as the corners of a convex polygon in the plane of (a, b): at every x the line with the largest and the one with
//! the smallest y are corners, so half their distance is the error there. It grows away from the points.
//!
//! ```text
//! y |        o   o    upper bounds; their lower convex hull
//!   |   o  .....-----
//!   | ....------  x   lower bounds; their upper convex hull
//!   |--- x   x        the lines between them: from the flattest to the steepest
//!   +-------------- x
//! ```
//! A. Duda et al., Estimating global time in distributed systems, ICDCS 1987; B. Poirier, R. Roy, M. Dagenais, Accurate
//! offline synchronization of distributed traces, ACM SIGOPS OSR 44(3), 2010.

#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// x is counted from here; y too, from `y0`.
    x0: f64,
    y0: f64,
    /// Corners: slope and intercept.
    corners: Vec<(f64, f64)>,
}

/// A bound at one x.
pub type Point = (f64, f64);

impl Region {
    /// The lines of slopes in `slopes` between the bounds, each list sorted by x; `None` if there is none.
    ///
    /// Coordinates must be whole numbers below 2^53, so that differences are exact.
    pub fn between(lower: &[Point], upper: &[Point], slopes: (f64, f64)) -> Option<Self> {
        let (x0, y0) = *lower.first().or(upper.first())?;
        let near = |points: &[Point]| -> Vec<Point> { points.iter().map(|(x, y)| (x - x0, y - y0)).collect() };
        // Of lower bounds at one x the largest y counts; turned upside down the upper bounds are the same problem.
        let low = hull(&near(lower));
        let high: Vec<Point> = hull(&near(upper).iter().map(|(x, y)| (*x, -y)).collect::<Vec<_>>());
        // For a slope a the intercepts between the bounds: [floor(a), ceiling(a)].
        let floor = |a: f64| low.iter().map(|(x, y)| y - a * x).fold(f64::NEG_INFINITY, f64::max);
        let ceiling = |a: f64| -high.iter().map(|(x, y)| y + a * x).fold(f64::NEG_INFINITY, f64::max);
        let mut breaks: Vec<f64> = vec![slopes.0, slopes.1];
        breaks.extend(low.windows(2).map(slope));
        breaks.extend(high.windows(2).map(|two| -slope(two)));
        breaks.retain(|a| (slopes.0..=slopes.1).contains(a));
        breaks.sort_unstable_by(f64::total_cmp);
        breaks.dedup();
        let gap = |a: f64| ceiling(a) - floor(a);
        if low.is_empty() || high.is_empty() {
            return None;
        }
        let mut corners = Vec::new();
        for two in breaks.windows(2) {
            let (left, right) = (gap(two[0]), gap(two[1]));
            // The gap is linear in between: where it becomes 0 lies the flattest or the steepest line.
            if (left < 0.0) != (right < 0.0) {
                let a = two[0] + (two[1] - two[0]) * left / (left - right);
                let b = (floor(a) + ceiling(a)) / 2.0;
                corners.push((a, b));
            }
        }
        let mut corner_at = |a: f64| {
            if gap(a) >= 0.0 {
                corners.extend([(a, floor(a)), (a, ceiling(a))]);
            }
        };
        breaks.iter().for_each(|a| corner_at(*a));
        (!corners.is_empty()).then_some(Self { x0, y0, corners })
    }

    /// The least and the largest y that a feasible line has at `x`.
    pub fn at(&self, x: f64) -> (f64, f64) {
        let values = self.corners.iter().map(|(a, b)| a * (x - self.x0) + b);
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
        (low + self.y0, high + self.y0)
    }

    /// The flattest and the steepest slope.
    pub fn slopes(&self) -> (f64, f64) {
        let slopes = self.corners.iter().map(|(a, _)| *a);
        slopes.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), a| (low.min(a), high.max(a)))
    }
}

fn slope(two: &[Point]) -> f64 {
    (two[1].1 - two[0].1) / (two[1].0 - two[0].0)
}

/// The upper convex hull of points sorted by x.
fn hull(points: &[Point]) -> Vec<Point> {
    let mut hull: Vec<Point> = Vec::new();
    for &(x, y) in points {
        if let Some(last) = hull.last().filter(|last| last.0 == x) {
            if last.1 >= y {
                continue;
            }
            hull.pop();
        }
        while let [.., first, middle] = hull[..] {
            // Products of differences below 2^53 do not fit a f64; those of damaged times fit nothing.
            let product = |one: f64, other: f64| (one as i128).saturating_mul(other as i128);
            let (dx, dy) = (middle.0 - first.0, middle.1 - first.1);
            if product(dy, x - first.0) > product(y - first.1, dx) {
                break;
            }
            hull.pop();
        }
        hull.push((x, y));
    }
    hull
}
