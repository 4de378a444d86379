//! The pictures of a fleet: hosts that stand out against the hosts that are alike, and kernels against each other.

use super::kernels::Kernel;
use super::outliers::Outlier;
use super::ranked::Ranked;
use base::Figure;
use base::figure::{Axis, Bar, BarGroup, Drawing, Mark, Point, PointGroup, Shape, Sign, SpanGroup, SpanRow, Stretch};
use base::number::{amount, many, plain};

/// Rows of a number; the table has all.
const MOST_ROWS: usize = 12;

/// A group for each number by which hosts stand out; `None` where none does.
pub(super) fn outliers(outliers: &[Outlier]) -> Option<Figure> {
    let mut groups: Vec<SpanGroup> = Vec::new();
    for one in outliers {
        let at = groups.iter().position(|group| group.title == one.what).unwrap_or_else(|| {
            let x = Axis { title: one.what.clone(), unit: unit(&one.unit), is_logarithmic: false };
            groups.push(SpanGroup { title: one.what.clone(), x, rows: Vec::new(), limits: Vec::new() });
            groups.len() - 1
        });
        if groups[at].rows.len() < MOST_ROWS {
            groups[at].rows.push(row(one));
        }
    }
    let hosts: std::collections::BTreeSet<&str> = outliers.iter().map(|one| one.host.as_str()).collect();
    (!groups.is_empty()).then(|| Figure {
        id: "outliers".into(),
        title: "Which hosts stand out?".into(),
        caption: format!(
            "{}, by {}. Each bar runs from the median of similar hosts (same CPU model and kernel) to the host.",
            many(hosts.len() as u64, "host"),
            many(groups.len() as u64, "number")
        ),
        in_terminals: false,
        drawing: Drawing::Spans(groups),
    })
}

/// On how many hosts each rule found something, in the order of the table; `None` where none did.
pub(super) fn ranked(ranked: &[Ranked<'_>], hosts: usize) -> Option<Figure> {
    let bar = |one: &Ranked<'_>| Bar {
        label: one.rule.to_owned(),
        value: one.hosts.len() as f64,
        note: one.severity.name().to_owned(),
        hue: String::new(),
    };
    let bars: Vec<Bar> = ranked.iter().take(MOST_ROWS).map(bar).collect();
    let title = format!("of {}", many(hosts as u64, "host"));
    let group = BarGroup { title, unit: "hosts", total: hosts as f64, bars, span: None };
    (!ranked.is_empty()).then(|| Figure {
        id: "ranked".into(),
        title: "What was found on how many hosts".into(),
        caption: "The worst first; table ranked has a host for each.".to_owned(),
        in_terminals: false,
        drawing: Drawing::Bars(vec![group]),
    })
}

/// What exits cost under each kernel, relative to the others, by CPU model; `None` where no CPU model has two kernels.
pub(super) fn kernels(kernels: &[Kernel]) -> Option<Figure> {
    let mut groups: Vec<PointGroup> = Vec::new();
    for one in kernels {
        let title = format!("{}: cost of an exit in relation to other kernels", one.cpu_model);
        let point = Point {
            label: one.kernel.clone(),
            value: one.ratio,
            interval: None,
            mark: Mark::Measured,
            source: many(one.hosts as u64, "host"),
        };
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.points.push(point),
            None => groups.push(PointGroup { title, unit: "x", points: vec![point] }),
        }
    }
    let dearest = kernels.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
    Some(Figure {
        id: "kernels".into(),
        title: "Does a kernel make exits cost more?".into(),
        caption: format!(
            "{} on {} has the highest cost: {} times that of the other kernels.",
            dearest.kernel,
            dearest.cpu_model,
            plain(dearest.ratio)
        ),
        in_terminals: false,
        drawing: Drawing::Points(groups),
    })
}

fn row(one: &Outlier) -> SpanRow {
    let (from, to) = if one.median <= one.value { (one.median, one.value) } else { (one.value, one.median) };
    SpanRow {
        label: one.host.clone(),
        value: amount(one.value, &one.unit),
        note: one.why.join(", "),
        stretches: vec![Stretch { from, to: Some(to), what: "distance from similar hosts".into(), hue: String::new() }],
        signs: vec![
            Sign { at: one.median, what: "median of similar hosts".into(), shape: Shape::Bar },
            Sign { at: one.value, what: "the host".into(), shape: Shape::Dot },
        ],
    }
}

/// Units of axes are the program's own words.
fn unit(of: &str) -> &'static str {
    match of {
        "ns" => "ns",
        "share" => "share",
        "bytes" => "bytes",
        _ => "",
    }
}
