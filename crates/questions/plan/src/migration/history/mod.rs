//! How wrong was the model before, and what follows for the next interval?
//!
//! ```text
//! recordings with a prediction: ln(what it was / what the model said was likely) of each run, sorted: s_1 <= .. <= s_n
//! fewer than 4 runs     the model's interval; the history is shown and nothing else
//! 4 to 18               the model's interval and [likely x exp(s_1), likely x exp(s_n)] together: never narrower
//! 19 and more           [likely x exp(s_k), likely x exp(s_(n+1-k))] alone, k = floor(0.05 (n + 1)): shifted, wider or narrower
//! ```
//! Split conformal prediction: if the next run is one like those, a new score lies between s_k and s_(n+1-k) with probability 1 - 2k/(n + 1) at least, whatever their
//! distribution (Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World", 2005; Lei et al., JASA 113 (2018), 2.2). A run that was cancelled although the model
//! said that it ends is longer than any other: its score is infinite.

use super::measured::{actual, timed};
use super::predict::{Asked, Interval, Prediction};
use base::number::{many, percent};
use base::prediction::Said;
use base::{Cell, Table, TableSpec, shown, table};
use facts::migrations::Migrations;

/// Below so many runs nothing follows: of three, the next one lies outside in half of all cases.
pub(super) const LEAST_RUNS: usize = 4;
/// From so many on 90 % are held by the history alone (2 / 20).
pub(super) const ENOUGH_RUNS: usize = 19;
/// Of all next runs, those that may lie outside.
const OUTSIDE: f64 = 0.1;
/// Recorded with a prediction: what the model said before a history moved it.
const BY_MODEL: &str = "likely by the model: ";

/// What was said before, and what became of it.
pub(super) const HISTORY: TableSpec = table! {
    migration.history version 1:
    "The prediction of one quantity before one earlier run, and the outcome. `ratio` is the outcome by the likely value of the model alone; null is never.";
    key recording, key_u64("") run, key what, f64("") predicted_low, f64("") likely, f64("") predicted_high,
    f64("") actual, f64("x") ratio, flag inside, text unit;
    shown![
        "Earlier predictions, and what became of them", 40;
        recording, run, what: "quantity", likely: "likely was", actual: "it was", ratio, inside, unit,
    ]
};

/// What follows for the next run.
pub(super) const CORRECTED: TableSpec = table! {
    migration.corrected version 1:
    "The interval of one quantity corrected by earlier runs: ratios of outcome to prediction, the least and the greatest that count, and how many of all next \
          runs the interval holds at least if they are like those (`holds`; null below 4 runs, where it is the model's). Null is never.";
    key what, count runs, f64("x") ratio_low, f64("x") ratio_median, f64("x") ratio_high, f64("") low, f64("") likely,
    f64("") high, share holds, text unit, text by;
    shown![
        "With what earlier runs taught", 8;
        what: "quantity", runs, ratio_median: "ratio", low: "at least", likely, high: "at most", unit, holds, by,
    ]
};

/// One quantity of one earlier run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Residual {
    pub recording: String,
    pub run: u64,
    pub said: Said,
    /// What the model alone said was likely.
    pub by_model: Option<f64>,
    /// What it was; `None`: it never ended, and was cancelled.
    pub actual: Option<f64>,
}

impl Residual {
    /// How many times what the model said it was; infinite for one that never ended; `None` where the two cannot be compared.
    fn ratio(&self) -> Option<f64> {
        let by_model = self.by_model.filter(|likely| *likely > 0.0)?;
        match self.actual {
            Some(actual) => Some(actual / by_model).filter(|ratio| *ratio > 0.0),
            None => Some(f64::INFINITY),
        }
    }
}

/// Earlier runs that were predicted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    residuals: Vec<Residual>,
}

/// What follows for one quantity.
#[derive(Debug, Clone, PartialEq)]
struct Lesson {
    ratios: [f64; 3],
    interval: Interval,
    holds: Option<f64>,
    by: &'static str,
}

