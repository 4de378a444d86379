//! Rows of a table as pairs of numbers: tests of benches, rates of datapaths, prices of placements.
//!
//! ```text
//! bench        medians of launches, a group for each unit        verdict of interval and ranks
//! datapaths    means of repeats, a group for each measure        verdict of Welch's t
//! placement    prices of each machine                            modelled: no verdict
//! ```
//! What was repeated has a verdict of its own repetitions, also with one recording a side. A row that one side alone has is no pair.

use super::dumbbells::{LOGARITHMIC, change};
use crate::compare::ratio::Verdict;
use base::figure::{Axis, Drawing, Dumbbell, DumbbellGroup, Mark, Sure};
use base::number::many;
use base::table::Row;
use base::{Cell, Figure, Table};

/// Pairs of a group, as many as fit on a page; the table has all.
const MOST: usize = 24;

pub(in crate::compare) fn benches(table: &Table, is_emulated: bool) -> Option<Figure> {
    let title = |row: &Row<'_>| format!("Cost per test in {}, median of launches", text(row, "unit"));
    let label = |row: &Row<'_>| {
        let ring = number(row, "ring").map(|ring| format!("ring {ring}")).unwrap_or_default();
        joined(&[text(row, "test"), text(row, "where"), ring], " ")
    };
    let mark = if is_emulated { Mark::Emulated } else { Mark::Measured };
    let unit = |row: &Row<'_>| if text(row, "unit") == "ns" { "ns" } else { "count" };
    let of = Of { id: "tests", question: "What changed in the benches, and is it real?", noun: "test", mark };
    of.figure(table, title, label, unit)
}

/// Rates and costs of datapaths.
pub(in crate::compare) fn datapaths(table: &Table) -> Option<Figure> {
    let title = |row: &Row<'_>| text(row, "measure").replace('_', " ");
    let label = |row: &Row<'_>| {
        let of = |column: &str, noun: &str| number(row, column).map(|count| many(count as u64, noun));
        let bytes = of("size_bytes", "byte").or(of("message_bytes", "byte")).unwrap_or_default();
        joined(&[text(row, "design"), of("vnfs", "VNF").unwrap_or_default(), bytes], ", ")
    };
    let question = "What changed in the datapaths, and is it real?";
    let of = Of { id: "carried", question, noun: "rate or cost", mark: Mark::Measured };
    of.figure(table, title, label, |_| "count")
}

/// Prices of the placements that held: modelled.
pub(in crate::compare) fn prices(table: &Table) -> Option<Figure> {
    let title =
        |row: &Row<'_>| format!("Placement on {}, in points: 1,000 are a CPU's worth of work", text(row, "machine"));
    let label = |row: &Row<'_>| match text(row, "price").as_str() {
        "all" => "all together".to_owned(),
        price => price.to_owned(),
    };
    let of =
        Of { id: "prices", question: "What the placement costs, by our model", noun: "price", mark: Mark::Modelled };
    of.figure(table, title, label, |_| "count")
}

struct Of {
    id: &'static str,
    question: &'static str,
    noun: &'static str,
    mark: Mark,
}

