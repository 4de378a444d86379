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
    pieces: Vec<(u64, u64, Region)>,
}

impl Lines {
    /// One line through all bounds, which are sorted by x, with a slope in `slopes`.
    pub fn one(bounds: &[Bound], slopes: (f64, f64)) -> Option<Self> {
        let (first, last) = (bounds.first()?, bounds.last()?);
        Some(Self { pieces: vec![(first.x, last.x, region(bounds, slopes)?)] })
    }

    /// As few lines as go through the bounds, taken from the first bound on.
    pub fn split(bounds: &[Bound], slopes: (f64, f64)) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut rest = bounds;
        while let Some(first) = rest.first() {
            let count = longest(rest, slopes);
            if let Some(region) = region(&rest[..count], slopes) {
                pieces.push((first.x, rest[count - 1].x, region));
            }
            rest = &rest[count..];
        }
        (!pieces.is_empty()).then_some(Self { pieces })
    }

    /// True if the clock jumps from each line to the next: between the two they have no time in common.
    pub fn jump(&self) -> bool {
        self.pieces.windows(2).all(|two| {
            let between = two[0].1 as f64 + (two[1].0 - two[0].1) as f64 / 2.0;
            let (one, other) = (two[0].2.at(between), two[1].2.at(between));
            one.1 < other.0 || other.1 < one.0
        })
    }

    /// Number of lines.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Never true: there is at least one line.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The least and the largest time below at `x`.
    pub fn at(&self, x: u64) -> (f64, f64) {
        let next = self.pieces.partition_point(|(_, to, _)| *to < x);
        let before = next.checked_sub(1).map(|last| &self.pieces[last].2);
        let here = self.pieces.get(next);
        match (before, here) {
            (_, Some((from, _, region))) if *from <= x => region.at(x as f64),
            (Some(one), Some((_, _, other))) => {
                let (one, other) = (one.at(x as f64), other.at(x as f64));
                (one.0.min(other.0), one.1.max(other.1))
            }
            (Some(region), None) | (None, Some((_, _, region))) => region.at(x as f64),
            (None, None) => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    /// The flattest and the steepest slope of the longest piece.
    pub fn slopes(&self) -> (f64, f64) {
        let longest = self.pieces.iter().max_by_key(|(from, to, _)| to - from);
        longest.map_or((0.0, 0.0), |(_, _, region)| region.slopes())
    }
}

fn region(bounds: &[Bound], slopes: (f64, f64)) -> Option<Region> {
    let side = |is_lower: bool| -> Vec<Point> {
        let side = bounds.iter().filter(|bound| bound.is_lower == is_lower);
        side.map(|bound| (bound.x as f64, bound.y as f64)).collect()
    };
    Region::between(&side(true), &side(false), slopes)
}

/// How many of the first bounds one line can obey. Looked for in steps that double, then halve.
fn longest(bounds: &[Bound], slopes: (f64, f64)) -> usize {
    let one_sided = |count: usize| bounds[..count].iter().all(|bound| bound.is_lower == bounds[0].is_lower);
    let obeys = |count: usize| one_sided(count) || region(&bounds[..count], slopes).is_some();
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
