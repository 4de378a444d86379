//! Things by machines: a table with a sign in each cell, which is a shape and a word, never a colour alone.

use super::escape::Safe;
use base::figure::{Matrix, Standing};
use base::number;
use std::fmt::{Result, Write};

/// Rows drawn open; the others wait behind a line that says how many they are.
const OPEN: usize = 20;

pub(super) fn render(matrix: &Matrix, out: &mut String) -> Result {
    for (index, rows) in
        [(0, &matrix.rows[..matrix.rows.len().min(OPEN)]), (1, &matrix.rows[matrix.rows.len().min(OPEN)..])]
    {
        if rows.is_empty() {
            continue;
        }
        if index == 1 {
            writeln!(out, "<details><summary>{}</summary>", number::many(rows.len() as u64, "more feature"))?;
        }
        out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Features\">");
        out.push_str("<table class=\"matrix\"><thead><tr><th scope=\"col\">feature</th>");
        for column in &matrix.columns {
            write!(out, "<th scope=\"col\" class=\"c\">{}</th>", Safe(column))?;
        }
        out.push_str("<th scope=\"col\">what it is</th></tr></thead><tbody>\n");
        for row in rows {
            write!(out, "<tr><th scope=\"row\">{}</th>", Safe(row.label.replace('_', " ")))?;
            for cell in &row.cells {
                match cell {
                    Some(standing) => sign(*standing, out)?,
                    None => out.push_str("<td class=\"c\"></td>"),
                }
            }
            out.push_str("<td>");
            for (place, id) in row.findings.iter().enumerate() {
                // Of several findings of one rule, the first.
                if row.findings[..place].iter().all(|before| rule(before) != rule(id)) {
                    write!(out, "<a class=\"rule\" href=\"#{}\">{}</a> ", Safe(id), Safe(rule(id)))?;
                }
            }
            writeln!(out, "{}</td></tr>", Safe(&row.about))?;
        }
        out.push_str("</tbody></table></div>\n");
        if index == 1 {
            out.push_str("</details>\n");
        }
    }
    Ok(())
}

/// The rule of a finding's id.
fn rule(id: &str) -> &str {
    id.split('@').next().unwrap_or(id)
}

fn sign(standing: Standing, out: &mut String) -> Result {
    write!(
        out,
        "<td class=\"c {}\"><span aria-hidden=\"true\">{}</span> {}</td>",
        standing.name(),
        standing.glyph(),
        standing.name()
    )
}
