//! Tables that fit the page.
//!
//! Numbers are never shortened. What is too wide gives way in this order: bars get shorter, headings take several
//! lines, prose in a short table takes several lines and other text loses its middle, columns from the right are left
//! out, with a line that names them, and at last names of rows lose their middle. Columns that the table wants whole take
//! several lines instead and stay. A key that is the same in all rows moves into the heading.

use super::line::{Lines, bar, capitals, elided, heading, left, right, width, wrap};
use super::paint::Role;
use crate::view::{Headed, View};
use base::number::{self, SHARE_COLUMNS};
use base::plain::plain;
use base::{Cell, Column, ColumnType, Shown, Table};

/// Blanks before the first column.
const INDENT: usize = 3;

const GAP: usize = 2;

/// Text columns are not elided below this.
const NARROWEST_TEXT: usize = 8;

/// Names of rows up to this width stay whole while other columns can give way: cut names look alike.
const WHOLE_NAME: usize = 26;

/// Columns are not left out below so many while names can still be cut.
const FEWEST_COLUMNS: usize = 4;

/// Prose is not broken into lines narrower than this.
const NARROWEST_PROSE: usize = 14;

/// A table of no more rows can afford several lines for each.
const SHORT_TABLE: usize = 12;

/// The longest and the shortest bar; a shorter one is left out.
const BARS: std::ops::RangeInclusive<usize> = 6..=24;

/// Lines a heading may take.
const HEADING_LINES: usize = 3;

/// A column, ready to be aligned.
struct Shaped {
    heading: String,
    cells: Vec<String>,
    numeric: bool,
    /// Sentences, which may take several lines.
    prose: bool,
    /// Part of what names a row.
    key: bool,
    /// Never left out, and never shortened.
    whole: bool,
    room: usize,
}

impl Shaped {
    /// Below this the column is not made narrower; names of rows are spared while `sparing`.
    fn narrowest(&self, sparing: bool) -> usize {
        let widest = self.cells.iter().map(|cell| width(cell)).max().unwrap_or(0);
        let least = match (self.prose, self.key && sparing) {
            _ if self.whole && sparing && !self.key => widest,
            _ if self.whole => self.longest_word().max(if sparing { WHOLE_NAME } else { 0 }),
            (true, _) => NARROWEST_PROSE.max(self.longest_word()),
            (false, true) => WHOLE_NAME,
            (false, false) => NARROWEST_TEXT,
        };
        least.min(widest).max(narrowest_heading(&self.heading))
    }

    fn longest_word(&self) -> usize {
        self.cells.iter().flat_map(|cell| cell.split(' ')).map(width).max().unwrap_or(0)
    }

    fn lines(&self, row: usize) -> Vec<String> {
        match (self.numeric, self.prose || self.whole) {
            (true, _) => vec![self.cells[row].clone()],
            (false, true) => wrap(&self.cells[row], self.room, self.room),
            (false, false) => vec![elided(&self.cells[row], self.room)],
        }
    }
}

/// Renders a table if people are to see it: its groups one after the other, each as a table.
pub(super) fn render(table: &Table, out: &mut Lines) {
    let Some(shown) = table.shown.as_ref().filter(|shown| shown.in_terminals) else { return };
    let groups = table.groups();
    if groups.is_empty() {
        return render_group(shown, &View::of(table, shown, &[]), out);
    }
    groups.iter().for_each(|rows| render_group(shown, &View::of(table, shown, rows), out));
}

