//! The picture of what was measured: what each chain carried, and what bound it.

use super::kinds::Kind;
use base::Figure;
use base::datapath::Traffic;
use base::figure::{Drawing, Mark, Point, PointGroup};
use base::number::{many, plain};

/// The rates of all kinds of trials, those of one size on one scale; `None` where no trial was made at the most that can be sent.
pub(super) fn rates(kinds: &[Kind<'_>]) -> Option<Figure> {
    let mut groups: Vec<PointGroup> = Vec::new();
    let mut most: Option<(f64, String)> = None;
    for kind in kinds {
        let (Some(run), Some(pps)) = (kind.first(), kind.chain_pps()) else { continue };
        let what = match run.pattern {
            Traffic::Chain => many(u64::from(run.vnfs), "VNF"),
            Traffic::NorthSouth => format!("{} side by side", many(u64::from(run.vnfs), "VNF")),
        };
        let label = format!("{}, {what}", run.design);
        if most.as_ref().is_none_or(|(known, _)| pps.median > *known) {
            most = Some((pps.median, format!("{label}, {} bytes", run.size_bytes)));
        }
        let point = Point {
            label,
            value: pps.median / 1e6,
            interval: (pps.count > 1).then_some((pps.low / 1e6, pps.high / 1e6)),
            mark: Mark::Measured,
            source: match kind.bound_by() {
                Some(bound) => format!("bound by {bound}"),
                None if kind.is_disturbed() => "polling threads waited for CPUs".to_owned(),
                None => String::new(),
            },
        };
        let title = format!("{} bytes", run.size_bytes);
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.points.push(point),
            None => groups.push(PointGroup { title, unit: "Mpps", points: vec![point] }),
        }
    }
    let (pps, label) = most?;
    Some(Figure {
        id: "rates".into(),
        title: "What did each chain carry?".into(),
        caption: format!(
            "The most, {} Mpps, was carried by {label}. A line reaches from the lowest to the highest trial.",
            plain(pps / 1e6)
        ),
        in_terminals: true,
        drawing: Drawing::Points(groups),
    })
}
