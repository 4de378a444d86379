//! Stretches along an axis in a terminal, a line each.
//!
//! ```text
//!    total
//!      run 0   519.0 ms  ·····▒▒▒▒▒●▒▒▒×···┆···  inside 348.1 ms to 635.2 ms
//!      run 1          -  ·····▒▒▒▒▒▒▒▒▒×···┆···  not known
//!                        0 ns                2 s
//!    ▒ said before   ● it was   × naive   ┆ goal, 1.5 s
//! ```

use super::line::{Lines, elided, left, right, width};
use super::paint::Role;
use base::figure::{Key, Scale, Shape, SpanGroup, SpanRow};
use base::number;

/// The longest scale, and the shortest that shows anything.
const SCALE: std::ops::RangeInclusive<usize> = 12..=56;

/// Groups drawn one below the other, and rows of one.
const MOST_GROUPS: usize = 8;
const MOST_ROWS: usize = 32;

/// One for each kind of stretch, in the order of the legend.
const GLYPHS: [char; 6] = ['█', '▒', '░', '▓', '▄', '▀'];

/// What goes on behind the end of the scale.
const NEVER_ENDS: char = '→';

/// How many columns each piece of a line gets, the same for all groups.
struct Rooms {
    label: usize,
    value: usize,
    scale: usize,
    /// Notes stand behind the scale where all fit, else below.
    notes_beside: bool,
}

/// A column of the scale: what it shows, and in whose colour.
type Place<'g> = (char, &'g str);

/// Groups below each other, those of one axis on one scale.
pub(super) fn render(groups: &[SpanGroup], out: &mut Lines) {
    let rooms = rooms(groups, out.page.width);
    let keys = SpanGroup::keys(groups);
    for group in groups.iter().take(MOST_GROUPS) {
        let scale = group.scale(groups);
        if groups.len() > 1 {
            out.wrapped("   ", "     ", &group.title, out.page.width);
        }
        for row in group.rows.iter().take(MOST_ROWS) {
            line((group, scale), row, &keys, &rooms, out);
        }
        ends((group, scale), &rooms, out);
        if let Some(more) = group.rows.len().checked_sub(MOST_ROWS).filter(|more| *more > 0) {
            out.line(&format!("     + {more} more like these, see --json"));
        }
    }
    legend(groups, &keys, out);
    if let Some(more) = groups.len().checked_sub(MOST_GROUPS).filter(|more| *more > 0) {
        out.line(&format!("   + {more} more like these, see --json"));
    }
}

fn rooms(groups: &[SpanGroup], page: usize) -> Rooms {
    let rows = || groups.iter().flat_map(|group| &group.rows);
    let widest = |of: fn(&SpanRow) -> &str| rows().map(|row| width(of(row))).max().unwrap_or(0);
    let label = widest(|row| &row.label).min(page / 3);
    let value = widest(|row| &row.value);
    let note = widest(|row| &row.note);
    let left_over = page.saturating_sub(5 + label + 2 + value + 2);
    // Notes behind scales that are half as long as they may be; below, scales have all of the line.
    let notes_beside = note > 0 && left_over >= SCALE.end() / 2 + 2 + note;
    let scale = if notes_beside { left_over - 2 - note } else { left_over };
    Rooms { label, value, scale: scale.min(*SCALE.end()), notes_beside }
}