impl History {
    /// Adds the runs of a recording, if it has a prediction. One that failed, was not followed to its end, or was slowed by looking at it says nothing of the model.
    pub fn add(&mut self, recording: &str, migrations: &Migrations) {
        let Some(prediction) = &migrations.said else { return };
        let ended = |how: &str| ["completed", "cancelled"].contains(&how);
        let runs = timed(migrations).filter(|(_, one)| one.ended.as_ref().is_some_and(|(_, how)| ended(how)));
        for (run, migration) in runs {
            for said in &prediction.said {
                let by_model = prediction.given.get(&format!("{BY_MODEL}{}", said.what));
                let by_model = by_model.map_or(said.likely, |text| text.parse().ok());
                let actual = actual(migration, &said.what);
                // Moved, and that quantity of it is not known.
                if actual.is_none() && migration.is_completed() {
                    continue;
                }
                let (recording, run) = (recording.to_owned(), run as u64);
                self.residuals.push(Residual { recording, run, said: said.clone(), by_model, actual });
            }
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.residuals.is_empty()
    }

    /// How many runs can be held against what was said of that quantity.
    pub fn runs(&self, what: &str) -> usize {
        self.ratios(what).len()
    }

    fn ratios(&self, what: &str) -> Vec<f64> {
        let of_what = self.residuals.iter().filter(|residual| residual.said.what == what);
        let mut ratios: Vec<f64> = of_what.filter_map(Residual::ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }

    /// What follows for that quantity, of which the model says `interval`.
    fn lesson(&self, what: &str, interval: Interval) -> Option<Lesson> {
        let ratios = self.ratios(what);
        let count = ratios.len();
        let least = ((OUTSIDE / 2.0 * (count + 1) as f64) as usize).max(1);
        let (low, high) = (*ratios.get(least - 1)?, *ratios.get(count.checked_sub(least)?)?);
        let middle = median(&ratios)?;
        let times = |ratio: f64| interval.likely.map(|likely| likely * ratio).filter(|value| value.is_finite());
        let by_history = Interval { low: times(low), likely: times(middle), high: times(high), ..interval };
        let holds = 1.0 - 2.0 * least as f64 / (count + 1) as f64;
        let (interval, holds, by) = match (count, interval.likely) {
            (..LEAST_RUNS, _) | (_, None) => (interval, None, "the model"),
            (..ENOUGH_RUNS, Some(_)) => (together(interval, by_history), Some(holds), "the model and earlier runs"),
            (_, Some(_)) => (by_history, Some(holds), "earlier runs"),
        };
        Some(Lesson { ratios: [low, middle, high], interval, holds, by })
    }

    /// The prediction with what earlier runs taught.
    #[must_use]
    pub fn corrected(&self, mut said: Prediction) -> Prediction {
        for (what, interval) in said.intervals() {
            if let Some(lesson) = self.lesson(what, *interval) {
                *interval = lesson.interval;
            }
        }
        said
    }

    /// What is kept of `said`, with what the model alone said beside where a history moved it: later ratios are of that.
    pub fn kept(&self, said: &Prediction, asked: &Asked) -> base::prediction::Prediction {
        let mut kept = self.corrected(said.clone()).kept(asked);
        for model in said.kept(asked).said.into_iter().filter(|_| !self.is_empty()) {
            let likely = model.likely.map_or_else(|| "never".to_owned(), |likely| likely.to_string());
            kept.given.insert(format!("{BY_MODEL}{}", model.what), likely);
        }
        kept
    }

    /// In one sentence: how far off the model was, and what was made of that.
    pub(super) fn sentence(&self, said: &Prediction) -> Option<String> {
        let runs = self.runs("total");
        let count = many(runs as u64, "earlier run");
        let lesson = self.lesson("total", said.total_s)?;
        let [_, middle, _] = lesson.ratios;
        Some(match lesson.holds {
            None => format!("{count}: too few to move the interval, which takes {LEAST_RUNS}."),
            Some(holds) => {
                let took = if middle.is_finite() {
                    format!("took {middle:.2} times what the model said")
                } else {
                    "never ended".to_owned()
                };
                let holds = percent(holds);
                format!(
                    "{count} {took} in the middle; the intervals are of {} and hold {holds} of runs like those.",
                    lesson.by
                )
            }
        })
    }

    /// Table [`HISTORY`].
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(&HISTORY);
        for one in &self.residuals {
            let said = &one.said;
            table.push(vec![
                one.recording.as_str().into(),
                one.run.into(),
                said.what.as_str().into(),
                cell(said.low),
                cell(said.likely),
                cell(said.high),
                cell(one.actual),
                cell(one.ratio().filter(|ratio| ratio.is_finite())),
                Cell::Bool(said.holds(one.actual)),
                said.unit.as_str().into(),
            ]);
        }
        table
    }

    /// Table [`CORRECTED`], of what the model says.
    pub(super) fn corrections(&self, said: &Prediction, asked: &Asked) -> Table {
        let mut table = Table::new(&CORRECTED);
        let kept = self.corrected(said.clone()).kept(asked).said;
        for ((what, interval), corrected) in said.clone().intervals().into_iter().zip(kept) {
            let Some(lesson) = self.lesson(what, *interval) else { continue };
            let [low, middle, high] = lesson.ratios.map(|ratio| cell(Some(ratio).filter(|ratio| ratio.is_finite())));
            table.push(vec![
                what.into(),
                (self.runs(what) as u64).into(),
                low,
                middle,
                high,
                cell(corrected.low),
                cell(corrected.likely),
                cell(corrected.high),
                cell(lesson.holds),
                corrected.unit.into(),
                lesson.by.into(),
            ]);
        }
        table
    }
}

fn cell(value: Option<f64>) -> Cell {
    value.map_or(Cell::Missing, Cell::F64)
}

/// In order; the upper one of two in the middle, as a guest is promised too little rather than too much.
fn median(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len() / 2).copied()
}

/// What holds both; a missing upper end is never.
fn together(model: Interval, history: Interval) -> Interval {
    let low = match (model.low, history.low) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    };
    Interval { low, high: model.high.zip(history.high).map(|(a, b)| a.max(b)), ..history }
}

#[cfg(test)]
mod tests;
