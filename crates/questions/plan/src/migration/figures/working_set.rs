//! The working set against what is sent: where both meet, passes get no shorter.
//!
//! ```text
//! pages |        sent in that time, T x B / 4,104
//!       |       /  ______  dirtied in that time, W(T)
//!       |    __◇--'          a pass of T leaves W(T) for the next one: right of ◇ passes shrink, left of it they grow
//!       |  .' /
//!       | / /
//!       +-----┆-----------   the downtime limit: left of ◇ no pass ever gets below it
//! ```

use super::super::Survey;
use super::super::model::memory::PAGE_BYTES;
use super::super::predict::{Asked, Prediction};
use super::time;
use base::Figure;
use base::figure::{Axis, Curve, Curves, Drawing, Form, Limit, Mark, On};
use base::number::{duration, percent, thousands};

/// Points of a curve beside those that are known: as many as a page has room for.
const POINTS: usize = 96;

/// A curve that has come so near to all that there is goes on as it is.
const NEARLY_ALL: f64 = 0.95;

/// Halvings or doublings until a time is found: from nanoseconds to hours.
const MOST_STEPS: usize = 50;

/// How much is drawn beyond the last place that matters.
const BEYOND: f64 = 1.2;

/// `None` for a guest that dirties nothing.
pub(super) fn figure(asked: &Asked, said: &Prediction, survey: Option<&Survey>) -> Option<Figure> {
    let setting = &asked.setting;
    let running = 1.0 - setting.throttle;
    let pages = |window_s: f64| setting.working_set.pages(window_s * running);
    let most = setting.working_set.most_pages();
    let rate = setting.working_set.first_rate() * running;
    if most <= 0.0 || rate <= 0.0 {
        return None;
    }
    let knee = |knee_s: &f64| Some(knee_s * 1.5);
    let knees = std::iter::successors(Some(most / rate), knee).take(MOST_STEPS);
    let knee_s = knees.take_while(|knee_s| pages(*knee_s) < NEARLY_ALL * most).last().unwrap_or(most / rate);
    let x = time("a pass takes", false);
    let y = Axis { title: "pages".into(), unit: "count", is_logarithmic: false };
    // As far as the axes go, which end at round values.
    let until_s = x.scale([BEYOND * 1e9 * knee_s.max(said.fixed_point_s).max(setting.limit_s)].into_iter()).to / 1e9;
    let until_pages = y.scale([BEYOND * most].into_iter()).to;
    let sent_per_s = setting.bytes_per_s / PAGE_BYTES;
    // Windows of which the table tells, and the places at which lines bend or meet.
    let known = super::super::tables::WINDOWS_NS.iter().map(|ns| *ns as f64 / 1e9);
    let known = known.chain([most / rate, said.fixed_point_s]);
    let even = (0..=POINTS).map(|point| until_s * point as f64 / POINTS as f64);
    let mut windows_s: Vec<f64> = even.chain(known).filter(|window_s| *window_s <= until_s).collect();
    windows_s.sort_by(f64::total_cmp);
    windows_s.dedup();
    let dirtied = windows_s.iter().map(|window_s| (window_s * 1e9, pages(*window_s))).collect();
    let sent_until_s = until_s.min(until_pages / sent_per_s);
    let sent = vec![(0.0, 0.0), (sent_until_s * 1e9, sent_until_s * sent_per_s)];
    let throttled =
        if setting.throttle > 0.0 { format!(", throttled by {}", percent(setting.throttle)) } else { String::new() };
    let curve = |label: String, form, points| Curve { label, form, points };
    let mut curves = vec![
        curve(format!("pages dirtied in that time{throttled}"), Form::Line, dirtied),
        curve("pages sent in that time".into(), Form::Line, sent),
    ];
    if said.fixed_point_s > 0.0 {
        let meets = vec![(said.fixed_point_s * 1e9, pages(said.fixed_point_s))];
        let label = if said.ways_out.is_some() { "never converges: no pass is shorter" } else { "no pass is shorter" };
        curves.push(curve(label.into(), Form::Points(Mark::Modelled), meets));
    }
    if let Some(survey) = survey {
        let seen = survey.dirtied.iter().map(|one| (one.window_ns as f64, one.pages));
        let mut seen: Vec<(f64, f64)> = seen.filter(|(window_ns, _)| *window_ns <= until_s * 1e9).collect();
        seen.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !seen.is_empty() {
            curves.push(curve("pages dirtied, as measured".into(), Form::Points(Mark::Measured), seen));
        }
    }
    Some(Figure {
        id: "working-set".into(),
        title: "What the guest dirties while pages are sent".into(),
        caption: caption(asked, said, pages(said.fixed_point_s)),
        in_terminals: true,
        drawing: Drawing::Curves(Curves {
            x,
            y,
            curves,
            limits: vec![Limit {
                label: "downtime limit".into(),
                on: On::X,
                value: setting.limit_s * 1e9,
                until: None,
            }],
        }),
    })
}

