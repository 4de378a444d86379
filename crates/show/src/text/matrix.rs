//! Things by machines in a terminal: a line for each thing, a column for each machine.

use super::line::{Lines, elided, left, width};
use super::paint::Role;
use base::figure::{Matrix, Standing};

pub(super) fn render(matrix: &Matrix, out: &mut Lines) {
    let label = matrix.rows.iter().map(|row| width(&row.label)).max().unwrap_or(0).min(out.page.width / 3);
    let rooms: Vec<usize> = matrix.columns.iter().map(|column| width(column).max(1)).collect();
    let heads: Vec<String> = matrix.columns.iter().zip(&rooms).map(|(column, room)| left(column, *room)).collect();
    out.line(format!("     {}  {}", " ".repeat(label), heads.join("  ")).trim_end());
    for row in &matrix.rows {
        let cells = row.cells.iter().zip(&rooms).map(|(cell, room)| {
            let glyph = cell.map_or(" ".to_owned(), |standing| standing.glyph().to_string());
            left(&glyph, *room)
        });
        let first =
            format!("     {}  {}", left(&elided(&row.label, label), label), cells.collect::<Vec<_>>().join("  "));
        let rules = row.rules();
        let said = if rules.is_empty() { row.about.clone() } else { format!("{rules}: {}", row.about) };
        let room = out.page.width.saturating_sub(width(&first) + 2);
        if room < 12 || said.is_empty() {
            out.line(first.trim_end());
        } else {
            out.line(&format!("{first}  {}", out.paint.on(&elided(&said, room), Role::Quiet)));
        }
    }
    let legend: Vec<String> =
        Standing::ALL.iter().map(|standing| format!("{} {}", standing.glyph(), standing.name())).collect();
    out.entries("   ", &legend);
}
