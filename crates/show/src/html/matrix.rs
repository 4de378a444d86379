//! Things by machines: a table with a sign in each cell, which is a shape and a word, never a colour alone.

use super::escape::Safe;
use base::figure::{Matrix, Standing};
use std::fmt::{Result, Write};

/// Rows drawn open; the others wait behind a line that says how many they are.
const OPEN: usize = 20;

/// Draws it.
pub fn render(matrix: &Matrix, out: &mut String) -> Result {
    for (index, rows) in
        [(0, &matrix.rows[..matrix.rows.len().min(OPEN)]), (1, &matrix.rows[matrix.rows.len().min(OPEN)..])]
    {
        if rows.is_empty() {
            continue;
        }
        if index == 1 {
            writeln!(out, "<details><summary>{} more</summary>", rows.len())?;
        }
        out.push_str("<table class=\"matrix\"><thead><tr><th scope=\"col\">feature</th>");
        for column in &matrix.columns {
            write!(out, "<th scope=\"col\" class=\"c\">{}</th>", Safe(column))?;
        }
        out.push_str("<th scope=\"col\">what it is</th></tr></thead><tbody>\n");
        for row in rows {
            write!(out, "<tr><th scope=\"row\">{}</th>", Safe(&row.label))?;
            for cell in &row.cells {
                match cell {
                    Some(standing) => sign(*standing, out)?,
                    None => out.push_str("<td class=\"c\"></td>"),
                }
            }
            out.push_str("<td>");
            for id in &row.findings {
                let rule = id.split('@').next().unwrap_or(id);
                write!(out, "<a class=\"rule\" href=\"#{}\">{}</a> ", Safe(id), Safe(rule))?;
            }
            writeln!(out, "{}</td></tr>", Safe(&row.about))?;
        }
        out.push_str("</tbody></table>\n");
        if index == 1 {
            out.push_str("</details>\n");
        }
    }
    Ok(())
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
