//! How often something had which length: bins of equal width on the page, whatever their ends are.
//!
//! ```text
//! 100 |  ##
//!  10 |  ##  ##     |budget
//!   1 |  ##  ##  ## |    ##      heights are logarithmic: a single one is seen beside a million
//!     +-------------+----------
//!      1   2   5    10   20  50
//! ```

use super::Axis;
use serde::Serialize;

/// Bins along an axis with the limits that lengths are held against.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// What was measured.
    pub x: Axis,
    /// What is counted: `losses`, `samples`.
    pub counted: &'static str,
    /// The kinds that bins tell apart.
    pub kinds: Vec<Kind>,
    /// By ascending length; each begins where the one before it ends.
    pub bins: Vec<Bin>,
    /// The limits.
    pub limits: Vec<Edge>,
}

/// One kind of what is counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kind {
    /// What it is.
    pub label: String,
    /// Name of the state that decides its colour, or empty.
    pub hue: String,
}

/// What has a length in `[from, to)`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bin {
    /// None is shorter.
    pub from: f64,
    /// All are shorter.
    pub to: f64,
    /// How many of each kind.
    pub counts: Vec<u64>,
}

/// A limit on lengths.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Edge {
    /// What it is: `preempt-period`.
    pub label: String,
    /// The value.
    pub value: f64,
}

impl Bin {
    /// All kinds together.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl Histogram {
    /// The decade that the highest bin reaches into: its heights end at 10 to the power of it.
    pub fn decades(&self) -> u32 {
        let most = self.bins.iter().map(Bin::total).max().unwrap_or(0);
        most.saturating_sub(1).checked_ilog10().map_or(0, |power| power + 1)
    }

    /// How high so many are, from 0 to 1: a single one is as high as every further decade.
    pub fn height(&self, count: u64) -> f64 {
        if count == 0 { 0.0 } else { (1.0 + (count as f64).log10()) / f64::from(1 + self.decades()) }
    }

    /// Where a length lies across the bins, from 0 to 1.
    pub fn place(&self, length: f64) -> f64 {
        let Some(bin) = self.bins.iter().rposition(|bin| bin.from <= length) else { return 0.0 };
        let Bin { from, to, .. } = self.bins[bin];
        let inside = ((length - from) / (to - from).max(f64::MIN_POSITIVE)).min(1.0);
        (bin as f64 + inside) / self.bins.len() as f64
    }

    /// All ends of bins, from the first one's beginning on.
    pub fn ends(&self) -> impl Iterator<Item = f64> {
        self.bins.first().map(|bin| bin.from).into_iter().chain(self.bins.iter().map(|bin| bin.to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bins: &[(f64, f64, u64)]) -> Histogram {
        let bins = bins.iter().map(|(from, to, count)| Bin { from: *from, to: *to, counts: vec![*count] }).collect();
        let x = Axis { title: "length".into(), unit: "ns", is_logarithmic: true };
        Histogram { x, counted: "losses", kinds: Vec::new(), bins, limits: Vec::new() }
    }

    #[test]
    fn a_single_one_is_seen_beside_a_million_and_none_is_not() {
        let drawn = of(&[(1.0, 2.0, 1), (2.0, 5.0, 0), (5.0, 10.0, 1_000_000)]);
        assert_eq!((drawn.decades(), drawn.height(1), drawn.height(0)), (6, 1.0 / 7.0, 0.0));
        assert_eq!([10, 1_000_000].map(|count| drawn.height(count)), [2.0 / 7.0, 1.0]);
        assert_eq!((of(&[(0.0, 1.0, 1)]).height(1), of(&[]).decades()), (1.0, 0));
        assert_eq!([9, 10, 11].map(|count| of(&[(0.0, 1.0, count)]).decades()), [1, 1, 2]);
    }

    #[test]
    fn a_limit_lies_between_the_bins_that_it_separates() {
        let drawn = of(&[(1.0, 2.0, 1), (2.0, 5.0, 0), (5.0, 10.0, 4), (10.0, 20.0, 1)]);
        assert_eq!(
            [0.0, 1.0, 2.0, 10.0, 15.0, 20.0, 99.0].map(|at| drawn.place(at)),
            [0.0, 0.0, 0.25, 0.75, 0.875, 1.0, 1.0]
        );
        assert_eq!(drawn.ends().collect::<Vec<_>>(), [1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(of(&[]).place(3.0), 0.0);
    }
}
