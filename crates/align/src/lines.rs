//! A guest's clock as straight lines, from causal pairs alone.
//!
//! One line if one obeys all bounds. If none does, the clock was set or two exits were taken for one: the bounds are
//! split where the next one leaves no line, never widened. Between two pieces nothing is known but what either says.

use super::hull::{Point, Region};

/// A bound on the other clock's time: at `x` on the guest's clock, `y` or later, or `y` or earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Time on the guest's clock.
    pub x: u64,
    /// Time on the clock below.
    pub y: u64,
    /// True if the guest's event came at `y` or later.
    pub is_lower: bool,
}

/// Lines, each with the stretch of bounds that it obeys.
#[derive(Debug, Clone)]
pub struct Lines {
    /// Times are counted from here, so that a float holds them exactly: a counter of a host up for months does not fit.
    x0: u64,
    y0: u64,
    pieces: Vec<(u64, u64, Region)>,
}

impl Lines {
    /// One line through all bounds, which are sorted by x, with a slope in `slopes`.
    pub fn one(bounds: &[Bound], slopes: (f64, f64)) -> Option<Self> {
        let (first, last) = (bounds.first()?, bounds.last()?);
        let region = region(bounds, (first.x, first.y), slopes)?;
        Some(Self { x0: first.x, y0: first.y, pieces: vec![(first.x, last.x, region)] })
    }

    /// As few lines as go through the bounds, taken from the first bound on.
    pub fn split(bounds: &[Bound], slopes: (f64, f64)) -> Option<Self> {
        let origin = bounds.first().map(|first| (first.x, first.y))?;
        let mut pieces = Vec::new();
        let mut rest = bounds;
        while let Some(first) = rest.first() {
            let count = longest(rest, slopes);
            if let Some(region) = region(&rest[..count], origin, slopes) {
                pieces.push((first.x, rest[count - 1].x, region));
            }
            rest = &rest[count..];
        }
        (!pieces.is_empty()).then_some(Self { x0: origin.0, y0: origin.1, pieces })
    }

    /// True if the clock jumps from each line to the next: between the two they have no time in common.
    pub fn jump(&self) -> bool {
        self.pieces.windows(2).all(|two| {
            let between = self.near(two[0].1 + (two[1].0 - two[0].1) / 2);
            let (one, other) = (two[0].2.at(between), two[1].2.at(between));
            one.1 < other.0 || other.1 < one.0
        })
    }

    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Never true: there is at least one line.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The least and the largest time below at `x`, rounded outwards.
    pub fn at(&self, x: u64) -> (u64, u64) {
        let next = self.pieces.partition_point(|(_, to, _)| *to < x);
        let before = next.checked_sub(1).map(|last| &self.pieces[last].2);
        let here = self.pieces.get(next);
        let at = |region: &Region| region.at(self.near(x));
        let (low, high) = match (before, here) {
            (_, Some((from, _, region))) if *from <= x => at(region),
            (Some(one), Some((_, _, other))) => {
                let (one, other) = (at(one), at(other));
                (one.0.min(other.0), one.1.max(other.1))
            }
            (Some(region), None) | (None, Some((_, _, region))) => at(region),
            (None, None) => (f64::MIN, f64::MAX),
        };
        // A float's conversion saturates.
        let far = |y: f64| self.y0.saturating_add_signed(y as i64);
        (far(low.floor()), far(high.ceil()))
    }

    fn near(&self, x: u64) -> f64 {
        i128::from(x).wrapping_sub(i128::from(self.x0)) as f64
    }

    /// The flattest and the steepest slope of the longest piece.
    pub fn slopes(&self) -> (f64, f64) {
        let longest = self.pieces.iter().max_by_key(|(from, to, _)| to - from);
        longest.map_or((0.0, 0.0), |(_, _, region)| region.slopes())
    }
}

fn region(bounds: &[Bound], (x0, y0): (u64, u64), slopes: (f64, f64)) -> Option<Region> {
    let near = |value: u64, origin: u64| (i128::from(value) - i128::from(origin)) as f64;
    let side = |is_lower: bool| -> Vec<Point> {
        let side = bounds.iter().filter(|bound| bound.is_lower == is_lower);
        side.map(|bound| (near(bound.x, x0), near(bound.y, y0))).collect()
    };
    Region::between(&side(true), &side(false), slopes)
}

/// How many of the first bounds one line can obey. Looked for in steps that double, then halve.
fn longest(bounds: &[Bound], slopes: (f64, f64)) -> usize {
    let one_sided = |count: usize| bounds[..count].iter().all(|bound| bound.is_lower == bounds[0].is_lower);
    let origin = (bounds[0].x, bounds[0].y);
    let obeys = |count: usize| one_sided(count) || region(&bounds[..count], origin, slopes).is_some();
    let mut good = 1;
    let mut bad = 16;
    while bad <= bounds.len() && obeys(bad) {
        (good, bad) = (bad, bad * 2);
    }
    if bad > bounds.len() {
        if obeys(bounds.len()) {
            return bounds.len();
        }
        bad = bounds.len();
    }
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if obeys(middle) { good = middle } else { bad = middle }
    }
    good
}