impl Of {
    fn figure(
        &self,
        table: &Table,
        title: impl Fn(&Row<'_>) -> String,
        label: impl Fn(&Row<'_>) -> String,
        unit: impl Fn(&Row<'_>) -> &'static str,
    ) -> Option<Figure> {
        let mut groups: Vec<DumbbellGroup> = Vec::new();
        let is_modelled = self.mark == Mark::Modelled;
        for row in table.rows() {
            let Some(pair) = self.pair(&row, label(&row)) else { continue };
            let title = title(&row);
            match groups.iter_mut().find(|group| group.title == title) {
                Some(group) => group.rows.push(pair),
                None => {
                    let words = if is_modelled { "points" } else { LOGARITHMIC };
                    let x = Axis { title: words.into(), unit: unit(&row), is_logarithmic: !is_modelled };
                    groups.push(DumbbellGroup { title, x, rows: vec![pair] });
                }
            }
        }
        let pairs = || groups.iter().flat_map(|group| &group.rows);
        let (all, claims) = (pairs().count(), pairs().filter(|pair| pair.sure == Sure::Changed).count());
        if all == 0 {
            return None;
        }
        let caption = if is_modelled {
            "Modelled, not measured: prices of the placement that held on each side.".to_owned()
        } else {
            let all = match self.noun {
                "rate or cost" => format!("{all} rates and costs"),
                noun => many(all as u64, noun),
            };
            format!("Of {all} on both sides, {claims} changed by more than noise.")
        };
        for group in &mut groups {
            if !is_modelled {
                group.rows.sort_by(|a, b| a.sure.cmp(&b.sure).then(size(b).total_cmp(&size(a))));
            }
            group.rows.truncate(MOST);
        }
        let (id, title, drawing) = (self.id.into(), self.question.into(), Drawing::Dumbbells(groups));
        Some(Figure { id, title, caption, in_terminals: false, drawing })
    }

    fn pair(&self, row: &Row<'_>, label: String) -> Option<Dumbbell> {
        let (before, after) = (number(row, "before")?, number(row, "after")?);
        let verdict = text(row, "verdict");
        let sure = [
            (Verdict::Higher, Sure::Changed),
            (Verdict::Lower, Sure::Changed),
            (Verdict::NoChange, Sure::Noise),
            (Verdict::Void, Sure::Void),
        ];
        let found = sure.into_iter().find(|(known, _)| known.name() == verdict);
        let interval = number(row, "ratio_low").zip(number(row, "ratio_high"));
        let interval = interval.map(|(low, high)| (low * before, high * before)).filter(|(low, high)| high > low);
        Some(Dumbbell {
            label,
            before,
            after,
            interval,
            change: change(before, after),
            verdict: if self.mark == Mark::Modelled { self.mark.name().into() } else { verdict },
            sure: found.map_or(Sure::Unknown, |(_, sure)| sure),
            mark: self.mark,
            hue: String::new(),
        })
    }
}

/// By how much it changed: half is as much as twice, and what is gone or new is most.
fn size(pair: &Dumbbell) -> f64 {
    (pair.after / pair.before).ln().abs()
}

fn text(row: &Row<'_>, column: &str) -> String {
    match row.cell(column) {
        Some(Cell::Text(text)) => text.to_string(),
        _ => String::new(),
    }
}

fn number(row: &Row<'_>, column: &str) -> Option<f64> {
    match row.cell(column) {
        Some(Cell::F64(value)) => Some(*value),
        Some(Cell::U64(value)) => Some(*value as f64),
        _ => None,
    }
}

fn joined(parts: &[String], between: &str) -> String {
    let filled: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    filled.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::benches::BENCH;

    #[test]
    fn tests_of_benches_are_pairs_by_unit_and_the_surest_change_is_first() {
        let mut table = Table::new(&BENCH);
        let mut row = |test: &str, unit: &str, numbers: [f64; 4], verdict: &str| {
            let [before, after, low, high] = numbers.map(Cell::from);
            let mut cells = vec![test.into(), "here".into(), Cell::Missing, unit.into(), before, after, Cell::Missing];
            cells.extend([low, high, Cell::Missing, Cell::Missing, verdict.into()]);
            cells.extend([8_u64, 8, 0, 0].map(Cell::from));
            table.push(cells);
        };
        row("cpuid", "cycles", [2_000.0, 1_900.0, 0.9, 1.01], "noise could explain it");
        row("vmread", "cycles", [2_048.0, 32.0, 1.0 / 128.0, 1.0 / 32.0], "lower");
        row("msr", "ns", [500.0, 900.0, 1.7, 1.9], "void, disturbed");
        let figure = benches(&table, true).unwrap();
        let Drawing::Dumbbells(groups) = &figure.drawing else { panic!("{figure:?}") };
        let labels = |group: usize| -> Vec<(&str, Sure)> {
            groups[group].rows.iter().map(|row| (row.label.as_str(), row.sure)).collect()
        };
        assert_eq!(labels(0), [("vmread here", Sure::Changed), ("cpuid here", Sure::Noise)]);
        assert_eq!(labels(1), [("msr here", Sure::Void)]);
        assert_eq!((groups[0].x.unit, groups[1].x.unit), ("count", "ns"));
        assert_eq!(groups[0].rows[0].interval, Some((16.0, 64.0)));
        assert!(groups.iter().flat_map(|group| &group.rows).all(|row| row.mark == Mark::Emulated));
        assert_eq!(figure.caption, "Of 3 tests on both sides, 1 changed by more than noise.");
        assert_eq!(benches(&Table::new(&BENCH), false), None);
    }
}