fn render_group(shown: &Shown, view: &View<'_>, out: &mut Lines) {
    out.gap();
    heading(&capitals(shown.title), &view.same.join("   "), out);
    if view.lines.is_empty() {
        out.line("   none");
        return;
    }
    let page = out.page.width;
    let printed = view.lines.len().min(shown.most_rows);
    let mut columns = shaped(view, shown, printed);
    let share_room = view.share_of.as_ref().map_or(0, |of| SHARE_COLUMNS.max(width(of)));
    let beside = if view.share_of.is_some() { GAP + share_room } else { 0 };
    let left_out = fit(&mut columns, page.saturating_sub(INDENT + beside));
    let used = INDENT + total(&columns) + beside;
    let bar_room = page.saturating_sub(used + GAP).min(*BARS.end());

    let mut headings = heading_lines(&columns);
    if let (Some(last), Some(of)) = (headings.last_mut(), &view.share_of) {
        last.push_str(&right(of, GAP + share_room));
    }
    for line in headings {
        out.line(&out.paint.on(&line, Role::Quiet));
    }
    let largest = view.lines.iter().map(|line| line.share).fold(0.0, f64::max);
    for (place, row) in view.lines[..printed].iter().enumerate() {
        let cells: Vec<Vec<String>> = columns.iter().map(|column| column.lines(place)).collect();
        let mut line = joined(&columns, &cells, 0);
        if view.share_of.is_some() {
            line.push_str(&right(&number::percent(row.share), GAP + share_room));
            if BARS.contains(&bar_room) && largest > 0.0 {
                line.push_str(&format!("{}{}", " ".repeat(GAP), bar(row.share / largest, bar_room)));
            }
        }
        out.line(&line);
        for further in 1..cells.iter().map(Vec::len).max().unwrap_or(1) {
            out.line(&joined(&columns, &cells, further));
        }
    }
    tell_what_is_missing((view.lines.len() - printed, shown.rest), &left_out, out);
}

/// One line of a row: the `at`th of each cell.
fn joined(columns: &[Shaped], cells: &[Vec<String>], at: usize) -> String {
    let cell = |(column, lines): (&Shaped, &Vec<String>)| aligned(lines.get(at).map_or("", String::as_str), column);
    let cells: Vec<String> = columns.iter().zip(cells).map(cell).collect();
    format!("{}{}", " ".repeat(INDENT), cells.join(&" ".repeat(GAP)))
}

/// The columns, with the cells of the rows that are printed.
fn shaped(view: &View<'_>, shown: &Shown, printed: usize) -> Vec<Shaped> {
    let shape = |(at, headed): (usize, &Headed<'_>)| {
        let column = headed.column;
        let cells: Vec<String> = view.lines[..printed].iter().map(|line| shown_cell(line.cells[at], column)).collect();
        let room = cells.iter().map(|cell| width(cell)).max().unwrap_or(0).max(width(&headed.heading));
        let numeric = column.kind != ColumnType::Text;
        let words = || cells.iter().flat_map(|cell| cell.split(' '));
        let breakable = cells.iter().any(|cell| cell.contains(' ')) && words().all(|word| width(word) <= WHOLE_NAME);
        let prose = !numeric && printed <= SHORT_TABLE && breakable;
        let whole = shown.whole.contains(&column.name);
        Shaped { heading: headed.heading.clone(), cells, numeric, prose, key: column.key, whole, room }
    };
    view.columns.iter().enumerate().map(shape).collect()
}

/// A cell as people read it. Numbers without a unit are names (a vCPU, a thread) and stay ungrouped.
pub(crate) fn shown_cell(cell: &Cell, column: &Column) -> String {
    match (cell, column.unit) {
        (Cell::Missing, _) => "-".to_owned(),
        (Cell::Text(text), _) => plain(text).into_owned(),
        (Cell::Bytes(bytes), _) => number::exact_bytes(bytes.len() as u64),
        (Cell::Bool(yes), _) => if *yes { "yes" } else { "no" }.to_owned(),
        (Cell::U64(value), "") => value.to_string(),
        (Cell::I64(value), "") => value.to_string(),
        (Cell::U64(value), "count") => number::thousands(*value),
        (Cell::U64(value), unit) => number::amount(*value as f64, unit),
        (Cell::I64(value), unit) => number::amount(*value as f64, unit),
        // Their heading names them, and beyond a hundred the timer does not resolve fractions.
        (Cell::F64(value), "cycles") if value.abs() >= 100.0 => number::plain(value.round()),
        (Cell::F64(value), "count") if value.abs() >= 100.0 => number::plain(value.round()),
        (Cell::F64(value), "cycles") => number::plain(*value),
        (Cell::F64(value), unit) => number::amount(*value, unit),
    }
}

