//! Each change as two points and how far its runs lie apart, by the number that decides.

use super::{ID, Trial};
use base::figure::{Drawing, Figure, Mark, Point, PointGroup};
use base::number::many;
use facts::ablation::{Change, Measure, Ranked, Run, Tried};

/// What each change did to the number that decides first.
pub(super) fn figure(trial: &Trial, ranked: &[Ranked]) -> Option<Figure> {
    let measure = deciding(ranked)?;
    let groups = ranked.iter().filter_map(|one| group(trial, one, measure)).collect();
    let title = format!("What does each change do to {}?", measure.name());
    let runs = trial.runs_in_words();
    let caption = format!(
        "Means of {runs} without the change and as many with it; whiskers reach from the least run to the most."
    );
    Some(Figure { id: ID.to_owned(), title, caption, in_terminals: true, drawing: Drawing::Points(groups) })
}

/// The number that decides: the first that changed for certain anywhere, else the first.
fn deciding(ranked: &[Ranked]) -> Option<&Measure> {
    let all = || ranked.iter().flat_map(|one| &one.changes);
    all().find(|change| change.is_certain).or_else(|| all().next()).map(|change| &change.measure)
}

fn group(trial: &Trial, one: &Ranked, measure: &Measure) -> Option<PointGroup> {
    let Tried { before, after, .. } = trial.tried.iter().find(|tried| tried.name == one.name)?;
    let place = one.changes.iter().position(|change| change.measure == *measure)?;
    let Change { before: without, after: with, .. } = one.changes[place];
    let point = |label: &str, value: f64, runs: &[Run]| {
        let values = || runs.iter().filter_map(|run| run.values().get(place).copied());
        let interval = values().reduce(f64::min).zip(values().reduce(f64::max));
        let source = format!("{} of this host", many(runs.len() as u64, "run"));
        Point { label: label.to_owned(), value, interval, mark: Mark::Measured, source }
    };
    let points = vec![point("without", without, before), point("with", with, after)];
    Some(PointGroup { title: format!("{}: {}", one.name, one.effect.name()), unit: measure.unit(), points })
}
