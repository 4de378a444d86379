//! Curves and cells drawn with characters, small enough for a ticket.
//!
//! ```text
//!      loss in the worst window
//!   100.0 us ┤                      ●●●●
//!    10.0 us ┤┄┄┄┄┄┄┄┄┄●●●●●●●●●●●●●┄┄┄┄ budget
//!     1.0 us ┤●●●●●●●●●
//!            └──────────────────────────
//!             10.0 us            1.0 s    window
//!   ● vCPU 0   ○ vCPU 1
//! ```

use super::line::{Lines, elided, left, right, width};
use base::figure::{Axis, Curve, Curves, Form, Heat, Limit, Mark, On, Scale};
use base::number;
use std::iter::repeat_n;

/// Rows of a drawing: as many as decades and round numbers need.
const ROWS: usize = 11;

/// The widest drawing, and the narrowest that shows anything.
const COLUMNS: std::ops::RangeInclusive<usize> = 16..=64;

/// One for each curve; points that were published or modelled have their own.
const GLYPHS: [char; 6] = ['●', '○', '▲', '△', '■', '□'];

/// Cells from nothing to the most there is, and where nothing is known.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];
const NOT_KNOWN: char = '/';

/// Between a curve and what it would be.
const MISSING: char = '░';

/// Draws `curves`.
pub(super) fn render(curves: &Curves, out: &mut Lines) {
    let (x, y) = curves.scales();
    let marks: Vec<(usize, String)> =
        y.marks().into_iter().map(|mark| (row(y, mark), words(&curves.y, mark))).collect();
    let room = marks.iter().map(|(_, words)| width(words)).max().unwrap_or(0);
    let columns = out.page.width.saturating_sub(3 + room + 2).min(*COLUMNS.end());
    if columns < *COLUMNS.start() {
        return out.wrapped(
            "   ",
            "   ",
            "the page is too narrow for this figure, see --json or --html",
            out.page.width,
        );
    }
    out.line(&format!("   {}{}", " ".repeat(room + 2), elided(&curves.y.title, columns)));
    for (place, line) in drawn(curves, x, y, columns).into_iter().enumerate() {
        let mark = marks.iter().find(|(row, _)| *row == place).map_or("", |(_, words)| words);
        out.line(format!("   {} ┤{line}", right(mark, room)).trim_end());
    }
    out.line(&format!("   {} └{}", " ".repeat(room), "─".repeat(columns)));
    ends(&curves.x, x, (room, columns), out);
    legend(curves, out);
}

/// The values at both ends of the axis along the page, and what it measures.
fn ends(axis: &Axis, scale: Scale, (room, columns): (usize, usize), out: &mut Lines) {
    let (from, to) = (words(axis, scale.from), words(axis, scale.to));
    let between = columns.saturating_sub(width(&from) + width(&to) + 2);
    let title = elided(&axis.title, between);
    let before = (between - width(&title).min(between)) / 2;
    let middle = left(&format!("{}{title}", " ".repeat(before)), between);
    out.line(&format!("   {}  {from} {middle} {to}", " ".repeat(room)));
}

/// Which glyph is which curve and limit.
fn legend(curves: &Curves, out: &mut Lines) {
    let shown = curves.curves.iter().enumerate().map(|(place, curve)| {
        let mark = if let Form::Points(mark) = curve.form { format!(" ({})", mark.name()) } else { String::new() };
        Some(format!("{} {}{mark}", glyph(place, curve)?, curve.label))
    });
    let limits = curves.limits.iter().map(|limit| {
        let (sign, axis) = if limit.on == On::X { ('┆', &curves.x) } else { ('┄', &curves.y) };
        Some(format!("{sign} {}, {}", limit.label, words(axis, limit.value)))
    });
    let is_below = |curve: &Curve| matches!(curve.form, Form::StepsBelow(_));
    let missing = curves.curves.iter().any(is_below).then(|| Some(format!("{MISSING} missing")));
    let words: Vec<String> = shown.chain(limits).chain(missing).flatten().collect();
    out.wrapped("   ", "   ", &words.join("   "), out.page.width);
    if let Some(more) = curves.curves.len().checked_sub(GLYPHS.len()).filter(|more| *more > 0) {
        out.line(&format!("   + {more} more like these, see --json"));
    }
}

fn words(axis: &Axis, value: f64) -> String {
    number::amount(value, axis.unit)
}

fn glyph(place: usize, curve: &Curve) -> Option<char> {
    let own = *GLYPHS.get(place)?;
    Some(match curve.form {
        Form::Points(Mark::Published) => '◆',
        Form::Points(Mark::Modelled) => '◇',
        _ => own,
    })
}

fn row(scale: Scale, value: f64) -> usize {
    ((1.0 - scale.place(value)) * (ROWS - 1) as f64).round() as usize
}

