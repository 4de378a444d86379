//! Do the models hold? What they predict of results that others published, and the page that shows it.
//!
//! A model's question fills rows; here they are counted for the last line of a plan, and printed as docs/formats/validation.md.

use super::published::Source;
use base::number::{many, percent};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The page that this program prints.
pub const PAGE: &str = "docs/formats/validation.md";

/// A published result beside what a model predicts of it.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Unique: `pvm23.msr.l2`.
    pub id: String,
    /// The published result: several rows may be one, under assumptions that its source leaves open.
    pub result: String,
    /// A key of the published sources.
    pub source: &'static str,
    pub inputs: String,
    /// Unit of all numbers.
    pub unit: &'static str,
    pub published: f64,
    /// What the model predicts; `None` where it says nothing.
    pub predicted: Option<Band>,
    pub worth: Worth,
    /// What it rests on, or why the model misses.
    pub note: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// The least.
    pub low: f64,
    /// The most likely.
    pub likely: f64,
    /// The most.
    pub high: f64,
}

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Worth {
        /// The model did not know the number.
        Held = "tested",
        /// The number, or another one of its bed, gave a constant or a band: no evidence.
        Fitted = "fitted",
        /// The model has only an upper bound.
        Ceiling = "ceiling",
        /// A wrong assumption, to show that the right one matters.
        Control = "control",
        /// The model says nothing of it.
        Unpredicted = "not predicted",
    }
}

impl Band {
    /// Around a number, by a share to either side.
    pub fn around(likely: f64, share: f64) -> Self {
        Self { low: likely * (1.0 - share), likely, high: likely * (1.0 + share) }
    }

    /// Everything up to a bound.
    pub fn up_to(high: f64) -> Self {
        Self { low: 0.0, likely: high, high }
    }

    /// How many times its least the most is.
    fn width(self) -> f64 {
        self.high / self.low
    }
}

impl Comparison {
    /// Whether what was published lies in the band. Rounding of the arithmetic puts nothing outside.
    pub fn is_inside(&self) -> Option<bool> {
        const ROUNDING: f64 = 1e-9;
        let Band { low, high, .. } = self.predicted?;
        Some(self.published >= low * (1.0 - ROUNDING) && self.published <= high * (1.0 + ROUNDING))
    }

    /// By what share the most likely prediction is above what was published.
    pub fn error(&self) -> Option<f64> {
        Some(self.predicted?.likely / self.published - 1.0)
    }

    /// Whether it speaks against the model.
    pub fn is_miss(&self) -> bool {
        self.worth == Worth::Held && self.is_inside() == Some(false)
    }

    /// `12.5 Mpps lie 7.2 % above the band`.
    fn miss(&self) -> Option<String> {
        let Band { low, high, .. } = self.predicted.filter(|_| self.is_miss())?;
        let (end, side) = if self.published > high { (high, "above") } else { (low, "below") };
        let off = percent((self.published / end - 1.0).abs());
        Some(format!("{} {} is {off} {side} the band", number(self.published), self.unit))
    }
}

/// How many results a model was held against, how many of them lie in its band, and how wide that is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tally {
    pub held: u64,
    /// Those that lie in the band under each assumption that was made.
    pub inside: u64,
    /// The median of the most over the least; `None` where nothing was held against the model.
    pub width: Option<f64>,
}

pub fn tally(rows: &[Comparison]) -> Tally {
    let held: Vec<&Comparison> =
        rows.iter().filter(|row| row.worth == Worth::Held && row.predicted.is_some()).collect();
    let results: BTreeSet<&str> = held.iter().map(|row| row.result.as_str()).collect();
    let missed: BTreeSet<&str> = held.iter().filter(|row| row.is_miss()).map(|row| row.result.as_str()).collect();
    let of = |result: &str| {
        let widths = held.iter().filter(|row| row.result == result).filter_map(|row| row.predicted).map(Band::width);
        widths.fold(0.0, f64::max)
    };
    let mut widths: Vec<f64> = results.iter().map(|result| of(result)).collect();
    widths.sort_by(f64::total_cmp);
    // Of an even number the wider of the two in the middle.
    let width = widths.get(widths.len() / 2).copied();
    Tally { held: results.len() as u64, inside: (results.len() - missed.len()) as u64, width }
}

/// How far to trust a plan.
pub fn sentence(rows: &[Comparison]) -> String {
    let Tally { held, inside, width } = tally(rows);
    let width = width.map_or(String::new(), |width| format!(", median width {}x", number(width)));
    format!("Validation: {inside} of {} lie inside the predicted band{width} ({PAGE})", many(held, "published result"))
}

/// The step that plans end with: the command that prints the page, and how far to trust them.
pub fn step(rows: &[Comparison]) -> String {
    format!("kvmscope schema --format validation   # {}", sentence(rows))
}

/// Three digits, as many as most were published with, or all of a whole number.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value < 1e6 {
        return base::number::plain(value);
    }
    let scale = 10f64.powf(2.0 - value.abs().log10().floor());
    base::number::plain(if scale < 1.0 { value.round() } else { (value * scale).round() / scale })
}

