//! Tables as people read them, each number with its exact value beside it for scripts.
//!
//! A cell's text is the text report's; `data-v` is the value that JSON has. Rows beyond those that the section wants
//! shown are there too, behind a box to tick, which needs no script.

use super::escape::Safe;
use crate::text::shown_cell;
use base::table::Shown;
use base::{Cell, ColumnType, Table, number};
use std::fmt::{Result, Write};

/// Rows on the page at most; a reader who wants more of them wants the data.
const MOST_ROWS: usize = 500;

/// Renders a table if people are to see it.
pub fn render(section: &str, table: &Table, out: &mut String) -> Result {
    let Some(shown) = &table.shown else { return Ok(()) };
    let columns: Vec<(usize, &str)> =
        shown.columns.iter().filter_map(|(name, title)| Some((table.column(name)?, title.as_str()))).collect();
    let id = format!("{section}-{}", table.name);
    writeln!(out, "<section class=\"table\" id=\"{}\">\n<h3>{}</h3>", Safe(&id), Safe(sentence_case(&shown.title)))?;
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
        out.push_str("<th scope=\"col\" class=\"n\">share</th><th class=\"bar\"></th>");
    }
    out.push_str("</tr></thead><tbody>\n");
    let largest = shares.iter().flatten().copied().fold(0.0, f64::max);
    for (place, row) in table.rows.iter().take(MOST_ROWS).enumerate() {
        out.push_str(if place < shown.most_rows { "<tr>" } else { "<tr class=\"more\">" });
        for (index, _) in &columns {
            cell(table, *index, &row[*index], out)?;
        }
        if let Some(share) = shares.as_ref().map(|shares| shares[place]) {
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
        writeln!(
            out,
            "<p class=\"quiet\">+ {} rows, see --json or --csv</p>",
            number::thousands((rows - there) as u64)
        )?;
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

/// Each row's share of the bar column's total.
fn shares(table: &Table, shown: &Shown) -> Option<Vec<f64>> {
    let index = table.column(shown.bar.as_deref()?)?;
    let value = |row: &Vec<Cell>| match row[index] {
        Cell::U64(value) => value as f64,
        Cell::I64(value) => value as f64,
        Cell::F64(value) if value.is_finite() => value,
        _ => 0.0,
    };
    let whole: f64 = table.rows.iter().map(value).sum();
    (whole > 0.0).then(|| table.rows.iter().map(|row| value(row) / whole).collect())
}

/// A heading as a sentence begins.
fn sentence_case(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
