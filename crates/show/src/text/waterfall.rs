//! Steps that use up a whole, in a terminal: each begins where the one before it ends.
//!
//! ```text
//!    vCPU 0 of web
//!      L1 guest           10.8 %  ███
//!      L0 working for L1  17.9 %     ██▒▒▒        FLW-VLS gives back 9.0 % (4.1 to 13 %)
//!      preempted           7.1 %          ▒▒      FLW-PREEMPT gives back up to 7.1 %
//!    █ stays   ▒ would come back
//! ```

use super::line::{Lines, elided, left, right, width};
use super::paint::Role;
use base::figure::{Step, Waterfall};
use base::number::percent;

/// Columns of the whole, at most and at least.
const BAR: std::ops::RangeInclusive<usize> = 16..=50;

/// Wholes drawn one below the other.
const MOST: usize = 8;

pub(super) fn render(all: &[Waterfall], out: &mut Lines) {
    let steps = || all.iter().flat_map(|whole| &whole.steps);
    let label = steps().map(|step| width(&step.label)).max().unwrap_or(0).min(out.page.width / 3);
    let columns = out.page.width.saturating_sub(5 + label + 2 + 7 + 2).min(*BAR.end());
    for whole in all.iter().take(MOST) {
        if all.len() > 1 {
            out.wrapped("   ", "     ", &whole.title, out.page.width);
        }
        let mut along = 0.0;
        for step in &whole.steps {
            one(step, along, (label, columns), out);
            along += step.share;
        }
    }
    out.line("   █ stays   ▒ would come back");
    if let Some(more) = all.len().checked_sub(MOST).filter(|more| *more > 0) {
        out.line(&format!("   + {more} more like these, see --json"));
    }
}

fn one(step: &Step, begins: f64, (label, columns): (usize, usize), out: &mut Lines) {
    let mut line = format!("     {}  {}", left(&elided(&step.label, label), label), right(&percent(step.share), 7));
    if columns >= *BAR.start() {
        let column = |share: f64| ((share * columns as f64).round() as usize).min(columns);
        let (from, to) = (column(begins).min(columns - 1), column(begins + step.share));
        // What is there at all takes a column.
        let to = to.max(from + 1);
        let back = (column(step.given_back())).clamp(usize::from(step.given_back() > 0.0), to - from);
        let drawn = format!("{}{}", "█".repeat(to - from - back), "▒".repeat(back));
        line.push_str(&format!("  {}{}", " ".repeat(from), out.paint.on(&drawn, Role::Hue(&step.hue))));
        let note = step.note();
        let room = columns - to;
        if note.is_empty() {
            out.line(&line);
        } else if 5 + label + 2 + 7 + 2 + columns + 2 + width(&note) <= out.page.width {
            out.line(&format!("{line}{}  {}", " ".repeat(room), out.paint.on(&note, Role::Quiet)));
        } else {
            out.line(&line);
            out.wrapped("       ", "       ", &note, out.page.width);
        }
        return;
    }
    out.line(&line);
}
