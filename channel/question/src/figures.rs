//! Pictures of what a path carries: rates over batches and sizes, what a packet costs, what windows cost, and what the sides do meanwhile.

mod sides;
mod sweeps;

use super::costs::{Costs, unfitted};
use super::measured::{Channel, Measured, NONE, Series};
use super::tables::{MPPS, swapped};
use base::Figure;
use base::channel::Setup;
use base::figure::{Axis, Bar, BarGroup, Curve, Curves, Drawing, Form, Mark, Point, PointGroup};
use base::number::{amount, counted, duration};

/// All of those that have something to draw; the first two are about the machine, size and policy of `main`.
pub(super) fn figures(channel: &Channel<'_>, main: &Measured<'_>) -> Vec<Figure> {
    let all = [
        rates(channel, main),
        sweeps::over_sizes(channel, main),
        sweeps::residuals(channel, main),
        costs(channel, main),
        windows(channel, main),
        sides::open(channel, main),
        sides::policies(channel, main),
    ];
    all.into_iter().flatten().collect()
}

fn mark(channel: &Channel<'_>, one: &Measured<'_>) -> Mark {
    if channel.is_emulated || one.is_emulated() { Mark::Emulated } else { Mark::Measured }
}

/// Series that differ from `main` in their path and window alone; emulated ones are not drawn beside real ones.
fn beside<'c, 'b>(channel: &'c Channel<'b>, main: &Measured<'_>) -> impl Iterator<Item = &'c Series<'b>> {
    let Setup { size_bytes, policy, vms, .. } = main.setup.clone();
    let (machine, is_emulated) = (main.machine.to_owned(), main.is_emulated());
    channel.series.iter().filter(move |series| {
        let first = series.first();
        let same = (&first.setup.size_bytes, &first.setup.policy, &first.setup.vms) == (&size_bytes, &policy, &vms);
        first.machine == machine && same && first.is_emulated() == is_emulated
    })
}

fn rates(channel: &Channel<'_>, main: &Measured<'_>) -> Option<Figure> {
    let mut curves = Vec::new();
    for series in beside(channel, main) {
        let name = series.first().name();
        let clean = |one: &Measured<'_>| Some((f64::from(one.setup.batch), one.clean_mpps()?));
        let points: Vec<(f64, f64)> = series.measured.iter().filter_map(clean).collect();
        if !points.is_empty() {
            curves.push(Curve { label: name, form: Form::Points(mark(channel, series.first())), points });
        }
    }
    if curves.is_empty() {
        return None;
    }
    let by_model = |series: &Series<'_>, model: &facts::ring::Model| -> Vec<(f64, f64)> {
        let batches = series.measured.iter().map(|one| one.setup.batch);
        batches.filter_map(|batch| Some((f64::from(batch), model.mpps(batch).ok()?))).collect()
    };
    let fits = |series: &Series<'_>| unfitted(channel, series).is_none();
    let without_line = beside(channel, main).filter(|series| series.model.is_ok() && !fits(series)).count() as u64;
    for series in beside(channel, main).filter(|series| fits(series)) {
        if let Ok(model) = &series.model {
            let label = format!("{}, modelled", series.first().name());
            curves.push(Curve { label, form: Form::Line, points: by_model(series, model) });
        }
    }
    for (series, _, window, model) in swapped(channel) {
        if fits(series) && beside(channel, main).any(|own| std::ptr::eq(own, series)) {
            let label = format!("{} with {window}", series.first().setup.path);
            curves.push(Curve { label, form: Form::Points(Mark::Modelled), points: by_model(series, &model) });
        }
    }
    let without_line = match without_line {
        0 => String::new(),
        count => format!(" {} no line, because the model does not fit.", counted(count, "series has", "series have")),
    };
    let has_models = curves.iter().any(|curve| matches!(curve.form, Form::Line));
    Some(Figure {
        id: "channel_rates".to_owned(),
        title: "How does throughput depend on the size of a batch?".to_owned(),
        caption: format!(
            "Frames of {} B on {}. Points were measured in clean slices{}.{without_line}",
            main.setup.size_bytes,
            main.machine,
            if has_models {
                "; lines are models of the same runs, and points with a published window are modelled: none of those was measured"
            } else {
                ""
            }
        ),
        in_terminals: true,
        drawing: Drawing::Curves(Curves {
            x: Axis { title: "batch".to_owned(), unit: "count", is_logarithmic: true },
            y: Axis { title: "packets, millions per second".to_owned(), unit: MPPS, is_logarithmic: false },
            curves,
            limits: Vec::new(),
        }),
    })
}

