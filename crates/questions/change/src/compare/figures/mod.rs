//! The pictures of a comparison: pairs of numbers, and a curve for each side on the same axes.
//!
//! ```text
//! losses     by_window       what any window of time lost, below the budget's limit
//!            by_length       how often vCPUs were away for longer than that
//! dumbbells  each metric        before, after, and whether that is more than noise
//! repeated   rows of tables     the same of benches, datapaths and prices
//! samples    by_percentile   how long the longest of so many samples is
//! ```
//! Pages have all of them, a terminal those that are held against a limit.

pub(super) mod dumbbells;
mod losses;
pub(super) mod repeated;
mod samples;

use base::Figure;
use base::figure::{Axis, Curve, Curves, Drawing, Form, Limit};
use facts::Case;

const SIDES: [&str; 2] = ["before", "after"];

pub(super) fn figures(before: &[&Case], after: &[&Case]) -> Vec<Figure> {
    losses::figures([before, after]).into_iter().chain(samples::figures([before, after])).collect()
}

/// `curves` on logarithmic axes.
fn figure(
    (id, title, caption): (String, String, String),
    axes: [(&str, &'static str); 2],
    curves: Vec<Curve>,
    limits: Vec<Limit>,
) -> Figure {
    let [x, y] = axes.map(|(title, unit)| Axis { title: title.into(), unit, is_logarithmic: true });
    Figure {
        id,
        title,
        caption,
        in_terminals: !limits.is_empty(),
        drawing: Drawing::Curves(Curves { x, y, curves, limits }),
    }
}

fn curve(whose: &str, side: usize, form: Form, points: Vec<(f64, f64)>) -> Curve {
    let label = if whose.is_empty() { SIDES[side].to_owned() } else { format!("{whose}, {}", SIDES[side]) };
    Curve { label, form, points }
}
