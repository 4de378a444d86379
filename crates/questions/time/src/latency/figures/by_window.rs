//! What each vCPU lost in the worst window of each length, below what the budget allows.

use super::super::measure::{Measured, WorstWindow};
use super::{goals, name};
use base::Figure;
use base::figure::{Axis, Curve, Curves, Drawing, Form, Limit, On};
use base::number::{duration, many, percent};
use facts::Case;
use facts::budget::Metric;
use std::cmp::Reverse;

/// Curves that are told apart.
const MOST_CURVES: usize = 6;

/// A curve for each vCPU, the one that lost most first; none where nothing was lost.
pub(super) fn figure(measured: &[Measured<'_>], case: &Case) -> Option<Figure> {
    let longest = |one: &&Measured<'_>| one.windows.last().map_or(0, |window| window.loss_ns);
    let mut vcpus: Vec<&Measured<'_>> = measured.iter().filter(|one| longest(one) > 0).collect();
    vcpus.sort_by_key(|one| Reverse(longest(one)));
    let left_out = vcpus.len().saturating_sub(MOST_CURVES) as u64;
    vcpus.truncate(MOST_CURVES);
    let WorstWindow { window_ns, loss_ns, .. } = vcpus.first()?.windows.last()?;
    let axis = |title: &str| Axis { title: title.into(), unit: "ns", is_logarithmic: true };
    let curve = |one: &&Measured<'_>| Curve {
        label: name(one),
        form: Form::Line,
        points: one.windows.iter().map(|window| (window.window_ns as f64, window.loss_ns as f64)).collect(),
    };
    let limits: Vec<Limit> = goals(case, Metric::PreemptWindow).map(|goal| goal.drawn(On::Y)).collect();
    let mut caption = format!(
        "In its worst {} {} lost {}, {} of it.",
        duration(*window_ns as f64),
        name(vcpus[0]),
        duration(*loss_ns as f64),
        percent(*loss_ns as f64 / *window_ns as f64)
    );
    if !limits.is_empty() {
        caption.push_str(" A limit ends at the window that its goal is about.");
    }
    if left_out > 0 {
        caption.push_str(&format!(" {} that lost less are not drawn.", many(left_out, "vCPU")));
    }
    Some(Figure {
        id: "losses".into(),
        title: "How much of any window was lost".into(),
        caption,
        in_terminals: !limits.is_empty(),
        drawing: Drawing::Curves(Curves {
            x: axis("window"),
            y: axis("lost in the worst window"),
            curves: vcpus.iter().map(curve).collect(),
            limits,
        }),
    })
}