fn costs(channel: &Channel<'_>, main: &Measured<'_>) -> Option<Figure> {
    let of_path = beside(channel, main).filter(|series| series.first().setup.path == main.setup.path);
    let groups: Vec<BarGroup> =
        of_path.flat_map(|series| series.measured.iter().filter_map(|one| group(channel, series, one))).collect();
    (!groups.is_empty()).then(|| Figure {
        id: "channel_costs".to_owned(),
        title: "What does a packet cost, step by step?".to_owned(),
        caption: format!(
            "Frames of {} B on {}, measured in clean slices. The window was measured alone, copying and the index are fitted over the batches, and \
             the residual is what the fit leaves.",
            main.setup.size_bytes, main.machine
        ),
        in_terminals: false,
        drawing: Drawing::Bars(groups),
    })
}

/// The steps of one batch; one without a model has none.
fn group(channel: &Channel<'_>, series: &Series<'_>, one: &Measured<'_>) -> Option<BarGroup> {
    let whole_ns = one.batch_ns()? / f64::from(one.setup.batch);
    let Costs { copy_ns, index_ns, window_ns, notify_ns, residual_ns } = Costs::of(channel, series, one);
    copy_ns?;
    let steps = [
        ("copy", copy_ns, "modelled", "guest_l1"),
        ("index", index_ns, "modelled", "handling_l1"),
        ("window", window_ns.filter(|_| one.setup.window != NONE), "measured", "irq"),
        ("kicks", notify_ns, "modelled", "wake_delay"),
        ("residual", residual_ns.filter(|ns| *ns > 0.0), "measured less modelled", "unknown"),
    ];
    let bar = |(label, ns, note, hue): (&str, Option<f64>, &str, &str)| {
        Some(Bar { label: label.to_owned(), value: ns?, note: note.to_owned(), hue: hue.to_owned() })
    };
    let bars: Vec<Bar> = steps.into_iter().filter_map(bar).collect();
    // Where the fit lies above the measured point, the steps are parts of their sum: more than all of a packet's time they cannot be.
    let sum_ns = bars.iter().map(|bar| bar.value).sum::<f64>();
    let less = match residual_ns.filter(|ns| *ns < -5e-4) {
        Some(_) => format!(" measured, where these steps add up to {}", duration((sum_ns * 1e3).round() / 1e3)),
        None => String::new(),
    };
    Some(BarGroup {
        title: format!("{}, batch {}: {}{less}", one.name(), one.setup.batch, duration(whole_ns)),
        unit: "ns",
        total: whole_ns.max(sum_ns),
        bars,
        span: None,
    })
}

fn windows(channel: &Channel<'_>, main: &Measured<'_>) -> Option<Figure> {
    let host = channel.host(main)?;
    let mut points: Vec<Point> = Vec::new();
    let is_like = |one: &&Measured<'_>| one.machine == main.machine && one.is_emulated() == main.is_emulated();
    for one in channel.measured().filter(is_like).filter(|one| one.setup.window != NONE) {
        let Some(value) = one.window_ns().filter(|_| points.iter().all(|known| known.label != one.setup.window)) else {
            continue;
        };
        // The same for every batch: the range is that of all launches of all setups with this window.
        let same = channel.measured().filter(is_like).filter(|other| other.setup.window == one.setup.window);
        let all: Vec<f64> = same.flat_map(|other| &other.launches).map(|(_, run)| run.window_ns).collect();
        let range = all.iter().fold((value, value), |(low, high), ns| (low.min(*ns), high.max(*ns)));
        points.push(Point {
            label: one.setup.window.clone(),
            value: facts::statistics::spread::median(&all).unwrap_or(value),
            interval: Some(range).filter(|(low, high)| low < high),
            mark: mark(channel, one),
            source: format!("{} on {}", amount(all.len() as f64, "runs"), host.machine),
        });
    }
    if points.is_empty() {
        return None;
    }
    let modelled = host.modelled().into_iter().filter(|_| !main.is_emulated());
    points.extend(modelled.map(|(name, value, is_given, source)| Point {
        label: name.to_owned(),
        value,
        interval: None,
        mark: if is_given { Mark::Modelled } else { Mark::Published },
        source,
    }));
    Some(Figure {
        id: "channel_windows".to_owned(),
        title: "What does it cost to open and close a window?".to_owned(),
        caption: "Once for each batch, whatever is in it. Published numbers are from other machines.".to_owned(),
        in_terminals: true,
        drawing: Drawing::Points(vec![PointGroup { title: "opening and closing".to_owned(), unit: "ns", points }]),
    })
}

