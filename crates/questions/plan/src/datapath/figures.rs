//! The pictures of a plan: rates over VMs and over sizes below their ceilings, cores that break even, and how full each resource is.

mod flow;
mod gauges;

use super::break_even;
use super::model::design::{Datapath, Design};
use super::model::frames::Frames;
use super::model::stages::{Bed, Load, Resource, Stage, rate};
use super::plan::{Chain, Plan};
use super::predict::{Predicted, is_calibrated};
use super::published;
use super::rules;
use base::Figure;
use base::datapath::Traffic;
use base::figure::{Axis, Bar, BarGroup, Curve, Curves, Drawing, Form, Mark};
use base::number::{list, percent, plain};

/// Sizes along the page, 64 to 1518 bytes: a multiple of what splits payloads, so that steps show.
fn sizes() -> impl Iterator<Item = u32> {
    (64..1518).step_by(32).chain([1518])
}

/// Most designs drawn as curves; more hide each other.
const MOST_CURVES: usize = 6;
/// VMs that are drawn at least.
const LEAST_VMS: u32 = 8;

/// All of them, of the first chain; a figure whose curves nothing is known of is left out.
pub(super) fn figures(plan: &Plan, rates: &[Predicted<'_>]) -> Vec<Figure> {
    let Some(chain) = plan.chains.first() else { return Vec::new() };
    let Some(card) = plan.cards.get(chain.card) else { return Vec::new() };
    let bed = plan.bed(card);
    let mut all = vec![over_sizes(&bed, chain, rates)];
    all.extend(
        plan.frames
            .iter()
            .find(|frames| frames.size_bytes().is_some())
            .map(|frames| over_vms((&bed, chain), rates, frames)),
    );
    all.extend((chain.pattern == Traffic::Chain).then(|| cores(&bed, chain)));
    all.retain(|figure| matches!(&figure.drawing, Drawing::Curves(curves) if !curves.curves.is_empty()));
    let directions = if plan.directions > 1 { "both directions together" } else { "one direction" };
    all.extend(gauges::figure(rates, directions));
    all.extend(flow::figure(plan, rates, directions));
    all.extend(used(rates));
    all
}

fn axis(title: &str) -> Axis {
    Axis { title: title.to_owned(), unit: "", is_logarithmic: false }
}

/// A point that is closer to its curve than this says nothing of it: our own limit.
const APART: f64 = 0.1;

/// What the single points are, and how far those of one design lie from its curve, which stands before them.
fn of_others(curves: &[Curve]) -> String {
    let mut apart: Vec<String> = Vec::new();
    for pair in curves.windows(2) {
        let [curve, points] = pair else { continue };
        if !matches!(points.form, Form::Points(_)) {
            continue;
        }
        let of_curve = |at: f64| curve.points.iter().find(|(x, _)| *x == at).map(|(_, y)| *y).filter(|y| *y > 0.0);
        let parts = points.points.iter().filter_map(|(x, y)| Some(y / of_curve(*x)?));
        let (low, high) =
            parts.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), part| (low.min(part), high.max(part)));
        if low <= high && ((low - 1.0).abs() > APART || (high - 1.0).abs() > APART) {
            let (least, most) = (percent(low), percent(high));
            let range = if least == most { least } else { format!("{least} to {most}") };
            apart.push(format!("those of {} are {range} of its curve", curve.label));
        }
    }
    let apart = if apart.is_empty() { String::new() } else { format!(": {}", list(&apart)) };
    format!(" Single points were published by others, of other hosts{apart}.")
}

fn figure(id: &str, title: String, caption: &str, (x, y): (&str, &str), curves: Vec<Curve>) -> Figure {
    let curves: Vec<Curve> = curves.into_iter().filter(|curve| !curve.points.is_empty()).collect();
    let has_points = curves.iter().any(|curve| matches!(curve.form, Form::Points(_)));
    let caption = if has_points { format!("{caption}{}", of_others(&curves)) } else { caption.to_owned() };
    let drawing = Drawing::Curves(Curves { x: axis(x), y: axis(y), curves, limits: Vec::new() });
    Figure { id: id.to_owned(), title, caption, in_terminals: false, drawing }
}

/// Designs of any number of VNFs that are drawn as one curve.
#[derive(Clone, PartialEq)]
enum Family {
    /// What joins them to the wire, and what each other.
    Ends { ends: Datapath, between: Datapath },
    /// One that the answer names, of these polling CPUs.
    Named(Design, Option<u32>),
}

