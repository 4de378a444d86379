//! Figures drawn with characters: bars in eighths, ladders as indented steps, histograms, points on a scale.

use super::line::{Lines, bar, capitals, elided, heading, left, right, width};
use super::paint::Role;
use super::points;
use base::Figure;
use base::figure::{BarGroup, Bin, Drawing, Rung};
use base::number::{self, SHARE_COLUMNS};
use base::plain::plain;

/// The longest bar; longer ones compare no better.
const LONGEST_BAR: usize = 40;

/// Below this a bar shows nothing that its number does not.
const SHORTEST_BAR: usize = 6;

/// Groups drawn one below the other; a VM of 64 vCPUs would fill pages with bars that look the same.
const MOST_GROUPS: usize = 8;

/// Renders one figure under its title.
pub fn render(figure: &Figure, out: &mut Lines) {
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
        Drawing::Ladder(rungs) => ladder(rungs, out),
        Drawing::Histogram(bins) => histogram(bins, out),
        Drawing::Topology(panels) => super::topology::render(panels, out),
        Drawing::Points(groups) => points::render(groups, out),
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
    let totals: Vec<String> = groups.iter().map(|group| number::amount(group.total, group.unit)).collect();
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
        if group.total > 0.0 {
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

fn words_of(group: &BarGroup) -> Vec<Words<'_>> {
    let mut words = Vec::with_capacity(group.bars.len());
    for bar in &group.bars {
        words.push(Words {
            label: &bar.label,
            value: number::amount(bar.value, group.unit),
            share: (group.total > 0.0).then(|| bar.value / group.total),
            note: &bar.note,
            hue: &bar.hue,
        });
    }
    words
}

/// Steps in order of time, each under the lane in which it happens.
fn ladder(rungs: &[Rung], out: &mut Lines) {
    let mut lanes: Vec<&str> = Vec::new();
    for rung in rungs {
        if !lanes.contains(&rung.lane.as_str()) {
            lanes.push(&rung.lane);
        }
    }
    // Innermost first, as one falls from L2 towards L0; `VMM` sorts behind the levels.
    lanes.sort_by(|a, b| (!a.starts_with('L')).cmp(&!b.starts_with('L')).then_with(|| b.cmp(a)));
    let lane_room = lanes.iter().map(|lane| width(lane)).max().unwrap_or(0) + 2;
    let at: Vec<String> = rungs.iter().map(|rung| number::duration(rung.at_ns as f64)).collect();
    let lasts: Vec<String> = rungs.iter().map(|rung| number::duration(rung.length_ns as f64)).collect();
    let room = |texts: &[String], least: usize| texts.iter().map(|text| width(text)).max().unwrap_or(0).max(least);
    let (at_room, lasts_room) = (room(&at, 2), room(&lasts, 5));
    let names: String = lanes.iter().map(|lane| left(&plain(lane), lane_room)).collect();
    out.line(&format!("   {}  {}   {names}", right("at", at_room), right("lasts", lasts_room)));
    for ((rung, at), lasts) in rungs.iter().zip(&at).zip(&lasts) {
        let mut line = format!("   {}  {}   ", right(at, at_room), right(lasts, lasts_room));
        for lane in &lanes {
            let dot = if *lane == rung.lane { "●" } else { "" };
            line.push_str(&out.paint.on(dot, Role::Hue(lane)));
            line.push_str(&" ".repeat(lane_room - width(dot)));
        }
        let before = 3 + at_room + 2 + lasts_room + 3 + lane_room * lanes.len();
        let times = if rung.repeat > 1 { format!(" x{}", number::thousands(rung.repeat)) } else { String::new() };
        out.wrapped(&line, &" ".repeat(before), &format!("{}{times}", rung.label), out.page.width);
    }
}

/// One line per bin, the fullest with the longest bar.
fn histogram(bins: &[Bin], out: &mut Lines) {
    let ranges: Vec<(String, String)> = bins.iter().map(|b| (number::plain(b.from), number::plain(b.to))).collect();
    let counts: Vec<String> = bins.iter().map(|bin| number::thousands(bin.count)).collect();
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1);
    let from_room = ranges.iter().map(|(from, _)| width(from)).max().unwrap_or(0);
    let to_room = ranges.iter().map(|(_, to)| width(to)).max().unwrap_or(0);
    let count_room = counts.iter().map(|count| width(count)).max().unwrap_or(0);
    let bar_room = out.page.width.saturating_sub(3 + from_room + 4 + to_room + 2 + count_room + 2).min(LONGEST_BAR);
    for ((bin, (from, to)), count) in bins.iter().zip(&ranges).zip(&counts) {
        let drawn = bar(bin.count as f64 / most as f64, bar_room);
        out.line(&format!(
            "   {} to {}  {}  {drawn}",
            right(from, from_room),
            right(to, to_room),
            right(count, count_room)
        ));
    }
}
