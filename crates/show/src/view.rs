//! A table as people see it: which columns and rows, in which order, what stands in the heading, and each row's share. Text
//! and page lay out the same.

use crate::text::shown_cell;
use base::table::{Across, Shown};
use base::{Cell, Column, Table};

/// Some rows of a table, ready to be laid out.
pub(crate) struct View<'t> {
    /// Keys that are the same in all rows, as `vm web`: they stand in the heading.
    pub same: Vec<String>,
    pub columns: Vec<Headed<'t>>,
    /// All rows in their order, also those beyond [`Shown::most_rows`].
    pub lines: Vec<Line<'t>>,
    /// Of what [`Line::share`] is a share, if rows have bars.
    pub(crate) share_of: Option<String>,
}

pub(crate) struct Headed<'t> {
    pub heading: String,
    pub column: &'t Column,
}

pub(crate) struct Line<'t> {
    /// Its place in the table.
    pub at: usize,
    pub cells: Vec<&'t Cell>,
    /// Its share of the bar column's total over all rows; a column of shares has them already.
    pub share: f64,
}

static MISSING: Cell = Cell::Missing;

impl<'t> View<'t> {
    /// These rows of a table, in this order.
    pub(crate) fn of(table: &'t Table, shown: &Shown, rows: &[usize]) -> Self {
        let mut view = match shown.across {
            None => Self::listed(table, shown, rows),
            Some(across) => Self::spread(table, shown, across, rows),
        };
        view.leave_out_empty();
        view.move_same_keys();
        view.weigh(table, shown);
        view
    }

    fn listed(table: &'t Table, shown: &Shown, rows: &[usize]) -> Self {
        let wanted: Vec<(usize, &str)> = wanted(table, shown);
        let headed = |(index, heading): &(usize, &str)| Headed {
            heading: (*heading).to_owned(),
            column: &table.spec.columns[*index],
        };
        let line = |at: usize| Line {
            at,
            cells: wanted.iter().map(|(index, _)| &table.rows[at][*index]).collect(),
            share: 0.0,
        };
        let columns = wanted.iter().map(headed).collect();
        Self { same: Vec::new(), columns, lines: rows.iter().copied().map(line).collect(), share_of: None }
    }

    /// Rows that differ in one column alone are one line, which has a cell for each value of that column.
    fn spread(table: &'t Table, shown: &Shown, across: Across, rows: &[usize]) -> Self {
        let mut view = Self::listed(table, shown, &[]);
        let (Some(by), Some(cell)) = (table.column(across.by), table.column(across.cell)) else { return view };
        let mut values: Vec<&Cell> = Vec::new();
        let mut lines: Vec<(Line<'t>, Vec<(&Cell, &'t Cell)>)> = Vec::new();
        for line in Self::listed(table, shown, rows).lines {
            let row = &table.rows[line.at];
            if row[by] == Cell::Missing {
                continue;
            }
            if !values.contains(&&row[by]) {
                values.push(&row[by]);
            }
            match lines.iter_mut().find(|(known, _)| known.cells == line.cells) {
                Some((_, cells)) => cells.push((&row[by], &row[cell])),
                None => lines.push((line, vec![(&row[by], &row[cell])])),
            }
        }
        let place = view.columns.len().min(across.after);
        let heading = |value: &&Cell| Headed {
            heading: shown_cell(value, &table.spec.columns[by]),
            column: &table.spec.columns[cell],
        };
        view.columns.splice(place..place, values.iter().map(heading));
        view.lines = lines
            .into_iter()
            .map(|(mut line, cells)| {
                let of = |value: &&Cell| cells.iter().find(|(by, _)| by == value).map_or(&MISSING, |(_, cell)| *cell);
                line.cells.splice(place..place, values.iter().map(of));
                line
            })
            .collect();
        view
    }

    /// A column without a value in any row says nothing.
    fn leave_out_empty(&mut self) {
        let empty = |at: usize| self.lines.iter().all(|line| *line.cells[at] == Cell::Missing);
        let kept = |at: usize| self.lines.is_empty() || self.columns[at].column.key || !empty(at);
        let kept: Vec<bool> = (0..self.columns.len()).map(kept).collect();
        self.keep(&kept);
    }

    /// Keys that are the same in all rows move into the heading, all but one.
    fn move_same_keys(&mut self) {
        let [first, _, ..] = self.lines.as_slice() else { return };
        let mut keys_left = self.columns.iter().filter(|headed| headed.column.key).count();
        let mut kept = Vec::new();
        for (at, Headed { heading, column }) in self.columns.iter().enumerate() {
            let same = self.lines.iter().all(|line| line.cells[at] == first.cells[at]);
            let moves = column.key && keys_left > 1 && same;
            if moves {
                keys_left -= 1;
                self.same.push(format!("{heading} {}", shown_cell(first.cells[at], column)).trim().to_owned());
            }
            kept.push(!moves);
        }
        self.keep(&kept);
    }

    fn keep(&mut self, kept: &[bool]) {
        fn keep<T>(all: &mut Vec<T>, kept: &[bool]) {
            let mut kept = kept.iter();
            all.retain(|_| kept.next() == Some(&true));
        }
        keep(&mut self.columns, kept);
        self.lines.iter_mut().for_each(|line| keep(&mut line.cells, kept));
    }

    fn weigh(&mut self, table: &Table, shown: &Shown) {
        let Some(index) = shown.bar.and_then(|name| table.column(name)) else { return };
        let column = &table.spec.columns[index];
        let value = |line: &Line<'_>| table.rows[line.at][index].size().max(0.0);
        let sum: f64 = self.lines.iter().map(value).sum();
        if sum <= 0.0 {
            return;
        }
        let whole = if column.unit == "share" { 1.0 } else { sum };
        self.lines.iter_mut().for_each(|line| line.share = value(line) / whole);
        // Column `time_share` has shares of time.
        self.share_of = Some(match (column.unit, column.name.strip_suffix("_share")) {
            ("share", Some(of)) => format!("of {}", of.replace('_', " ")),
            ("ns", _) => "of time".to_owned(),
            ("count", _) => "of count".to_owned(),
            _ => "share".to_owned(),
        });
    }
}

/// The columns that people want to see, with their headings.
fn wanted<'s>(table: &Table, shown: &'s Shown) -> Vec<(usize, &'s str)> {
    shown.columns.iter().filter_map(|(name, heading)| Some((table.column(name)?, *heading))).collect()
}