impl Family {
    /// What the answer names, and what is calibrated: each path everywhere, and rings between VNFs.
    fn all(bed: &Bed, chain: &Chain, rates: &[Predicted<'_>]) -> Vec<Family> {
        let known = |path: &Datapath| is_calibrated(bed, &Design::of(vec![*path]));
        let paths = || Datapath::ALL.into_iter().filter(known);
        let has_rings = bed.channel.is_some() && chain.pattern == Traffic::Chain;
        let rings = paths().filter(|_| has_rings).map(|ends| Family::Ends { ends, between: Datapath::Channel });
        let ends: Vec<Family> = paths().map(|path| Family::Ends { ends: path, between: path }).chain(rings).collect();
        let mut all: Vec<Family> = Vec::new();
        for one in rules::asked(rates).filter(|one| std::ptr::eq(one.chain, chain)) {
            let Some(best) = rules::allowed(rates, one).first().copied() else { continue };
            let is_drawn = ends.iter().any(|family| family.design(chain, chain.vnfs).as_ref() == Some(&best.design));
            let named = Family::Named(best.design.clone(), best.pmd_cores);
            if !is_drawn && !all.contains(&named) {
                all.push(named);
            }
        }
        all.into_iter().chain(ends).take(MOST_CURVES).collect()
    }

    fn label(&self) -> String {
        match self {
            Family::Ends { ends, between } if ends == between => ends.name().to_owned(),
            Family::Ends { ends, between } => format!("{}, {} to the wire", between.name(), ends.name()),
            Family::Named(design, _) => design.shape(),
        }
    }

    /// The path that is everywhere, if it is one.
    fn path(&self) -> Option<Datapath> {
        match self {
            Family::Ends { ends, between } => (ends == between).then_some(*ends),
            Family::Named(..) => None,
        }
    }

    fn design(&self, chain: &Chain, vnfs: u32) -> Option<Design> {
        match self {
            Family::Ends { ends, between } if chain.pattern == Traffic::Chain => {
                Some(Design::ends(*ends, *between, vnfs))
            }
            Family::Ends { ends, .. } => Some(Design::uniform(*ends, chain.pattern, vnfs)),
            Family::Named(design, _) if vnfs == chain.vnfs => Some(design.clone()),
            Family::Named(design, _) => design.stretched(chain.pattern, vnfs),
        }
    }

    /// Packets a second of all VNFs together.
    fn system(&self, bed: &Bed, chain: &Chain, vnfs: u32, frames: &Frames) -> Option<f64> {
        let design = self.design(chain, vnfs)?;
        let polling;
        let bed = match self {
            Family::Named(_, Some(pmd_cores)) => {
                polling = Bed { pmd_cores: *pmd_cores, ..bed.clone() };
                &polling
            }
            Family::Named(_, None) | Family::Ends { .. } => bed,
        };
        let is_known = design.count(Datapath::Channel) == 0
            || frames.all(|bytes| bed.channel.as_ref().is_some_and(|cost| cost.covers(bytes)));
        let load = Load { design: &design, pattern: chain.pattern, vnfs };
        is_known.then(|| rate(bed, load, &[], frames).system_pps()).flatten()
    }
}

/// Published rates of a path by where they lie along the page.
fn diamonds(path: Datapath, chain: &Chain, at: impl Fn(&published::Point) -> Option<(f64, f64)>) -> Curve {
    let of = published::points().filter(|point| point.of == Some((path, chain.pattern)));
    let mut points: Vec<(f64, f64)> = of.filter_map(at).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    points.dedup();
    Curve { label: format!("{} of others", path.name()), form: Form::Points(Mark::Published), points }
}

fn over_sizes(bed: &Bed, chain: &Chain, rates: &[Predicted<'_>]) -> Figure {
    let mut curves: Vec<Curve> = Vec::new();
    let gbps = |pps: f64, bytes: u32| pps * f64::from(bytes) * 8.0 / 1e9;
    for family in Family::all(bed, chain, rates) {
        let point = |bytes: u32| {
            Some((f64::from(bytes), gbps(family.system(bed, chain, chain.vnfs, &Frames::of(bytes))?, bytes)))
        };
        let points = sizes().filter_map(point).collect();
        curves.push(Curve { label: family.label(), form: Form::Line, points });
        curves.extend(family.path().map(|path| {
            diamonds(path, chain, |point| {
                let is_of_these = point.vnfs == Some(chain.vnfs);
                let bytes = point.frame_bytes().filter(|_| is_of_these)?;
                Some((bytes, point.system_mpps()? * bytes * 8.0 / 1e3))
            })
        }));
    }
    // What a card of VFs could carry if only this bound it.
    for (ceiling, label) in [(Resource::Line, "ceiling of the line"), (Resource::Pcie, "ceiling of PCIe")] {
        let design = Design::uniform(Datapath::Sriov, chain.pattern, chain.vnfs);
        let load = Load { design: &design, pattern: chain.pattern, vnfs: chain.vnfs };
        let point = |bytes: u32| {
            let rate = rate(bed, load, &[], &Frames::of(bytes));
            let stage = rate.stages.iter().find(|stage| stage.resource == ceiling)?;
            Some((f64::from(bytes), gbps(stage.capacity_pps * f64::from(chain.vnfs), bytes)))
        };
        let is_far = chain.pattern == Traffic::Chain && ceiling == Resource::Line;
        let points = if is_far { Vec::new() } else { sizes().filter_map(point).collect() };
        curves.push(Curve { label: format!("{label} for VFs"), form: Form::Line, points });
    }
    figure(
        "rate_over_sizes",
        format!("How many Gb/s do {} VNFs send together, by the size of frames?", chain.vnfs),
        "Modelled; bits of frames with their check sequence.",
        ("bytes of a frame", "Gb/s"),
        curves,
    )
}

fn over_vms((bed, chain): (&Bed, &Chain), rates: &[Predicted<'_>], frames: &Frames) -> Figure {
    let size = frames.bytes();
    let mut curves: Vec<Curve> = Vec::new();
    for family in Family::all(bed, chain, rates) {
        let point = |vnfs: u32| Some((f64::from(vnfs), family.system(bed, chain, vnfs, frames)? / 1e6));
        let points = (1..=chain.vnfs.max(LEAST_VMS)).filter_map(point).collect();
        curves.push(Curve { label: family.label(), form: Form::Line, points });
        curves.extend(family.path().map(|path| {
            diamonds(path, chain, |point| {
                let vnfs = point.vnfs.filter(|_| point.frame_bytes() == Some(size))?;
                Some((f64::from(vnfs), point.system_mpps()?))
            })
        }));
    }
    figure(
        "rate_over_vms",
        format!("How many Mpps of {frames} bytes do VNFs send together, by their number?"),
        "Modelled; packets counted where VNFs send them.",
        ("VNFs", "Mpps"),
        curves,
    )
}

fn cores(bed: &Bed, chain: &Chain) -> Figure {
    let mut curves: Vec<Curve> = Vec::new();
    for bytes in sizes() {
        for (nth, answer) in break_even::cores(bed, chain, &Frames::of(bytes)).into_iter().enumerate() {
            let Some((cycles, value)) = answer.hop_cycles.zip(answer.value) else { continue };
            if curves.len() <= nth {
                let label = format!("{} cycles for a hop of 64 bytes", plain(cycles));
                curves.push(Curve { label, form: Form::Line, points: Vec::new() });
            }
            curves[nth].points.push((f64::from(bytes), value));
        }
    }
    figure(
        "cores_that_break_even",
        format!(
            "With how many polling CPUs does OVS-DPDK carry what one card of VFs does, in a chain of {}?",
            chain.vnfs
        ),
        "Modelled. Below a curve VFs carry more.",
        ("bytes of a frame", "polling CPUs"),
        curves,
    )
}

/// How full each resource is at the rate of the best design.
fn used(rates: &[Predicted<'_>]) -> Option<Figure> {
    let group = |one: &Predicted<'_>| {
        let best = rules::allowed(rates, one).first().copied()?;
        let pps = best.rate.chain_pps()?;
        let bar = |stage: &Stage| Bar {
            label: stage.resource.name().to_owned(),
            value: pps / stage.capacity_pps,
            note: format!("carries {} Mpps", base::number::decimals(stage.capacity_pps / 1e6, 2)),
            hue: String::new(),
        };
        Some(BarGroup {
            title: format!("{}, {}", best.design.shape(), rules::subject(best)),
            unit: "share",
            total: 1.0,
            bars: best.rate.stages.iter().map(bar).collect(),
            span: None,
        })
    };
    let groups: Vec<BarGroup> = rules::asked(rates).filter_map(group).collect();
    (!groups.is_empty()).then(|| Figure {
        id: "resources_used".to_owned(),
        title: "How full is each resource at the rate of the best design?".to_owned(),
        caption: "Modelled. Capacities are packets per second of the chain at which the resource is exhausted."
            .to_owned(),
        in_terminals: false,
        drawing: Drawing::Bars(groups),
    })
}
