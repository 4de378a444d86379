//! The levels at a glance in a terminal: a line for each level of each VM, the recorded machine, and one bar of all time.
//!
//! ```text
//!    web, 2 vCPUs
//!      L2   4.4 % of the time     367 exits/s  300 of them handled by L1
//!      L1  10.8 %               1,480 exits/s  4.0 for each exit of L2 that it handles
//!    L0: KVM 24.8 %, VMM 12.1 %   310 exits/s go on to the VMM
//!    ██▒▒▒▒▒░░░░░░▓▓▓▓▓
//!    █ L2 guest 4.4 %   ▒ L1 guest 10.8 %   ...
//! ```

use super::line::{Lines, left, right, width};
use super::paint::Role;
use base::figure::{Column, Levels, Storey};
use base::number::{percent, rate};
use base::plain::plain;

const BAR: usize = 92;

/// One for each part of the bar, in turn: neighbours differ without colours as well.
const GLYPHS: [char; 4] = ['█', '▒', '▓', '░'];

pub(super) fn render(levels: &Levels, out: &mut Lines) {
    for column in &levels.columns {
        machine(column, &levels.ground.level, out);
    }
    let ground = &levels.ground;
    let to_vmm =
        ground.to_vmm_per_s.map_or(String::new(), |per_s| format!("; {} per second go on to the VMM", exits(per_s)));
    let line = format!(
        "{}: KVM {}, VMM {}{to_vmm}",
        ground.level,
        ground.words(ground.kvm_share),
        ground.words(ground.vmm_share)
    );
    out.wrapped("   ", "     ", &line, out.page.width);
    bar(levels, out);
}

fn machine(column: &Column, ground: &str, out: &mut Lines) {
    out.wrapped("   ", "     ", &format!("{}, {}", plain(&column.title), column.about), out.page.width);
    let rows: Vec<[String; 4]> =
        column.storeys.iter().enumerate().map(|(at, storey)| row(column, storey, at, ground)).collect();
    let room = |at: usize| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0);
    for [level, share, rate, note] in &rows {
        let first = format!("     {}  {}  {}", left(level, room(0)), right(share, room(1)), right(rate, room(2)));
        if note.is_empty() {
            out.line(first.trim_end());
        } else if width(&first) + 2 + width(note) <= out.page.width {
            out.line(&format!("{first}  {}", out.paint.on(note, Role::Quiet)));
        } else {
            out.line(&first);
            out.wrapped("       ", "       ", note, out.page.width);
        }
    }
}

fn row(column: &Column, storey: &Storey, at: usize, ground: &str) -> [String; 4] {
    let outer = column.storeys.get(at + 1).map_or(ground, |storey| storey.level.as_str());
    let nested = at.checked_sub(1).map(|at| column.storeys[at].level.as_str());
    let mut notes = Vec::new();
    notes.extend(storey.reflected_per_s.map(|per_s| format!("{} of them handled by {outer}", rate(per_s))));
    if let (Some(each), Some(nested)) = (storey.for_each, nested) {
        notes.push(format!("{} for each exit of {nested} that it handles", base::number::plain(each)));
    }
    let rate = storey.exits_per_s.map_or_else(|| "exits/s not known".to_owned(), |per_s| format!("{}/s", exits(per_s)));
    [format!("{} guest", storey.level), percent(storey.share), rate, notes.join(", ")]
}

fn bar(levels: &Levels, out: &mut Lines) {
    let columns = BAR.min(out.page.width.saturating_sub(4));
    let (mut line, mut used, mut along) = (String::from("   "), 0, 0.0);
    let mut words = Vec::new();
    for (at, part) in levels.time.iter().enumerate() {
        let glyph = GLYPHS[at % GLYPHS.len()];
        along += part.share;
        let end = ((along * columns as f64).round() as usize).clamp(used, columns);
        line.push_str(&out.paint.on(&String::from(glyph).repeat(end - used), Role::Hue(&part.hue)));
        used = end;
        words.push(format!("{glyph} {} {}", part.label, percent(part.share)));
    }
    out.line(&line);
    out.entries("   ", &words);
}

fn exits(per_s: f64) -> String {
    format!("{} {}", rate(per_s), if per_s == 1.0 { "exit" } else { "exits" })
}
