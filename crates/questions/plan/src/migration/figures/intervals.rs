//! What is said of the time in all and of the dark time: from the least to the most, what is likely, and the naive model beside.

use super::super::predict::{Asked, Interval, Prediction};
use super::time;
use base::Figure;
use base::figure::{Drawing, Edge, Shape, Sign, SpanGroup, SpanRow, Stretch};
use base::number::duration;

/// `None` where nothing ends by any model.
pub(super) fn figure(asked: &Asked, model: &Prediction, said: &Prediction) -> Option<Figure> {
    let limit = Edge { label: "downtime limit".into(), value: asked.setting.limit_s * 1e9 };
    let groups = vec![
        group("time in all", model.total_s, said.total_s, Vec::new()),
        group("dark time", model.downtime_s, said.downtime_s, vec![limit]),
    ];
    let is_empty = |row: &SpanRow| row.stretches.is_empty() && row.signs.is_empty();
    if groups.iter().flat_map(|group| &group.rows).all(is_empty) {
        return None;
    }
    let of = |interval: Interval| {
        interval.likely.map_or("never ends".to_owned(), |s| format!("most likely takes {}", duration(s * 1e9)))
    };
    Some(Figure {
        id: "prediction".into(),
        title: "Predicted total time and downtime".into(),
        caption: format!(
            "The migration {}, {}; {}. Modelled.",
            of(said.total_s),
            words(said.total_s),
            naive(said.total_s)
        ),
        in_terminals: true,
        drawing: Drawing::Spans(groups),
    })
}

fn group(title: &str, model: Interval, said: Interval, limits: Vec<Edge>) -> SpanGroup {
    let mut rows = vec![row("the model", model)];
    if said != model {
        rows.push(row("with earlier runs", said));
    }
    SpanGroup { title: title.into(), x: time(title, false), rows, limits }
}

fn row(label: &str, interval: Interval) -> SpanRow {
    let sign = |seconds: Option<f64>, what: &str, shape| {
        seconds.map(|seconds| Sign { at: seconds * 1e9, what: what.into(), shape })
    };
    // At worst it never ends; at best it may.
    let stretch = interval.low.map(|low| Stretch {
        from: low * 1e9,
        to: interval.high.map(|high| high * 1e9),
        what: "from the least to the most".into(),
        hue: String::new(),
    });
    let signs =
        [sign(interval.likely, "likely", Shape::Bar), sign(interval.naive, "without a working set", Shape::Cross)];
    SpanRow {
        label: label.into(),
        value: interval.likely.map_or("never".into(), |likely| duration(likely * 1e9)),
        note: format!("{}; {}", words(interval), naive(interval)),
        stretches: stretch.into_iter().collect(),
        signs: signs.into_iter().flatten().collect(),
    }
}

/// `1.7 s to 3.0 s`
fn words(interval: Interval) -> String {
    match (interval.low, interval.high) {
        (Some(low), Some(high)) => format!("{} to {}", duration(low * 1e9), duration(high * 1e9)),
        (Some(low), None) => format!("{} at best, never at worst", duration(low * 1e9)),
        (None, _) => "never".to_owned(),
    }
}

fn naive(interval: Interval) -> String {
    format!("naive {}", interval.naive.map_or("never".to_owned(), |naive| duration(naive * 1e9)))
}

#[cfg(test)]
mod tests {
    use super::super::super::model::passes::tests::bed;
    use super::super::super::model::working_set::WorkingSet;
    use super::super::super::predict::Order;
    use super::*;

    fn asked(pages_per_s: f64) -> Asked {
        let setting = bed(WorkingSet::Cyclic, pages_per_s);
        let link_bytes_per_s = setting.bytes_per_s;
        Asked {
            setting,
            order: Order::Unknown,
            link_bytes_per_s,
            senders: Vec::new(),
            devices_s: [0.0; 2],
            setup_s: 0.0,
            scan_bytes_per_s: None,
        }
    }

    #[test]
    fn bars_and_signs_are_what_the_table_says() {
        let asked = asked(40_000.0);
        let model = Prediction::of(&asked);
        let Drawing::Spans(groups) = figure(&asked, &model, &model).unwrap().drawing else { panic!("spans") };
        let kept = model.kept(&asked);
        for (group, what) in groups.iter().zip(["total", "downtime"]) {
            let said = kept.said.iter().find(|said| said.what == what).unwrap();
            let [row] = &group.rows[..] else { panic!("{group:?}") };
            let drawn =
                (Some(row.stretches[0].from), row.stretches[0].to, Some(row.signs[0].at), Some(row.signs[1].at));
            assert_eq!(drawn, (said.low, said.high, said.likely, said.naive), "{what}");
        }
        assert_eq!(groups[1].limits[0].value, 50e6);
        let corrected = Prediction { total_s: Interval { high: Some(9.0), ..model.total_s }, ..model.clone() };
        let Drawing::Spans(groups) = figure(&asked, &model, &corrected).unwrap().drawing else { panic!("spans") };
        assert_eq!(groups[0].rows[1].stretches[0].to, Some(9e9));
        assert_eq!(groups[1].rows.len(), 1, "what earlier runs do not change is drawn once");
    }

    #[test]
    fn what_never_ends_is_no_bar_and_no_0() {
        let asked = asked(60_000.0);
        let model = Prediction::of(&asked);
        assert!(figure(&asked, &model, &model).is_none());
        let perhaps = Interval { low: Some(1.0), likely: None, high: None, naive: None };
        let row = row("the model", perhaps);
        assert_eq!((row.stretches[0].to, row.signs.len(), row.value.as_str()), (None, 0, "never"));
    }
}