/// Makes the columns fit into `room`; returns the headings of those that had to go.
fn fit(columns: &mut Vec<Shaped>, room: usize) -> Vec<String> {
    if total(columns) > room {
        for column in columns.iter_mut() {
            let cells = column.cells.iter().map(|cell| width(cell)).max().unwrap_or(0);
            column.room = cells.max(narrowest_heading(&column.heading));
        }
    }
    narrow(columns, room, true);
    let mut left_out = Vec::new();
    // A name and what it has are left in any case, the name cut if need be.
    while total(columns) > room && columns.len() > FEWEST_COLUMNS {
        let Some(heading) = leave_out(columns) else { break };
        left_out.push(heading);
    }
    narrow(columns, room, false);
    while total(columns) > room && columns.len() > 1 {
        let Some(heading) = leave_out(columns) else { break };
        left_out.push(heading);
    }
    left_out.reverse();
    left_out
}

/// Takes away the last column that may go, and gives its heading. The first one names the rows.
fn leave_out(columns: &mut Vec<Shaped>) -> Option<String> {
    let last = columns.iter().rposition(|column| !column.whole).filter(|place| *place > 0)?;
    Some(columns.remove(last).heading)
}

/// Takes columns of text the widest first, until all fit or none can give more.
fn narrow(columns: &mut [Shaped], room: usize, sparing: bool) {
    while total(columns) > room {
        let gives = |column: &&mut Shaped| !column.numeric && column.room > column.narrowest(sparing);
        match columns.iter_mut().filter(gives).max_by_key(|column| column.room) {
            Some(column) => column.room -= 1,
            None => break,
        }
    }
}

fn total(columns: &[Shaped]) -> usize {
    columns.iter().map(|column| column.room).sum::<usize>() + GAP * columns.len().saturating_sub(1)
}

/// The least width at which a heading takes no more than [`HEADING_LINES`].
fn narrowest_heading(heading: &str) -> usize {
    let longest_word = heading.split(' ').map(width).max().unwrap_or(0);
    (longest_word..=width(heading))
        .find(|room| wrap(heading, *room, *room).len() <= HEADING_LINES)
        .unwrap_or(longest_word)
}

/// The headings, standing on the rows below them.
fn heading_lines(columns: &[Shaped]) -> Vec<String> {
    let wrapped: Vec<Vec<String>> = columns.iter().map(|c| wrap(&c.heading, c.room, c.room)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    let mut lines = Vec::with_capacity(height);
    for line in 0..height {
        let words = columns.iter().zip(&wrapped).map(|(column, wrapped)| {
            let word = (line + wrapped.len()).checked_sub(height).map_or("", |line| wrapped[line].as_str());
            aligned(word, column)
        });
        let words: Vec<String> = words.collect();
        lines.push(format!("{}{}", " ".repeat(INDENT), words.join(&" ".repeat(GAP))));
    }
    lines
}

fn aligned(text: &str, column: &Shaped) -> String {
    if column.numeric { right(text, column.room) } else { left(text, column.room) }
}

fn tell_what_is_missing((rows, rest): (usize, Option<&str>), columns: &[String], out: &mut Lines) {
    let rows = match (rows, rest) {
        (0, _) => None,
        (more, None) => Some(number::many(more as u64, "more row")),
        (more, Some(rest)) => Some(format!("{}: {rest}", number::many(more as u64, "more row"))),
    };
    let columns = match columns {
        [] => None,
        [one] => Some(format!("column {one}")),
        many => Some(format!("columns {}", many.join(", "))),
    };
    let missing: Vec<String> = [rows, columns].into_iter().flatten().collect();
    if !missing.is_empty() {
        out.wrapped("   ", "     ", &format!("+ {}, see --json or --csv", missing.join(", ")), out.page.width);
    }
}
