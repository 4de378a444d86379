//! Passes as a staircase down to the limit.

use super::super::model::passes::Course;
use super::super::predict::{Asked, Prediction};
use super::time;
use base::Figure;
use base::figure::{Curve, Curves, Drawing, Form, Limit, On};
use base::number::{counted, duration};

/// Passes that are drawn: where they never end, more tell nothing.
const MOST_DRAWN: usize = 40;

/// What is left to send as each pass begins, by course.
pub(super) fn figure(asked: &Asked, said: &Prediction) -> Figure {
    let mut curves = vec![curve("dirty bits cleared as passes begin", &said.at_sync)];
    if said.middle != said.at_sync {
        curves.push(curve("cleared as pages are sent", &said.middle));
    }
    // One that never ends runs away: it is drawn as far as the others go.
    let until_ns = curves.iter().flat_map(|curve| curve.points.last()).map(|(at_ns, _)| *at_ns).fold(0.0, f64::max);
    let mut naive = curve("without a working set", &said.naive);
    if said.naive.last_bytes.is_none() {
        naive.points.retain(|(at_ns, _)| *at_ns <= until_ns);
    }
    curves.push(naive);
    let caption = match said.at_sync.last_s() {
        Some(last_s) => format!(
            "After {} what is left is sent in {}, below the limit: the guest is stopped for it.",
            counted(said.at_sync.passes() as u64, "pass", "passes"),
            duration(last_s * 1e9)
        ),
        None => {
            format!("Passes get no shorter than {}: the guest is never stopped.", duration(said.fixed_point_s * 1e9))
        }
    };
    Figure {
        id: "passes".into(),
        title: "What is left to send as each pass begins".into(),
        caption,
        in_terminals: true,
        drawing: Drawing::Curves(Curves {
            x: time("time since the migration began", false),
            y: time("time to send it", true),
            curves,
            limits: vec![Limit {
                label: "downtime limit".into(),
                on: On::Y,
                value: asked.setting.limit_s * 1e9,
                until: None,
            }],
        }),
    }
}

fn curve(label: &str, course: &Course) -> Curve {
    let mut since_ns = 0.0;
    let all = course.passes_bytes.iter().copied().take(MOST_DRAWN).chain(course.last_bytes);
    let points = all.enumerate().map(|(nth, left_bytes)| {
        let (at_ns, sent_s) = (since_ns, left_bytes / course.bytes_per_s);
        // Looking for zeros may take longer than sending.
        since_ns += if nth == 0 { sent_s.max(course.first_pass_s) } else { sent_s } * 1e9;
        (at_ns, sent_s * 1e9)
    });
    Curve { label: label.into(), form: Form::Steps, points: points.collect() }
}
