//! Over a series of recordings of one load, when did something change, and what was set up differently from then on?
//!
//! ```text
//! recordings, oldest first --numbers of each--> series --ranks (`change_points`)--> changes of level   (Holm over all series)
//!                          --settings of neighbours--> what differs                  `--the one that begins there
//! ```
//! In: a case and its recordings `again`, in their order. Out: a Section. Fewer than six recordings have no change that could be told.

mod figures;
mod series;

use super::configuration;
use base::number::{list, many, plain};
use base::{Cell, Section, Shown, Table, TableSpec, Unknown, shown, table};
use facts::statistics::change_points::{self, ChangePoint, LEAST};
use facts::statistics::holm::{self, CHANCE};
use facts::{Answer, Case, Error};
use series::Series;

/// Id of the Section.
pub const ID: &str = "history";
pub const QUESTION: &str = "When did something change, and what was set up differently from then on?";

/// All tables, in reading order.
pub const TABLES: &[&TableSpec] = &[&CHANGES, &RECORDINGS, &VALUES];

/// Where a level changed.
pub const CHANGES: TableSpec = table! {
    history.changes version 1:
    "One change of the level of one number: the first recording of the new level, the medians of the recordings before and after up to the next change, how \
          likely a split as clear as this is in a series without any, and what was set up differently between that recording and the one before it.";
    key what, key since, f64("") before, f64("") after, f64("x") ratio, count recordings_before, count recordings_after,
    f64("") chance, text set_up;
    Shown {
        whole: &["what"],
        ..shown![
            "What changed", 40;
            what, since, before, after, ratio, set_up: "set up differently since then",
        ]
    }
};

pub const RECORDINGS: TableSpec = table! {
    history.recordings version 1:
    "One recording of the series, oldest first: when it was made, how many settings differ from the one before it, and which.";
    key_u64("") number, text recording, text created, count differing, text set_up;
    shown![
        "Recordings", 60;
        number, recording, created: "made at", set_up: "set up differently from the one before",
    ]
};

/// Every number of every recording.
pub(crate) const VALUES: TableSpec = table! {
    history.values version 1: "One number of one recording.";
    key what, key_u64("") number, f64("") value;
};

/// Changes that are named in the summary.
const NAMED: usize = 3;
/// Settings that are named of a recording; `compare` has all.
const SETTINGS: usize = 3;

/// A number that changed its level.
#[derive(Debug, Clone, PartialEq)]
struct Change<'s> {
    series: &'s Series,
    /// Place of the first recording of the new level.
    since: usize,
    /// Medians before and after, with their numbers of recordings.
    before: (f64, usize),
    after: (f64, usize),
    chance: f64,
}

/// Answers it.
///
/// # Errors
/// If the recordings do not hold what the user asked for.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let cases: Vec<&Case> = std::iter::once(case).chain(case.again()).collect();
    if !case.given().history {
        return Ok(None);
    }
    let series = series::of(&cases)?;
    let set_up = set_up(&cases);
    let changes = changes(&series);
    let mut section = Section::new(ID, QUESTION);
    section.about.push(format!("{}, oldest first", many(cases.len() as u64, "recording")));
    section.about.push(
        "changes of level by ranks (Pettitt), chances by orders drawn at random, for all numbers together (Holm)"
            .to_owned(),
    );
    section.summary = summary(&cases, &series, &changes, &set_up);
    section.figures = figures::figures(&changes, &set_up);
    let tables = [changes_table(&cases, &changes, &set_up), recordings(&cases, &set_up), values(&series)];
    section.tables = tables.into_iter().filter(|table| !table.rows.is_empty()).collect();
    if cases.len() < 2 * LEAST {
        section.unknown.push(Unknown {
            what: "changes".to_owned(),
            amount: Some(cases.len() as f64),
            unit: "recordings".to_owned(),
            text: format!("Whether anything changed: it takes {} recordings or more to tell.", 2 * LEAST),
        });
    }
    Ok(Some(Answer { section, problems: Vec::new() }))
}

/// What differs between each recording and the one before it, in words.
fn set_up(cases: &[&Case]) -> Vec<Vec<String>> {
    let between = cases.windows(2).map(|pair| {
        let compared = configuration::compared(&pair[..1], &pair[1..]);
        compared.differences.iter().map(configuration::Difference::named).collect()
    });
    std::iter::once(Vec::new()).chain(between).collect()
}