/// The lines of the drawing: limits below curves, the first curve on top, and single points above all.
fn drawn(curves: &Curves, x: Scale, y: Scale, columns: usize) -> Vec<String> {
    let mut cells = vec![vec![' '; columns]; ROWS];
    let column = |value: f64| (x.place(value) * (columns - 1) as f64).round() as usize;
    for Limit { on, value, until, .. } in &curves.limits {
        match on {
            On::Y => cells[row(y, *value)][..until.map_or(columns, |end| column(end) + 1)].fill('┄'),
            On::X => {
                let top = until.map_or(0, |end| row(y, end));
                cells[top..].iter_mut().for_each(|line| line[column(*value)] = '┆');
            }
        }
    }
    let is_points = |curve: &Curve| matches!(curve.form, Form::Points(_));
    let mut order: Vec<(usize, &Curve)> = curves.curves.iter().enumerate().rev().collect();
    order.sort_by_key(|(_, curve)| is_points(curve));
    for (place, curve) in order {
        let Some(glyph) = glyph(place, curve) else { continue };
        if is_points(curve) {
            curve.points.iter().for_each(|(at, value)| cells[row(y, *value)][column(*at)] = glyph);
            continue;
        }
        let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else { continue };
        // Between two columns lie values that neither shows: the highest of them is drawn.
        let value = |here: usize| {
            let inside = curve.points.iter().filter(|point| column(point.0) == here).map(|point| point.1);
            inside.reduce(f64::max).or_else(|| between(curve, x, y, here as f64 / (columns - 1) as f64))
        };
        let values = (column(first.0)..=column(last.0)).filter_map(|here| Some((here, value(here)?)));
        for (here, value) in values {
            if let Form::StepsBelow(whole) = curve.form {
                (row(y, whole) + 1..row(y, value)).for_each(|line| cells[line][here] = MISSING);
            }
            cells[row(y, value)][here] = glyph;
        }
    }
    cells.into_iter().map(|line| line.into_iter().collect()).collect()
}

/// The value of a curve at a place where it has no point.
fn between(curve: &Curve, x: Scale, y: Scale, at: f64) -> Option<f64> {
    let next = curve.points.partition_point(|point| x.place(point.0) <= at);
    let (before, behind) = (curve.points.get(next.checked_sub(1)?)?, curve.points.get(next)?);
    if matches!(curve.form, Form::Steps | Form::StepsBelow(_)) {
        return Some(before.1);
    }
    let along = (at - x.place(before.0)) / (x.place(behind.0) - x.place(before.0)).max(f64::MIN_POSITIVE);
    Some(y.at(y.place(before.1) + along * (y.place(behind.1) - y.place(before.1))))
}

/// Draws cells: a line for each row, and each cell as wide as the page has room for.
pub(super) fn heat(heat: &Heat, out: &mut Lines) {
    let room = heat.rows.iter().map(|row| width(&row.label)).max().unwrap_or(0).min(out.page.width / 3);
    let columns = out.page.width.saturating_sub(3 + room + 2).min(*COLUMNS.end());
    for row in &heat.rows {
        let cells = condensed(&row.cells, columns);
        let wide = columns / cells.len();
        let cells: String = cells.into_iter().flat_map(|cell| repeat_n(shade(cell, heat.most), wide)).collect();
        out.line(&format!("   {}  {cells}", left(&elided(&row.label, room), room)));
    }
    let most = heat.rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let shown = if most == 0 { 0 } else { most.min(columns) * (columns / most.min(columns)) };
    let [from, to] = [heat.ends.0, heat.ends.1].map(|value| number::amount(value, heat.x.unit));
    let gap = shown.saturating_sub(width(&from) + width(&to));
    out.line(&format!("   {}  {from}{}{to}", " ".repeat(room), " ".repeat(gap.max(1))));
    let most = number::amount(heat.most, heat.unit);
    let text = format!("{}: {} nothing to {} {most} and more; {NOT_KNOWN} not known", heat.what, SHADES[0], SHADES[4]);
    out.wrapped("   ", "   ", &text, out.page.width);
}

/// As many cells as there is room for: of those that share one the most, and nothing known only if of none anything is.
fn condensed(cells: &[Option<f64>], columns: usize) -> Vec<Option<f64>> {
    let columns = columns.clamp(1, cells.len().max(1));
    let share = |column: usize| &cells[column * cells.len() / columns..(column + 1) * cells.len() / columns];
    (0..columns).map(|column| share(column).iter().flatten().copied().reduce(f64::max)).collect()
}

/// Nothing is a dot; whatever there is, however little, is a shade.
fn shade(cell: Option<f64>, most: f64) -> char {
    let Some(value) = cell else { return NOT_KNOWN };
    if value <= 0.0 {
        return SHADES[0];
    }
    let steps = SHADES.len() - 1;
    SHADES[((value / most.max(f64::MIN_POSITIVE) * steps as f64).ceil() as usize).clamp(1, steps)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_at_all_shows_and_what_is_not_known_is_no_nothing() {
        let shown = |cells: &[Option<f64>]| -> String { cells.iter().map(|cell| shade(*cell, 20.0)).collect() };
        assert_eq!(shown(&[Some(0.0), Some(0.1), Some(10.0), Some(20.0), Some(900.0), None]), "·░▒██/");
        let cells = [Some(0.0), Some(9.0), None, None, None, Some(1.0)];
        assert_eq!(condensed(&cells, 3), [Some(9.0), None, Some(1.0)]);
        assert_eq!(condensed(&cells, 99), cells);
        assert_eq!(condensed(&[], 9), [None]);
    }

    #[test]
    fn a_curve_stands_between_its_points_and_a_step_holds_until_the_next() {
        let axis = |is_logarithmic| Axis { title: String::new(), unit: "ns", is_logarithmic };
        let points = vec![(0.0, 0.0), (10.0, 10.0)];
        let curve = |form| Curve { label: String::new(), form, points: points.clone() };
        let scale = axis(false).scale([10.0].into_iter());
        assert_eq!(between(&curve(Form::Line), scale, scale, 0.3), Some(3.0));
        assert_eq!(between(&curve(Form::Steps), scale, scale, 0.3), Some(0.0));
        assert_eq!(between(&curve(Form::Line), scale, scale, 1.1), None);
    }
}
