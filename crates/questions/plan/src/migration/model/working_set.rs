//! How many different pages does a guest dirty in a time? The working-set curve W(T): concave, W(0) = 0, never above what there is.

/// Pages that a guest writes to, and how fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hot {
    pub pages: f64,
    /// Writes to a page that was not written to just before, in a second.
    pub pages_per_s: f64,
}

/// W(T) of one guest, in pages.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkingSet {
    /// Written in order, again and again: `min(n, r T)`.
    Cyclic(Hot),
    /// Each write hits any of them: `n (1 - exp(-r T / n))`.
    Uniform(Hot),
    /// Measured, see [`Measured`].
    Measured(Measured),
}

/// Points of a curve that was measured, made monotone and concave: straight between them, flat behind the last one.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Time (s) and pages; times and pages grow, slopes fall.
    points: Vec<(f64, f64)>,
}

impl Measured {
    /// The least concave curve above the points; `None` if one of them is no time behind 0, or is no number.
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        let valid = |&(window_s, pages): &(f64, f64)| {
            window_s > 0.0 && window_s.is_finite() && pages >= 0.0 && pages.is_finite()
        };
        if points.is_empty() || !points.iter().all(valid) {
            return None;
        }
        let mut sorted = points.to_vec();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        // What was dirtied in a time was dirtied in a longer one.
        let mut most = 0.0_f64;
        sorted.iter_mut().for_each(|point| {
            most = most.max(point.1);
            point.1 = most;
        });
        let mut hull: Vec<(f64, f64)> = vec![(0.0, 0.0)];
        for point in sorted {
            while let [.., a, b] = hull[..]
                && (b.1 - a.1) * (point.0 - b.0) <= (point.1 - b.1) * (b.0 - a.0)
            {
                hull.pop();
            }
            match hull.last_mut() {
                Some(last) if last.0 == point.0 => last.1 = last.1.max(point.1),
                _ => hull.push(point),
            }
        }
        Some(Self { points: hull })
    }

    fn pages(&self, window_s: f64) -> f64 {
        let after = self.points.partition_point(|point| point.0 <= window_s);
        let (a, Some(b)) = (self.points[after - 1], self.points.get(after)) else {
            return self.points[after - 1].1;
        };
        a.1 + (b.1 - a.1) * (window_s - a.0) / (b.0 - a.0)
    }
}

impl WorkingSet {
    /// Pages dirtied in `window_s`.
    pub fn pages(&self, window_s: f64) -> f64 {
        match self {
            Self::Cyclic(hot) => (hot.pages_per_s * window_s).min(hot.pages),
            Self::Uniform(hot) if hot.pages <= 0.0 => 0.0,
            Self::Uniform(hot) => -hot.pages * (-hot.pages_per_s * window_s / hot.pages).exp_m1(),
            Self::Measured(curve) => curve.pages(window_s),
        }
    }

    /// Pages dirtied in a second by a guest whose working set never ends: what the geometric model knows of it.
    pub(crate) fn first_rate(&self) -> f64 {
        match self {
            Self::Cyclic(hot) | Self::Uniform(hot) => hot.pages_per_s,
            Self::Measured(curve) => curve.points.get(1).map_or(0.0, |point| point.1 / point.0),
        }
    }

    /// All that it ever dirties, however long it takes.
    pub fn most_pages(&self) -> f64 {
        match self {
            Self::Cyclic(hot) | Self::Uniform(hot) if hot.pages_per_s > 0.0 => hot.pages,
            Self::Cyclic(_) | Self::Uniform(_) => 0.0,
            Self::Measured(curve) => curve.points.last().map_or(0.0, |point| point.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_points_become_the_least_concave_curve_above_them() {
        let curve = Measured::of(&[(4.0, 68.0), (1.0, 32.0), (2.0, 52.0), (8.0, 56.0)]).unwrap();
        assert_eq!(curve.points, [(0.0, 0.0), (1.0, 32.0), (2.0, 52.0), (4.0, 68.0), (8.0, 68.0)]);
        let curve = WorkingSet::Measured(curve);
        assert_eq!([0.0, 0.5, 1.5, 3.0, 100.0].map(|at| curve.pages(at)), [0.0, 16.0, 42.0, 60.0, 68.0]);
        assert_eq!(Measured::of(&[(1.0, 10.0), (2.0, 30.0)]).unwrap().points, [(0.0, 0.0), (2.0, 30.0)]);
        assert_eq!(Measured::of(&[(0.0, 1.0)]), None);
        assert_eq!(Measured::of(&[]), None);
    }
}