fn line(on: (&SpanGroup, Scale), row: &SpanRow, keys: &[(&str, Key<'_>)], rooms: &Rooms, out: &mut Lines) {
    let label = left(&elided(&row.label, rooms.label), rooms.label);
    let mut text = format!("     {label}  {}", right(&row.value, rooms.value));
    if SCALE.contains(&rooms.scale) {
        text.push_str("  ");
        let drawn = drawn(on, row, keys, rooms.scale);
        for run in drawn.chunk_by(|a, b| a.1 == b.1) {
            let words: String = run.iter().map(|(glyph, _)| *glyph).collect();
            text.push_str(&out.paint.on(&words, Role::Hue(run[0].1)));
        }
    }
    if row.note.is_empty() {
        out.line(&text);
    } else if rooms.notes_beside {
        out.line(&format!("{text}  {}", out.paint.on(&row.note, Role::Quiet)));
    } else {
        out.line(&text);
        out.wrapped("       ", "       ", &row.note, out.page.width);
    }
}

/// The values at both ends of the scale, and what it measures.
fn ends((group, scale): (&SpanGroup, Scale), rooms: &Rooms, out: &mut Lines) {
    if !SCALE.contains(&rooms.scale) {
        return;
    }
    let [from, to] = [scale.from, scale.to].map(|value| number::amount(value, group.x.unit));
    let between = rooms.scale.saturating_sub(width(&from) + width(&to) + 2);
    let title = elided(&group.x.title, between);
    let before = (between - width(&title).min(between)) / 2;
    let middle = left(&format!("{}{title}", " ".repeat(before)), between);
    out.line(&format!("     {}  {from} {middle} {to}", " ".repeat(rooms.label + 2 + rooms.value)));
}

fn legend(groups: &[SpanGroup], keys: &[(&str, Key<'_>)], out: &mut Lines) {
    let kinds = keys.iter().map(|(what, key)| format!("{} {what}", glyph(keys, (what, *key))));
    let mut words: Vec<String> = kinds.collect();
    for group in groups {
        for limit in &group.limits {
            let limit = format!("┆ {}, {}", limit.label, number::amount(limit.value, group.x.unit));
            if !words.contains(&limit) {
                words.push(limit);
            }
        }
    }
    let endless =
        groups.iter().flat_map(|group| &group.rows).flat_map(|row| &row.stretches).any(|one| one.to.is_none());
    words.extend(endless.then(|| format!("{NEVER_ENDS} has no end")));
    out.entries("   ", &words);
}

fn glyph(keys: &[(&str, Key<'_>)], wanted: (&str, Key<'_>)) -> char {
    match wanted.1 {
        Key::Shape(Shape::Dot) => '●',
        Key::Shape(Shape::Bar) => '│',
        Key::Shape(Shape::Cross) => '×',
        Key::Hue(_) => {
            let place = keys.iter().filter(|(_, key)| matches!(key, Key::Hue(_))).position(|key| *key == wanted);
            GLYPHS[place.unwrap_or(0) % GLYPHS.len()]
        }
    }
}

/// A row's columns: limits on stretches, single values on top.
fn drawn<'g>(
    (group, scale): (&'g SpanGroup, Scale),
    row: &'g SpanRow,
    keys: &[(&str, Key<'_>)],
    columns: usize,
) -> Vec<Place<'g>> {
    let along = |value: f64| scale.place(value) * columns as f64;
    let column = |value: f64| (along(value) as usize).min(columns - 1);
    let mut places: Vec<Place<'g>> = vec![('·', ""); columns];
    for one in &row.stretches {
        let glyph = glyph(keys, (&one.what, Key::Hue(&one.hue)));
        let begin = (along(one.from).round() as usize).min(columns - 1);
        // What is there at all takes a column.
        let end = one.to.map_or(columns, |to| (along(to).round() as usize).clamp(begin + 1, columns));
        places[begin..end].fill((glyph, &one.hue));
        if one.to.is_none() {
            places[columns - 1].0 = NEVER_ENDS;
        }
    }
    group.limits.iter().for_each(|limit| places[column(limit.value)] = ('┆', ""));
    for sign in &row.signs {
        places[column(sign.at)] = (glyph(keys, (&sign.what, Key::Shape(sign.shape))), "");
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::figure::{Axis, Edge, Sign, Stretch};

    #[test]
    fn a_stretch_covers_what_it_lasts_and_what_is_not_known_covers_nothing() {
        let stretch = |from, to, what: &str| Stretch { from, to, what: what.into(), hue: what.into() };
        let row = |stretches, signs| SpanRow {
            label: String::new(),
            value: String::new(),
            note: String::new(),
            stretches,
            signs,
        };
        let sign = |at, shape| Sign { at, what: String::new(), shape };
        let group = SpanGroup {
            title: String::new(),
            x: Axis { title: String::new(), unit: "ns", is_logarithmic: false },
            rows: vec![
                row(vec![stretch(2.0, Some(4.0), "a"), stretch(4.0, Some(4.1), "b")], vec![sign(10.0, Shape::Dot)]),
                row(vec![stretch(5.0, None, "a")], vec![sign(5.5, Shape::Cross)]),
                row(vec![], vec![]),
            ],
            limits: vec![Edge { label: "limit".into(), value: 7.0 }],
        };
        let groups = [group];
        let keys = SpanGroup::keys(&groups);
        let shown = |row: usize| -> String {
            drawn((&groups[0], groups[0].scale(&groups)), &groups[0].rows[row], &keys, 20)
                .iter()
                .map(|(glyph, _)| *glyph)
                .collect()
        };
        assert_eq!(shown(0), "····████▒·····┆····●");
        assert_eq!(shown(1), "··········█×██┆████→");
        assert_eq!(shown(2), "··············┆·····");
    }
}
