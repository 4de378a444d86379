//! What sweeps show: the rate against the size of a frame, and how far the model is off at each batch.

use super::super::costs::Costs;
use super::super::measured::{Channel, Measured};
use super::super::tables::MPPS;
use super::{beside, mark};
use base::Figure;
use base::channel::Setup;
use base::figure::{Axis, Curve, Curves, Drawing, Form};

/// Fewer sizes or batches are no sweep.
const FEWEST: usize = 2;

fn figure(id: &str, title: &str, caption: String, (x, y): (Axis, Axis), curves: Vec<Curve>) -> Option<Figure> {
    let curves: Vec<Curve> = curves.into_iter().filter(|curve| curve.points.len() >= FEWEST).collect();
    let drawing = Drawing::Curves(Curves { x, y, curves, limits: Vec::new() });
    let is_drawn = matches!(&drawing, Drawing::Curves(curves) if !curves.curves.is_empty());
    is_drawn.then(|| Figure { id: id.to_owned(), title: title.to_owned(), caption, in_terminals: false, drawing })
}

/// Clean rates at the batch of `main`, by the size of frames: a curve for each path and window.
pub(super) fn over_sizes(channel: &Channel<'_>, main: &Measured<'_>) -> Option<Figure> {
    let Setup { batch, policy, vms, .. } = main.setup;
    let is_like = |one: &&Measured<'_>| {
        let same = (&one.setup.batch, &one.setup.policy, &one.setup.vms) == (batch, policy, vms);
        one.machine == main.machine && same && one.is_emulated() == main.is_emulated()
    };
    let mut curves: Vec<Curve> = Vec::new();
    for one in channel.measured().filter(is_like) {
        let Some(mpps) = one.clean_mpps() else { continue };
        let (label, point) = (one.name(), (f64::from(one.setup.size_bytes), mpps));
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { label, form: Form::Points(mark(channel, one)), points: vec![point] }),
        }
    }
    curves.iter_mut().for_each(|curve| curve.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    figure(
        "channel_sizes",
        "How many packets go through, by the size of a frame?",
        format!("In batches of {batch} on {}, measured in clean slices.", main.machine),
        (
            Axis { title: "bytes of a frame".to_owned(), unit: "bytes", is_logarithmic: true },
            Axis { title: "packets, millions per second".to_owned(), unit: MPPS, is_logarithmic: false },
        ),
        curves,
    )
}

/// How far off the model of each series is at its batches, as a share of the time that a packet took.
pub(super) fn residuals(channel: &Channel<'_>, main: &Measured<'_>) -> Option<Figure> {
    let mut curves = Vec::new();
    for series in beside(channel, main) {
        let off = |one: &Measured<'_>| {
            let whole_ns = one.batch_ns()? / f64::from(one.setup.batch);
            let residual_ns = Costs::of(channel, series, one).residual_ns?;
            Some((f64::from(one.setup.batch), (residual_ns / whole_ns).abs()))
        };
        let points = series.measured.iter().filter_map(off).collect();
        curves.push(Curve { label: series.first().name(), form: Form::Points(mark(channel, series.first())), points });
    }
    figure(
        "channel_residuals",
        "How far is each rate from its model?",
        format!(
            "What the line through the batches leaves of a packet's time, up or down, of frames of {} B on {}. Where it is large, read the measured \
             point and not the line.",
            main.setup.size_bytes, main.machine
        ),
        (
            Axis { title: "batch".to_owned(), unit: "count", is_logarithmic: true },
            Axis { title: "off, as a share of a packet's time".to_owned(), unit: "share", is_logarithmic: false },
        ),
        curves,
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{Made, benches, of_batches};
    use super::*;
    use facts::machines::Machines;

    fn drawn(made: &[Made], of: fn(&Channel<'_>, &Measured<'_>) -> Option<Figure>) -> Option<Vec<Curve>> {
        let benches = benches(made);
        let channel = Channel::of(&benches, &Machines::default());
        let Drawing::Curves(curves) = of(&channel, channel.series[0].first())?.drawing else { panic!("curves") };
        Some(curves.curves)
    }

    #[test]
    fn sizes_are_drawn_where_there_are_several_at_one_batch() {
        let of = |size, batch, batch_ns| Made { size, batch, batch_ns, ..Made::default() };
        let curves = drawn(&[of(64, 32, 800.0), of(512, 32, 1_600.0), of(512, 8, 800.0)], over_sizes).unwrap();
        assert_eq!(curves.len(), 1);
        let rates: Vec<_> = curves[0].points.iter().map(|(size, mpps)| (*size, mpps.round())).collect();
        assert_eq!(rates, [(64.0, 40.0), (512.0, 20.0)]);
        assert_eq!(drawn(&[of(64, 32, 800.0), of(64, 8, 400.0)], over_sizes), None);
    }

    #[test]
    fn the_model_is_as_far_off_as_the_batch_that_was_moved() {
        let bent = |n: f64| 60.0 + 14.0 * n + if (7.0..9.0).contains(&n) { 30.0 } else { 0.0 };
        let curves = drawn(&of_batches(&[1, 8, 32, 64], bent, |made| made), residuals).unwrap();
        let worst = curves[0].points.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert!(worst.0 == 8.0 && (0.05..0.2).contains(&worst.1), "{curves:?}");
        let straight = drawn(&of_batches(&[1, 8, 32, 64], |n| 60.0 + 14.0 * n, |made| made), residuals).unwrap();
        assert!(straight[0].points.iter().all(|(_, off)| *off < 1e-6), "{straight:?}");
    }
}
