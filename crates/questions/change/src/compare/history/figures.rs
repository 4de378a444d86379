//! Numbers that changed, recording by recording.
//!
//! ```text
//! value |  · ·            · · ·       one dot a recording
//!       | ----- ·        -------      the level between two changes
//!       |       ------┆·              ┆ what was set up differently from there on
//!       +------------------------     recordings, oldest first
//! ```

use super::{Change, named};
use base::Figure;
use base::figure::{Axis, Curve, Curves, Drawing, Form, Limit, Mark, On};

/// More pictures than anybody reads; the tables have all.
const MOST: usize = 6;

/// One for each number that changed, the largest change first.
pub(super) fn figures(changes: &[Change<'_>], set_up: &[Vec<String>]) -> Vec<Figure> {
    let mut drawn: Vec<&Change<'_>> = Vec::new();
    for change in changes {
        if drawn.len() < MOST && drawn.iter().all(|one| one.series.what != change.series.what) {
            drawn.push(change);
        }
    }
    let of = |(number, change): (usize, &Change<'_>)| {
        let mut own: Vec<&Change<'_>> = changes.iter().filter(|one| one.series.what == change.series.what).collect();
        own.sort_by_key(|one| one.since);
        figure(number, &own, set_up)
    };
    drawn.into_iter().enumerate().map(of).collect()
}

/// All changes of one series, in order.
fn figure(number: usize, changes: &[&Change<'_>], set_up: &[Vec<String>]) -> Figure {
    let series = changes[0].series;
    let (places, values) = series.known();
    let at = |place: usize| place as f64;
    let dots = places.iter().zip(&values).map(|(place, value)| (at(*place), *value)).collect();
    let mut levels = vec![(at(places[0]), changes[0].before.0)];
    levels.extend(changes.iter().map(|change| (at(change.since), change.after.0)));
    levels.extend(changes.last().map(|last| (at(places[places.len() - 1]), last.after.0)));
    let limits = changes.iter().map(|change| Limit {
        label: named(&set_up[change.since]).unwrap_or_else(|| "nothing set up differently".to_owned()),
        on: On::X,
        value: at(change.since),
        until: None,
    });
    let (title, unit) = series.what.rsplit_once(", ").unwrap_or((&series.what, ""));
    let curve = |label: &str, form, points| Curve { label: label.to_owned(), form, points };
    Figure {
        id: format!("history-{number}"),
        title: format!("{title}, recording by recording"),
        caption: changes.iter().map(|change| said(change)).collect::<Vec<_>>().join(" "),
        in_terminals: number == 0,
        drawing: Drawing::Curves(Curves {
            x: Axis { title: "recording, oldest first".into(), unit: "count", is_logarithmic: false },
            y: axis(title, unit),
            curves: vec![
                curve("one recording", Form::Points(Mark::Measured), dots),
                curve("median between changes", Form::Steps, levels),
            ],
            limits: limits.collect(),
        }),
    }
}

/// The axis of numbers of that unit; one that pictures do not know stands in its title.
fn axis(title: &str, unit: &str) -> Axis {
    let known = ["ns", "share", "bytes"].into_iter().find(|known| *known == unit);
    let title = if known.is_some() || unit.is_empty() { title.to_owned() } else { format!("{title} ({unit})") };
    Axis { title, unit: known.unwrap_or("count"), is_logarithmic: false }
}

fn said(change: &Change<'_>) -> String {
    let [before, after] = [change.before.0, change.after.0].map(base::number::plain);
    format!(
        "{before} in {} recordings before number {}, {after} in {} since.",
        change.before.1, change.since, change.after.1
    )
}
