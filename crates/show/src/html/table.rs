//! Tables as people read them, each number with its exact value beside it for scripts.
//!
//! A cell's text is the text report's; `data-v` is the value that JSON has. Rows beyond those that the section wants
//! shown are there too, behind a box to tick, which needs no script.

use super::escape::Safe;
use crate::text::shown_cell;
use crate::view::View;
use base::{Cell, Column, ColumnType, Table, number};
use std::fmt::{Result, Write};

/// Rows on the page at most; a reader who wants more of them wants the data.
const MOST_ROWS: usize = 500;

/// A table of more columns than this wants the page's whole width.
const WIDE: usize = 7;

/// Renders a table if people are to see it.
pub(super) fn render(section: &str, table: &Table, out: &mut String) -> Result {
    let Some(shown) = &table.shown else { return Ok(()) };
    let View { same, columns, lines, share_of } = View::of(table, shown, &table.shown_order());
    let id = format!("{section}-{}", table.spec.name);
    let wide = if columns.len() > WIDE { " wide" } else { "" };
    write!(out, "<section class=\"table{wide}\" id=\"{}\">\n<h3>{}", Safe(&id), Safe(sentence_case(shown.title)))?;
    if !same.is_empty() {
        write!(out, " <span class=\"quiet\">{}</span>", Safe(same.join(", ")))?;
    }
    out.push_str("</h3>\n");
    if lines.is_empty() {
        return out.write_str("<p class=\"quiet\">none</p>\n</section>\n");
    }
    write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table data-table=\"{}.{}\"><thead><tr>",
        Safe(shown.title),
        Safe(table.spec.section),
        Safe(table.spec.name)
    )?;
    for headed in &columns {
        let class = if numeric(headed.column) { " class=\"n\"" } else { "" };
        write!(
            out,
            "<th scope=\"col\"{class} data-column=\"{}\">{}</th>",
            Safe(headed.column.name),
            Safe(&headed.heading)
        )?;
    }
    if let Some(of) = &share_of {
        write!(out, "<th scope=\"col\" class=\"n\">{}</th><th class=\"bar\"></th>", Safe(of))?;
    }
    out.push_str("</tr></thead><tbody>\n");
    let largest = lines.iter().map(|line| line.share).fold(0.0, f64::max);
    for (place, line) in lines.iter().take(MOST_ROWS).enumerate() {
        out.push_str(if place < shown.most_rows { "<tr" } else { "<tr class=\"more\"" });
        if line.at != place {
            // Where people see another order than programs: the row's place in theirs.
            write!(out, " data-row=\"{}\"", line.at)?;
        }
        out.push('>');
        for (headed, shown) in columns.iter().zip(&line.cells) {
            cell(headed.column, shown, out)?;
        }
        if share_of.is_some() {
            let width = if largest > 0.0 { 100.0 * line.share / largest } else { 0.0 };
            write!(
                out,
                "<td class=\"n\">{}</td><td class=\"bar\"><svg aria-hidden=\"true\"><rect width=\"{width:.2}%\" height=\"100%\"/></svg></td>",
                number::percent(line.share)
            )?;
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    rest(lines.len(), shown.most_rows, out)?;
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

fn cell(column: &Column, cell: &Cell, out: &mut String) -> Result {
    let text = shown_cell(cell, column);
    let exact = match cell {
        Cell::U64(value) => value.to_string(),
        Cell::I64(value) => value.to_string(),
        Cell::F64(value) if value.is_finite() => value.to_string(),
        _ => return write!(out, "<td{}>{}</td>", if numeric(column) { " class=\"n\"" } else { "" }, Safe(text)),
    };
    write!(out, "<td class=\"n\" data-v=\"{exact}\">{}</td>", Safe(text))
}

fn numeric(column: &Column) -> bool {
    column.kind != ColumnType::Text
}

/// A heading as a sentence begins.
fn sentence_case(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