/// The changes that hold for all series together, the largest first.
fn changes(series: &[Series]) -> Vec<Change<'_>> {
    let known: Vec<(&Series, Vec<usize>, Vec<f64>)> = series
        .iter()
        .map(|one| {
            let (places, values) = one.known();
            (one, places, values)
        })
        .collect();
    let clearest: Vec<Option<ChangePoint>> = known.iter().map(|(.., values)| change_points::clearest(values)).collect();
    let chances: Vec<f64> = clearest.iter().flatten().map(|one| one.chance).collect();
    let mut held = holm::hold(&chances).into_iter();
    let mut found = Vec::new();
    for ((series, places, values), clearest) in known.iter().zip(clearest) {
        if clearest.is_none() || held.next() != Some(true) {
            continue;
        }
        let points = change_points::all(values, CHANCE);
        for (number, point) in points.iter().enumerate() {
            let from = number.checked_sub(1).map_or(0, |before| points[before].at);
            let until = points.get(number + 1).map_or(values.len(), |next| next.at);
            let level = |values: &[f64]| (series::level(values), values.len());
            found.push(Change {
                series,
                since: places[point.at],
                before: level(&values[from..point.at]),
                after: level(&values[point.at..until]),
                chance: point.chance,
            });
        }
    }
    found.sort_by(|a, b| b.size().total_cmp(&a.size()).then_with(|| a.series.what.cmp(&b.series.what)));
    found
}

impl Change<'_> {
    fn ratio(&self) -> Option<f64> {
        (self.before.0 > 0.0).then(|| self.after.0 / self.before.0)
    }

    /// How far from no change.
    fn size(&self) -> f64 {
        self.ratio().map_or(f64::INFINITY, |ratio| ratio.ln().abs())
    }
}

fn summary(cases: &[&Case], series: &[Series], changes: &[Change<'_>], set_up: &[Vec<String>]) -> String {
    let numbers = many(series.len() as u64, "number");
    let recordings = many(cases.len() as u64, "recording");
    // Nothing judged is not nothing found.
    if cases.len() < 2 * LEAST {
        return format!(
            "Whether any of {numbers} changed its level cannot be told from {recordings}: it takes {}. What differs between two \
             `kvmscope compare` tells.",
            2 * LEAST
        );
    }
    if changes.is_empty() {
        return format!("None of {numbers} changed its level over {recordings}.");
    }
    let said = |change: &Change<'_>| {
        let times = change.ratio().map_or_else(|| "from 0".to_owned(), |ratio| format!("x{}", plain(ratio)));
        let since = name(cases[change.since]);
        let because = match named(&set_up[change.since]) {
            Some(settings) => format!(", where {settings} differs from the recording before"),
            None => ", with nothing set up differently there".to_owned(),
        };
        format!("{} ({times}) since {since}{because}", change.series.what)
    };
    let mut told: Vec<String> = changes.iter().take(NAMED).map(said).collect();
    if changes.len() > NAMED {
        told.push(many((changes.len() - NAMED) as u64, "other change"));
    }
    let count = many(changes.len() as u64, "change");
    format!("{count} of level among {numbers} over {recordings}: {}.", told.join("; "))
}

/// The first few settings, and how many more.
fn named(settings: &[String]) -> Option<String> {
    let mut told: Vec<String> = settings.iter().take(SETTINGS).cloned().collect();
    if settings.len() > SETTINGS {
        told.push(many((settings.len() - SETTINGS) as u64, "other"));
    }
    (!told.is_empty()).then(|| list(&told))
}

fn name(case: &Case) -> String {
    case.input().recording.title()
}

fn changes_table(cases: &[&Case], changes: &[Change<'_>], set_up: &[Vec<String>]) -> Table {
    let mut table = Table::new(&CHANGES);
    for change in changes {
        table.push(vec![
            change.series.what.as_str().into(),
            name(cases[change.since]).into(),
            change.before.0.into(),
            change.after.0.into(),
            change.ratio().map_or(Cell::Missing, Cell::F64),
            (change.before.1 as u64).into(),
            (change.after.1 as u64).into(),
            change.chance.into(),
            named(&set_up[change.since]).map_or(Cell::Missing, Cell::from),
        ]);
    }
    table
}

fn recordings(cases: &[&Case], set_up: &[Vec<String>]) -> Table {
    let mut table = Table::new(&RECORDINGS);
    for (number, (case, settings)) in cases.iter().zip(set_up).enumerate() {
        let created = case.input().recording.created.as_deref();
        table.push(vec![
            (number as u64).into(),
            name(case).into(),
            created.map_or(Cell::Missing, Cell::from),
            (settings.len() as u64).into(),
            named(settings).map_or(Cell::Missing, Cell::from),
        ]);
    }
    table
}

fn values(series: &[Series]) -> Table {
    let mut table = Table::new(&VALUES);
    for one in series {
        for (number, value) in one.values.iter().enumerate() {
            let Some(value) = value else { continue };
            table.push(vec![one.what.as_str().into(), (number as u64).into(), (*value).into()]);
        }
    }
    table
}
