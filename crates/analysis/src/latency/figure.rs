//! The picture of section `latency`: what each vCPU lost in the worst window of each length.

use super::measure::{Measured, WorstWindow};
use base::Figure;
use base::figure::{Axis, Curve, Curves, Drawing, Form};
use base::number::{duration, percent};
use std::cmp::Reverse;

/// A curve for each vCPU, the one that lost most first; none where nothing was lost.
pub(super) fn losses_by_window(measured: &[Measured<'_>]) -> Option<Figure> {
    let longest = |one: &&Measured<'_>| one.windows.last().map_or(0, |window| window.loss_ns);
    let mut vcpus: Vec<&Measured<'_>> = measured.iter().filter(|one| longest(one) > 0).collect();
    vcpus.sort_by_key(|one| Reverse(longest(one)));
    let WorstWindow { window_ns, loss_ns, .. } = vcpus.first()?.windows.last()?;
    let axis = |title: &str| Axis { title: title.into(), unit: "ns", is_logarithmic: true };
    let curve = |one: &&Measured<'_>| Curve {
        label: format!("vCPU {} of {}", one.vcpu.vcpu, one.vcpu.vm),
        form: Form::Line,
        points: one.windows.iter().map(|window| (window.window_ns as f64, window.loss_ns as f64)).collect(),
    };
    Some(Figure {
        id: "losses".into(),
        title: "How much of any window was lost".into(),
        caption: format!(
            "In its worst {} vCPU {} of {} lost {}, {} of it.",
            duration(*window_ns as f64),
            vcpus[0].vcpu.vcpu,
            vcpus[0].vcpu.vm,
            duration(*loss_ns as f64),
            percent(*loss_ns as f64 / *window_ns as f64)
        ),
        drawing: Drawing::Curves(Curves {
            x: axis("window"),
            y: axis("lost in the worst window"),
            curves: vcpus.iter().map(curve).collect(),
            limits: Vec::new(),
        }),
    })
}