/// One chapter of the page: what a plan is held against.
pub fn chapter(title: &str, about: &str, rows: &[Comparison]) -> String {
    let mut out = format!("## {title}\n\n{about}\n\n{}.\n\n", sentence(rows));
    out.push_str("| result | given | low | likely | high | published | unit | inside | error | counts as | source |\n");
    out.push_str("|---|---|---|---|---|---|---|---|---|---|---|\n");
    for row in rows {
        let [low, likely, high] = match row.predicted {
            Some(Band { low, likely, high }) => [low, likely, high].map(number),
            None => ["-"; 3].map(str::to_owned),
        };
        let inside = row.is_inside().map_or("-", |is_inside| if is_inside { "yes" } else { "**no**" });
        let error = row.error().map_or("-".to_owned(), percent);
        let (id, inputs, unit, source) = (&row.id, &row.inputs, row.unit, row.source);
        let (published, worth) = (number(row.published), row.worth.name());
        let _ = writeln!(
            out,
            "| `{id}` | {inputs} | {low} | {likely} | {high} | {published} | {unit} | {inside} | {error} | {worth} | {source} |"
        );
    }
    let misses: Vec<String> =
        rows.iter().filter_map(|row| Some(format!("- `{}`: {}; {}.\n", row.id, row.miss()?, row.note))).collect();
    if !misses.is_empty() {
        let _ = write!(out, "\nOutside:\n\n{}", misses.concat());
    }
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows.iter().filter(|row| !row.is_miss() && !row.note.is_empty()) {
        match notes.iter_mut().find(|(note, _)| *note == row.note) {
            Some((_, ids)) => ids.push(&row.id),
            None => notes.push((&row.note, vec![&row.id])),
        }
    }
    if !notes.is_empty() {
        out.push_str("\nAssumptions of the others:\n\n");
        for (note, ids) in notes {
            let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
            let _ = writeln!(out, "- {}: {note}.", ids.join(", "));
        }
    }
    out
}

/// The sources that rows name, as a chapter of the page.
pub fn sources(keys: impl IntoIterator<Item = (&'static str, &'static Source)>) -> String {
    let mut out = "## Sources\n\n| source | is | read at | year | |\n|---|---|---|---|---|\n".to_owned();
    for (key, source) in keys {
        let Source { title, address, year, quoted, .. } = source;
        let year = year.map_or(String::new(), |year| year.to_string());
        let how = if *quoted { "quoted" } else { "read" };
        let _ = writeln!(out, "| {key} | {title} | {address} | {year} | {how} |");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(result: &str, published: f64, predicted: Option<Band>, worth: Worth) -> Comparison {
        Comparison {
            id: result.to_owned(),
            result: result.to_owned(),
            source: "pvm23",
            inputs: "nothing".to_owned(),
            unit: "us",
            published,
            predicted,
            worth,
            note: String::new(),
        }
    }

    #[test]
    fn results_are_counted_once_and_a_miss_under_any_assumption_is_one() {
        let band = |low, high| Some(Band { low, likely: low, high });
        let rows = [
            row("a", 1.0, band(1.0, 2.0), Worth::Held),
            row("b", 1.0, band(0.5, 2.0), Worth::Held),
            row("b", 1.0, band(2.0, 3.0), Worth::Held),
            row("c", 3.0, band(1.0, 3.0), Worth::Held),
            row("d", 9.0, band(1.0, 2.0), Worth::Fitted),
            row("e", 9.0, band(1.0, 2.0), Worth::Control),
            row("f", 9.0, Some(Band::up_to(2.0)), Worth::Ceiling),
            row("g", 9.0, None, Worth::Held),
        ];
        assert_eq!(tally(&rows), Tally { held: 3, inside: 2, width: Some(3.0) });
        let said = "Validation: 2 of 3 published results lie inside the predicted band, median width 3x (docs/formats/validation.md)";
        assert_eq!(sentence(&rows), said);
        assert_eq!(tally(&rows[4..]), Tally { held: 0, inside: 0, width: None });
        assert_eq!(rows[2].miss().unwrap(), "1 us is 50.0 % below the band");
    }

    #[test]
    fn a_chapter_shows_each_row_and_why_one_is_missed() {
        let mut rows = [
            row("near", 1.1, Some(Band::around(1.0, 0.2)), Worth::Held),
            row("far", 12.0, Some(Band::around(10.0, 0.1)), Worth::Held),
            row("none", 4.0, None, Worth::Unpredicted),
        ];
        rows[1].note = "nobody knows why".to_owned();
        let page = chapter("A model", "About it.", &rows);
        assert!(
            page.contains("| `near` | nothing | 0.8 | 1 | 1.2 | 1.1 | us | yes | -9.1 % | tested | pvm23 |"),
            "{page}"
        );
        assert!(page.contains("- `far`: 12 us is 9.1 % above the band; nobody knows why."), "{page}");
        assert!(page.contains("| `none` | nothing | - | - | - | 4 | us | - | - | not predicted | pvm23 |"), "{page}");
    }
}