/// Percentiles against the rate, of the setup of a machine that sentences are about.
pub(super) fn delays(channel: &Channel<'_>, machine: &str) -> Option<Figure> {
    let loads = super::delays::main(&channel.delays, machine);
    let setup = loads.first()?.setup;
    let curve = |(label, share): (&str, f64)| {
        let point = |one: &&super::delays::Delayed<'_>| Some((one.rate_mpps()?, one.all.quantile(share)? as f64));
        let mut points: Vec<(f64, f64)> = loads.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mark = if channel.is_emulated { Mark::Emulated } else { Mark::Measured };
        Curve { label: label.to_owned(), form: Form::Points(mark), points }
    };
    let curves: Vec<Curve> = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("longest", 1.0)].map(curve).into();
    if curves[0].points.len() < 2 {
        return None;
    }
    let of = if channel.hosts.len() > 1 { format!("_{machine}") } else { String::new() };
    Some(Figure {
        id: format!("channel_delays{of}"),
        title: "How long does a frame take at which rate?".to_owned(),
        caption: format!(
            "Frames of {} B in batches of {} over {} on {machine}, from when each was due by the clock until it was received; measured.",
            setup.size_bytes, setup.batch, setup.path
        ),
        in_terminals: true,
        drawing: Drawing::Curves(Curves {
            x: Axis { title: "packets, millions per second".to_owned(), unit: MPPS, is_logarithmic: true },
            y: Axis { title: "delay".to_owned(), unit: "ns", is_logarithmic: true },
            curves,
            limits: Vec::new(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Made, benches, of_batches};
    use super::*;
    use facts::machines::Machines;

    fn all(made: &[Made]) -> Vec<Figure> {
        let benches = benches(made);
        let channel = Channel::of(&benches, &Machines::default());
        let main = channel.series[0].first();
        figures(&channel, main)
    }

    #[test]
    fn measured_modelled_and_published_are_drawn_each_in_its_own_way() {
        let line = |window: &'static str, window_ns: f64| {
            of_batches(&[1, 8, 32, 64], |n| window_ns + 60.0 + 14.0 * n, |made| Made { window, window_ns, ..made })
        };
        let figures = all(&[line("none", 0.0), line("pkey", 28.8)].concat());
        assert_eq!(
            figures.iter().map(|figure| figure.id.as_str()).collect::<Vec<_>>(),
            ["channel_rates", "channel_residuals", "channel_costs", "channel_windows"]
        );
        let Drawing::Curves(Curves { curves, .. }) = &figures[0].drawing else { panic!("curves") };
        let count = |form: Form| curves.iter().filter(|curve| curve.form == form && curve.points.len() == 4).count();
        let forms = [Form::Points(Mark::Measured), Form::Line, Form::Points(Mark::Modelled)].map(count);
        assert_eq!((forms, curves.len()), ([2, 2, 3], 7));
        let Drawing::Points(groups) = &figures[3].drawing else { panic!("points") };
        let marks: Vec<_> = groups[0].points.iter().map(|point| (point.label.as_str(), point.mark)).collect();
        assert_eq!(marks[0], ("pkey", Mark::Measured));
        assert!(marks[1..].iter().all(|(_, mark)| *mark == Mark::Published) && marks.len() == 4, "{marks:?}");
    }

    #[test]
    fn steps_of_a_packet_add_up_to_its_time() {
        let figures = all(&of_batches(
            &[1, 8, 32, 64],
            |n| 60.0 + 14.0 * n + if (7.0..9.0).contains(&n) { 30.0 } else { 0.0 },
            |made| made,
        ));
        let Drawing::Bars(groups) = &figures[2].drawing else { panic!("bars") };
        assert_eq!(groups.len(), 4);
        for group in groups {
            let sum: f64 = group.bars.iter().map(|bar| bar.value).sum();
            assert!((sum - group.total).abs() < 1e-6, "{group:?}");
        }
        let is_above = |group: &BarGroup| group.title.contains("measured, where these steps add up to");
        assert!(groups.iter().any(is_above) && !is_above(&groups[1]), "{groups:?}");
        assert!(groups[1].bars.iter().any(|bar| bar.label == "residual"), "{:?}", groups[1]);
    }

    #[test]
    fn what_was_not_clean_is_not_drawn() {
        assert!(all(&[Made { clean: 0.1, ..Made::default() }]).is_empty());
    }
}
