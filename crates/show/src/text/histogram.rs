//! A histogram drawn with characters: a line for each bin, limits between those that they separate.
//!
//! ```text
//!   5.0 us to 10.0 us   12  ██████▌     irq
//!   ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ preempt-period, 10.0 us
//!  10.0 us to 20.0 us    1  ███         preempted
//! ```

use super::line::{Lines, bar, right, width};
use super::paint::Role;
use base::figure::{Bin, Edge, Histogram};
use base::number;

/// The longest bar; a logarithmic one does not tell more if it is longer.
const LONGEST_BAR: usize = 32;

pub(super) fn render(drawn: &Histogram, out: &mut Lines) {
    let words = |value: f64| number::amount(value, drawn.x.unit);
    let labels: Vec<String> =
        drawn.bins.iter().map(|bin| format!("{} to {}", words(bin.from), words(bin.to))).collect();
    let counts: Vec<String> = drawn.bins.iter().map(|bin| number::thousands(bin.total())).collect();
    let widest = |texts: &[String], head: &str| texts.iter().map(|text| width(text)).fold(width(head), usize::max);
    let (label_room, count_room) = (widest(&labels, &drawn.x.title), widest(&counts, drawn.counted));
    let kind_room = drawn.kinds.iter().map(|kind| width(&kind.label)).max().filter(|_| drawn.kinds.len() > 1);
    let left = out.page.width.saturating_sub(3 + label_room + 2 + count_room + 2);
    let bar_room = left.saturating_sub(kind_room.map_or(0, |room| room + 2)).min(LONGEST_BAR);
    out.line(&format!("   {}  {}", right(&drawn.x.title, label_room), right(drawn.counted, count_room)));
    for (place, bin) in drawn.bins.iter().enumerate() {
        limits(drawn, place, label_room + 2 + count_room, out);
        let painted = painted(drawn, bin, bar_room, out);
        let main = main_kind(drawn, bin).filter(|_| kind_room.is_some());
        let main = main.map_or(String::new(), |label| format!("  {label}"));
        let line = format!("   {}  {}", right(&labels[place], label_room), right(&counts[place], count_room));
        out.line(&format!("{line}  {painted}{main}"));
    }
    limits(drawn, drawn.bins.len(), label_room + 2 + count_room, out);
    let kinds = if kind_room.is_some() { "; named: the most frequent kind of each" } else { "" };
    out.wrapped("   ", "   ", &format!("The bars are logarithmic{kinds}."), out.page.width);
}

/// The limits that lie inside the bin at `place` or at its beginning, before it.
fn limits(drawn: &Histogram, place: usize, room: usize, out: &mut Lines) {
    let of = |limit: &&Edge| (drawn.place(limit.value) * drawn.bins.len() as f64).ceil() as usize == place;
    for limit in drawn.limits.iter().filter(of) {
        let text = format!("{}, {}", limit.label, number::amount(limit.value, drawn.x.unit));
        let room = room.min(out.page.width.saturating_sub(4 + width(&text)));
        out.line(&format!("   {} {text}", "┄".repeat(room)));
    }
}

/// The bar of a bin: as high as all of it, in the colours of its kinds by their shares.
fn painted(drawn: &Histogram, bin: &Bin, room: usize, out: &Lines) -> String {
    let whole: Vec<char> = bar(drawn.height(bin.total()), room).chars().collect();
    let (mut sum, mut begin, mut text) = (0_u64, 0, String::new());
    for (kind, count) in drawn.kinds.iter().zip(&bin.counts) {
        sum = sum.saturating_add(*count);
        let end = (whole.len() as f64 * sum as f64 / bin.total().max(1) as f64).round() as usize;
        let part: String = whole[begin..end.max(begin)].iter().collect();
        text.push_str(&out.paint.on(&part, Role::Hue(&kind.hue)));
        begin = end.max(begin);
    }
    text
}

fn main_kind<'h>(drawn: &'h Histogram, bin: &Bin) -> Option<&'h str> {
    let kinds = drawn.kinds.iter().zip(&bin.counts).filter(|(_, count)| **count > 0);
    // Of several the first: the one that matters most stands first.
    let most = kinds.rev().max_by_key(|(_, count)| **count)?;
    Some(&most.0.label)
}
