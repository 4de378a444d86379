//! Figures drawn with characters: bars in eighths, points on a scale, curves, ways, rates.

use super::line::{Lines, bar, capitals, elided, heading, left, right, width};
use super::paint::Role;
use super::{curves, dumbbells, flow, gauge, histogram, levels, matrix, points, spans, waterfall};
use base::Figure;
use base::figure::{BarGroup, Drawing};
use base::number::{self, SHARE_COLUMNS};

/// The longest bar; longer ones compare no better.
const LONGEST_BAR: usize = 40;

/// Below this a bar shows nothing that its number does not.
const SHORTEST_BAR: usize = 6;

/// Groups drawn one below the other; a VM of 64 vCPUs would fill pages with bars that look the same.
const MOST_GROUPS: usize = 8;

/// Renders one figure under its title.
pub(super) fn render(figure: &Figure, out: &mut Lines) {
    out.gap();
    let title = capitals(&figure.title);
    match &figure.drawing {
        Drawing::Bars(groups) if groups.len() == 1 => heading(&title, &groups[0].title, out),
        _ => heading(&title, "", out),
    }
    if !figure.caption.is_empty() {
        out.wrapped("   ", "   ", &figure.caption, out.page.width.min(super::WIDEST_PROSE));
    }
    match &figure.drawing {
        Drawing::Bars(groups) => bars(groups, out),
        Drawing::Topology(panels) => super::topology::render(panels, out),
        Drawing::Points(groups) => points::render(groups, out),
        Drawing::Histogram(drawn) => histogram::render(drawn, out),
        Drawing::Curves(drawn) => curves::render(drawn, out),
        Drawing::Heat(drawn) => curves::heat(drawn, out),
        Drawing::Flows(flows) => flow::render(flows, out),
        Drawing::Gauges(groups) => gauge::render(groups, out),
        Drawing::Spans(groups) => spans::render(groups, out),
        Drawing::Levels(levels) => levels::render(levels, out),
        Drawing::Waterfall(all) => waterfall::render(all, out),
        Drawing::Matrix(matrix) => matrix::render(matrix, out),
        Drawing::Dumbbells(groups) => dumbbells::render(groups, out),
    }
}

/// One bar's words, ready to be aligned.
struct Words<'a> {
    label: &'a str,
    value: String,
    share: Option<f64>,
    note: &'a str,
    hue: &'a str,
}

/// How many columns each piece of a bar's line gets, the same for all groups of a figure.
struct Rooms {
    label: usize,
    value: usize,
    bar: usize,
    /// The share that fills the longest bar.
    largest: f64,
    /// Notes stand behind the bars where both fit, else on a line of their own.
    notes_beside: bool,
}

/// Groups below each other, all on one scale.
fn bars(groups: &[BarGroup], out: &mut Lines) {
    let words: Vec<Vec<Words<'_>>> = groups.iter().map(words_of).collect();
    let totals: Vec<String> = groups.iter().map(|group| value(group.total, group)).collect();
    let rooms = rooms(&words, &totals, out.page.width);
    for (index, ((group, words), total)) in groups.iter().zip(&words).zip(&totals).take(MOST_GROUPS).enumerate() {
        if groups.len() > 1 {
            if index > 0 {
                out.gap();
            }
            out.wrapped("   ", "     ", &group.title, out.page.width);
        }
        for bar in words {
            bar_line(bar, &rooms, out);
        }
        if group.total > 0.0 && !group.has_shares() {
            let blanks = " ".repeat(rooms.label);
            out.line(&format!("   {blanks}  {}  {}", right(total, rooms.value), right("100 %", SHARE_COLUMNS)));
        }
    }
    if let Some(more) = groups.len().checked_sub(MOST_GROUPS).filter(|more| *more > 0) {
        out.gap();
        out.line(&format!("   + {more} more like these, see --json"));
    }
}

fn rooms(words: &[Vec<Words<'_>>], totals: &[String], page: usize) -> Rooms {
    let all = || words.iter().flatten();
    let label = all().map(|words| width(words.label)).max().unwrap_or(0).min(page / 3);
    let value = all().map(|words| &words.value).chain(totals).map(|value| width(value)).max().unwrap_or(0);
    let left = page.saturating_sub(3 + label + 2 + value + 2 + SHARE_COLUMNS + 2);
    let note = all().map(|words| width(words.note)).max().map_or(0, |note| if note > 0 { note + 2 } else { 0 });
    let notes_beside = left >= SHORTEST_BAR + note;
    Rooms {
        label,
        value,
        bar: (if notes_beside { left - note } else { left }).min(LONGEST_BAR),
        largest: all().filter_map(|words| words.share).fold(0.0, f64::max),
        notes_beside,
    }
}

fn bar_line(words: &Words<'_>, rooms: &Rooms, out: &mut Lines) {
    let label = left(&elided(words.label, rooms.label), rooms.label);
    let share = words.share.map(number::percent).unwrap_or_default();
    let drawn = match words.share {
        Some(share) if rooms.largest > 0.0 && rooms.bar >= SHORTEST_BAR => bar(share / rooms.largest, rooms.bar),
        _ => String::new(),
    };
    let mut line = format!("   {label}  {}  {}  ", right(&words.value, rooms.value), right(&share, SHARE_COLUMNS));
    line.push_str(&out.paint.on(&drawn, Role::Hue(words.hue)));
    if words.note.is_empty() {
        out.line(&line);
    } else if rooms.notes_beside {
        out.line(&format!("{line}  {}", out.paint.on(words.note, Role::Quiet)));
    } else {
        out.line(&line);
        out.wrapped("     ", "     ", words.note, out.page.width);
    }
}

/// An amount in words; that of a share stands in its own column.
fn value(amount: f64, group: &BarGroup) -> String {
    if group.has_shares() { String::new() } else { number::amount(amount, group.unit) }
}

fn words_of(group: &BarGroup) -> Vec<Words<'_>> {
    let mut words = Vec::with_capacity(group.bars.len());
    for bar in &group.bars {
        words.push(Words {
            label: &bar.label,
            value: value(bar.value, group),
            share: (group.total > 0.0).then(|| bar.value / group.total),
            note: &bar.note,
            hue: &bar.hue,
        });
    }
    words
}
