//! Tables as people read them, each number with its exact value beside it for scripts.
//!
//! A cell's text is the text report's; `data-v` is the value that JSON has. Rows beyond those that the section wants
//! shown are there too, behind a box to tick, which needs no script.

use super::escape::Safe;
use crate::shares::{share_of, shares};
use crate::text::shown_cell;
use base::table::Shown;
use base::{Cell, ColumnType, Table, number};
use std::fmt::{Result, Write};

/// Rows on the page at most; a reader who wants more of them wants the data.
const MOST_ROWS: usize = 500;

/// A table of more columns than this wants the page's whole width.
const WIDE: usize = 7;

/// Renders a table if people are to see it.
pub fn render(section: &str, table: &Table, out: &mut String) -> Result {
    let Some(shown) = &table.shown else { return Ok(()) };
    let (columns, same) = columns(table, shown);
    let id = format!("{section}-{}", table.name);
    let wide = if columns.len() > WIDE { " wide" } else { "" };
    write!(out, "<section class=\"table{wide}\" id=\"{}\">\n<h3>{}", Safe(&id), Safe(sentence_case(&shown.title)))?;
    if !same.is_empty() {
        write!(out, " <span class=\"quiet\">{}</span>", Safe(same.join(", ")))?;
    }
    out.push_str("</h3>\n");
    if table.rows.is_empty() {
        return out.write_str("<p class=\"quiet\">none</p>\n</section>\n");
    }
    let shares = shares(table, shown);
    write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table data-table=\"{}\"><thead><tr>",
        Safe(&shown.title),
        Safe(table.name)
    )?;
    for (index, title) in &columns {
        let class = if numeric(table, *index) { " class=\"n\"" } else { "" };
        write!(
            out,
            "<th scope=\"col\"{class} data-column=\"{}\">{}</th>",
            Safe(&table.columns[*index].name),
            Safe(title)
        )?;
    }
    if shares.is_some() {
        write!(out, "<th scope=\"col\" class=\"n\">{}</th><th class=\"bar\"></th>", Safe(share_of(table, shown)))?;
    }
    out.push_str("</tr></thead><tbody>\n");
    let largest = shares.iter().flatten().copied().fold(0.0, f64::max);
    for (place, row_at) in table.shown_order().into_iter().take(MOST_ROWS).enumerate() {
        let row = &table.rows[row_at];
        out.push_str(if place < shown.most_rows { "<tr" } else { "<tr class=\"more\"" });
        if row_at != place {
            // Where people see another order than programs: the row's place in theirs.
            write!(out, " data-row=\"{row_at}\"")?;
        }
        out.push('>');
        for (index, _) in &columns {
            cell(table, *index, &row[*index], out)?;
        }
        if let Some(share) = shares.as_ref().map(|shares| shares[row_at]) {
            let width = if largest > 0.0 { 100.0 * share / largest } else { 0.0 };
            write!(
                out,
                "<td class=\"n\">{}</td><td class=\"bar\"><svg aria-hidden=\"true\"><rect width=\"{width:.2}%\" height=\"100%\"/></svg></td>",
                number::percent(share)
            )?;
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    rest(table.rows.len(), shown.most_rows, out)?;
    out.write_str("</section>\n")
}

fn rest(rows: usize, most: usize, out: &mut String) -> Result {
    let there = rows.min(MOST_ROWS);
    if there > most {
        writeln!(
            out,
            "<label class=\"all\"><input type=\"checkbox\"> show all {} rows</label>",
            number::thousands(there as u64)
        )?;
    }
    if rows > there {
        writeln!(out, "<p class=\"quiet\">+ {}, see --json or --csv</p>", number::many((rows - there) as u64, "row"))?;
    }
    Ok(())
}

fn cell(table: &Table, index: usize, cell: &Cell, out: &mut String) -> Result {
    let column = &table.columns[index];
    let text = shown_cell(cell, column);
    let exact = match cell {
        Cell::U64(value) => value.to_string(),
        Cell::I64(value) => value.to_string(),
        Cell::F64(value) if value.is_finite() => value.to_string(),
        _ => return write!(out, "<td{}>{}</td>", if numeric(table, index) { " class=\"n\"" } else { "" }, Safe(text)),
    };
    write!(out, "<td class=\"n\" data-v=\"{exact}\">{}</td>", Safe(text))
}

fn numeric(table: &Table, index: usize) -> bool {
    table.columns[index].kind != ColumnType::Text
}

/// The columns to show, and the keys that are the same in all rows, as `vm web`: these move into the heading, all but one.
fn columns<'a>(table: &Table, shown: &'a Shown) -> (Vec<(usize, &'a str)>, Vec<String>) {
    let wanted = shown.columns.iter().filter_map(|(name, title)| Some((table.column(name)?, title.as_str())));
    let mut columns: Vec<(usize, &str)> = wanted.collect();
    let mut keys = columns.iter().filter(|(index, _)| table.columns[*index].key).count();
    let mut same = Vec::new();
    if table.rows.len() > 1 {
        columns.retain(|(index, title)| {
            let column = &table.columns[*index];
            let all = |row: &Vec<Cell>| row[*index] == table.rows[0][*index];
            let moves = column.key && keys > 1 && table.rows.iter().all(all);
            if moves {
                keys -= 1;
                same.push(format!("{title} {}", shown_cell(&table.rows[0][*index], column)));
            }
            !moves
        });
    }
    (columns, same)
}

/// A heading as a sentence begins.
fn sentence_case(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
