//! The picture of a plan: what CPU would remain after each change, beside what it is now.

use super::predict::Predicted;
use base::Figure;
use base::figure::{Axis, Drawing, Edge, Shape, Sign, SpanGroup, SpanRow, Stretch};
use base::number::percent;
use facts::estimate::Estimate;

/// `None` where nothing is predicted of any change.
pub(super) fn figure(rows: &[Predicted]) -> Option<Figure> {
    let now = rows.first()?.now;
    let spans: Vec<SpanRow> = rows.iter().filter_map(|row| Some(span(row, row.after?))).collect();
    if spans.is_empty() {
        return None;
    }
    Some(Figure {
        id: "remains".into(),
        title: "CPU that remains after each change".into(),
        caption: format!(
            "What would remain of the {} of one CPU that a vCPU takes now. Bars reach from the least to the most. Modelled.",
            percent(now.mid)
        ),
        in_terminals: false,
        drawing: Drawing::Spans(vec![SpanGroup {
            title: "share of one CPU per vCPU".into(),
            x: Axis { title: "share of one CPU".into(), unit: "share", is_logarithmic: false },
            rows: spans,
            limits: vec![Edge { label: "now".into(), value: now.mid }],
        }]),
    })
}

fn span(row: &Predicted, after: Estimate) -> SpanRow {
    let stretch = Stretch {
        from: after.low,
        to: Some(after.high),
        what: "from the least to the most".into(),
        hue: String::new(),
    };
    SpanRow {
        label: row.change.clone(),
        value: percent(after.mid),
        note: between(after),
        stretches: vec![stretch],
        signs: vec![Sign { at: after.mid, what: "likely".into(), shape: Shape::Bar }],
    }
}

fn between(after: Estimate) -> String {
    format!("{} to {}", percent(after.low), percent(after.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(change: &str, after: Option<(f64, f64, f64)>) -> Predicted {
        let estimate = |(low, mid, high)| Estimate { low, mid, high };
        Predicted {
            change: change.into(),
            title: change.into(),
            now: estimate((0.9, 0.9, 0.9)),
            after: after.map(estimate),
            saved: None,
            note: String::new(),
        }
    }

    #[test]
    fn each_change_has_its_interval_and_what_is_not_predicted_has_no_row() {
        let rows = [row("shadow", Some((0.5, 0.6, 0.8))), row("pinning", None), row("together", Some((0.4, 0.5, 0.8)))];
        let figure = figure(&rows).unwrap();
        let Drawing::Spans(groups) = &figure.drawing else { panic!("{figure:?}") };
        let drawn: Vec<_> = groups[0]
            .rows
            .iter()
            .map(|row| (row.label.as_str(), row.stretches[0].from, row.stretches[0].to, row.signs[0].at))
            .collect();
        assert_eq!(drawn, [("shadow", 0.5, Some(0.8), 0.6), ("together", 0.4, Some(0.8), 0.5)]);
        assert_eq!(groups[0].limits[0].value, 0.9);
        assert!(figure.caption.contains("of the 90.0 % of one CPU"), "{}", figure.caption);
        assert!(super::figure(&[row("pinning", None)]).is_none());
    }
}