fn caption(asked: &Asked, said: &Prediction, pages: f64) -> String {
    let [limit, meets] = [asked.setting.limit_s, said.fixed_point_s].map(|seconds| duration(seconds * 1e9));
    if said.fixed_point_s <= 0.0 {
        return "In any time more pages are sent than dirtied: passes shrink to nothing.".to_owned();
    }
    let pages = thousands(pages.round() as u64);
    if said.ways_out.is_some() {
        format!(
            "Never converges: in {meets} the guest dirties {pages} pages, as many as are sent in that time; passes get no shorter, and the limit is {limit}."
        )
    } else {
        format!(
            "Both lines meet at {meets}, where {pages} pages are dirtied and sent: below the limit of {limit}, so that passes get short enough."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::model::passes::tests::bed;
    use super::super::super::model::working_set::WorkingSet;
    use super::super::super::predict::Order;
    use super::super::super::tables;
    use super::*;
    use base::Cell;

    fn drawn(pages_per_s: f64, throttle: f64) -> Option<(Figure, Curves)> {
        let setting = super::super::super::model::passes::Setting { throttle, ..bed(WorkingSet::Cyclic, pages_per_s) };
        let (link_bytes_per_s, order) = (setting.bytes_per_s, Order::AtSync);
        let asked = Asked {
            setting,
            order,
            link_bytes_per_s,
            senders: Vec::new(),
            devices_s: [0.0; 2],
            setup_s: 0.0,
            scan_bytes_per_s: None,
        };
        let figure = figure(&asked, &Prediction::of(&asked), None)?;
        let Drawing::Curves(curves) = figure.drawing.clone() else { panic!("curves") };
        Some((figure, curves))
    }

    #[test]
    fn the_curve_is_that_of_its_table_and_meets_the_line_at_the_fixed_point() {
        let (figure, curves) = drawn(60_000.0, 0.0).unwrap();
        let table = tables::working_set(&bed(WorkingSet::Cyclic, 60_000.0).working_set);
        let dirtied = &curves.curves[0].points;
        let mut common = 0;
        for row in &table.rows {
            let (Cell::U64(window_ns), Cell::U64(pages)) = (&row[0], &row[1]) else { panic!("{row:?}") };
            if let Some((_, drawn)) = dirtied.iter().find(|(at_ns, _)| (at_ns - *window_ns as f64).abs() < 1.0) {
                assert_eq!(drawn.round() as u64, *pages, "{window_ns}");
                common += 1;
            }
        }
        assert_eq!(common, 6, "10 to 500 ms: {figure:?}");
        let (at_ns, pages) = curves.curves[2].points[0];
        assert_eq!(((at_ns / 1e5).round(), pages), (3_362.0, 16_384.0));
        assert!((at_ns / 1e9 * 200e6 / PAGE_BYTES - pages).abs() < 1e-3, "as many are sent in that time");
        assert!(
            figure.caption.starts_with("Never converges: in 336.2 ms the guest dirties 16,384 pages"),
            "{figure:?}"
        );
        assert_eq!(curves.limits[0].value, 50e6);
    }

    #[test]
    fn where_passes_shrink_to_nothing_no_place_is_marked() {
        let (figure, curves) = drawn(24_000.0, 0.0).unwrap();
        assert_eq!((curves.curves.len(), figure.caption.contains("shrink to nothing")), (2, true));
        let (figure, curves) = drawn(400_000.0, 0.5).unwrap();
        assert_eq!(curves.curves[0].label, "pages dirtied in that time, throttled by 50.0 %");
        assert!(curves.curves[2].label.starts_with("never converges"), "{figure:?}");
        assert!(drawn(0.0, 0.0).is_none(), "it writes to nothing");
    }
}
