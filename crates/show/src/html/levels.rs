//! The levels at a glance: a column for each VM with its levels on each other, arrows for what leaves them, and one bar of all time.
//!
//! ```text
//! [ L2 guest   4.4 %        ]
//!   | 300/s to L1        |
//!   v                    | 67/s
//! [ L1 guest  10.8 % ]   |
//!   | 1,480/s: 4.0 each  |
//!   v                    v
//! [ L0   KVM 24.8 %         ] -- 310/s --> [ VMM 12.1 % ]
//! ```
//! The dashboard draws the same picture, ui/src/views/Levels.tsx.

use super::escape::Safe;
use super::look;
use base::figure::{Column, Levels, Storey};
use base::number::{percent, rate};
use std::fmt::{Result, Write};

/// Of a column and of the room between two, in pixels.
const WIDTH: f64 = 300.0;
/// Of more than [`FEW`], so that four fit a screen.
const NARROW: f64 = 210.0;
const FEW: usize = 3;
const GAP: f64 = 22.0;
/// Of a box, and of the arrows below it.
const BOX: f64 = 34.0;
const FALL: f64 = 46.0;
/// Where a column's first box begins, below its name.
const HEAD: f64 = 26.0;
/// What the deepest level's way past the others takes.
const LANE: f64 = 76.0;
/// Where the arrow of a box begins, and the words beside it.
const ARROW: f64 = 20.0;
const WORDS: f64 = 34.0;
/// The arrow to the VMM, and its box.
const ACROSS: f64 = 78.0;
const VMM: f64 = 140.0;
/// The bar of all time.
const BAR: f64 = 26.0;
/// An entry of the bar's legend, in a line of its own.
const KEY: f64 = 19.0;
const KEY_WIDTH: f64 = 236.0;
/// The thinnest and the thickest arrow; between them by the logarithm, over four decades.
const THIN: f64 = 1.5;
const THICK: f64 = 9.0;

pub(super) fn render(title: &str, levels: &Levels, out: &mut String) -> Result {
    let count = levels.columns.len().max(1) as f64;
    let storeys = levels.columns.iter().map(|column| column.storeys.len()).max().unwrap_or(1);
    // What passes a nested level needs the room beside it.
    let column_width = if levels.columns.len() > FEW && storeys <= 1 { NARROW } else { WIDTH };
    let columns = count * (column_width + GAP) - GAP;
    let width = (columns + ACROSS + VMM).max(2.0 * KEY_WIDTH);
    let ground = HEAD + storeys as f64 * (BOX + FALL);
    let keys_a_line = (width / KEY_WIDTH).floor().max(1.0) as usize;
    let bar = ground + BOX + 34.0;
    let height = bar + BAR + 10.0 + levels.time.len().div_ceil(keys_a_line) as f64 * KEY;
    write!(
        out,
        "<div class=\"wide\"><svg class=\"levels\" width=\"{width}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
        Safe(title)
    )?;
    for (at, column) in levels.columns.iter().enumerate() {
        machine(levels, column, (at as f64 * (column_width + GAP), column_width), ground, out)?;
    }
    let own = &levels.ground;
    boxed((0.0, ground, columns), "handling_l1", &format!("{}: KVM", own.level), &own.words(own.kvm_share), out)?;
    if let Some(to_vmm) = own.to_vmm_per_s {
        arrow((columns, ground + BOX / 2.0), (columns + ACROSS, ground + BOX / 2.0), thick(levels, to_vmm), out)?;
        let middle = columns + ACROSS / 2.0 - 3.0;
        write!(out, "<text class=\"m\" x=\"{middle}\" y=\"{}\">{}/s</text>", ground + BOX / 2.0 - 9.0, rate(to_vmm))?;
    }
    boxed((columns + ACROSS, ground, VMM), "userspace", "VMM", &own.words(own.vmm_share), out)?;
    time(levels, (bar, width, keys_a_line), out)?;
    out.write_str("</svg></div>\n")
}

/// A column, from its name down to the arrows that reach the ground.
fn machine(levels: &Levels, column: &Column, (x, all): (f64, f64), ground: f64, out: &mut String) -> Result {
    let count = column.storeys.len();
    let top = |at: usize| ground - (count - at) as f64 * (BOX + FALL);
    write!(
        out,
        "<text class=\"b\" x=\"{x}\" y=\"{}\">{} <tspan class=\"q\">{}</tspan></text>",
        top(0) - 10.0,
        Safe(&column.title),
        Safe(&column.about)
    )?;
    for (at, storey) in column.storeys.iter().enumerate() {
        let (y, width) = (top(at), all - LANE * at as f64);
        boxed((x, y, width), &storey.hue, &format!("{} guest", storey.level), &percent(storey.share), out)?;
        let below = column.storeys.get(at + 1);
        let outer = below.map_or(levels.ground.level.as_str(), |storey| storey.level.as_str());
        leaves(levels, storey, (x, y + BOX), (outer, below.is_none()), (width, ground), out)?;
    }
    Ok(())
}

/// What leaves a box: down to the level below, and past it to the ground.
fn leaves(
    levels: &Levels,
    storey: &Storey,
    (x, y): (f64, f64),
    (outer, is_last): (&str, bool),
    (width, ground): (f64, f64),
    out: &mut String,
) -> Result {
    let Some(exits) = storey.exits_per_s else {
        return write!(out, "<text class=\"q\" x=\"{}\" y=\"{}\">exits/s not known</text>", x + WORDS, y + 27.0);
    };
    let down = if is_last { Some(exits) } else { storey.reflected_per_s };
    if let Some(down) = down {
        arrow((x + ARROW, y), (x + ARROW, y + FALL), thick(levels, down), out)?;
        write!(out, "<text x=\"{}\" y=\"{}\">", x + WORDS, y + 20.0)?;
        if is_last {
            let s = if down == 1.0 { "" } else { "s" };
            write!(out, "{} exit{s}/s</text>", rate(down))?;
        } else {
            write!(out, "{}/s handled by {}</text>", rate(down), Safe(outer))?;
        }
        if let Some(each) = storey.for_each {
            let words = format!("{} for each that it handles", base::number::plain(each));
            write!(out, "<text class=\"b\" x=\"{}\" y=\"{}\">{words}</text>", x + WORDS, y + 36.0)?;
        }
    }
    if !is_last {
        let past = x + width - LANE / 2.0;
        let rest = (exits - down.unwrap_or(0.0)).max(0.0);
        arrow((past, y), (past, ground), thick(levels, rest), out)?;
        write!(out, "<text class=\"e\" x=\"{}\" y=\"{}\">{}/s</text>", past - 8.0, y + 20.0, rate(rest))?;
    }
    Ok(())
}

fn boxed((x, y, width): (f64, f64, f64), hue: &str, name: &str, share: &str, out: &mut String) -> Result {
    let middle = y + BOX / 2.0 + 4.0;
    write!(
        out,
        "<rect class=\"box\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BOX}\" rx=\"4\"/>\
         <rect x=\"{x}\" y=\"{y}\" width=\"10\" height=\"{BOX}\" rx=\"3\" fill=\"{}\"/>\
         <text x=\"{}\" y=\"{middle}\">{}</text><text class=\"b e\" x=\"{}\" y=\"{middle}\">{share}</text>",
        look::fill(hue),
        x + 18.0,
        Safe(name),
        x + width - 10.0
    )
}

/// A straight arrow; its head takes the end.
fn arrow((x0, y0): (f64, f64), (x1, y1): (f64, f64), thick: f64, out: &mut String) -> Result {
    let (length, half) = (5.0 + thick, 3.0 + thick * 0.7);
    if x0 == x1 {
        let neck = y1 - length;
        write!(
            out,
            "<path class=\"way\" d=\"M{x0} {y0}V{neck:.1}\" stroke-width=\"{thick:.1}\"/>\
             <path class=\"tip\" d=\"M{x1} {y1}L{:.1} {neck:.1}H{:.1}z\"/>",
            x1 - half,
            x1 + half
        )
    } else {
        let neck = x1 - length;
        write!(
            out,
            "<path class=\"way\" d=\"M{x0} {y0}H{neck:.1}\" stroke-width=\"{thick:.1}\"/>\
             <path class=\"tip\" d=\"M{x1} {y1}L{neck:.1} {:.1}V{:.1}z\"/>",
            y1 - half,
            y1 + half
        )
    }
}

fn thick(levels: &Levels, per_s: f64) -> f64 {
    let most = levels.most_per_s();
    if per_s <= 0.0 || most <= 0.0 {
        return THIN;
    }
    THIN + (THICK - THIN) * (1.0 + (per_s / most).log10() / 4.0).clamp(0.0, 1.0)
}

/// One bar of all time, and its legend.
fn time(levels: &Levels, (y, width, keys_a_line): (f64, f64, usize), out: &mut String) -> Result {
    write!(out, "<text class=\"q\" y=\"{}\">time of all vCPUs</text>", y - 8.0)?;
    let mut x = 0.0;
    for part in &levels.time {
        let wide = part.share * width;
        write!(
            out,
            "<rect class=\"part\" x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{BAR}\" fill=\"{}\"><title>{} {}</title></rect>",
            wide.max(0.5),
            look::fill(&part.hue),
            Safe(&part.label),
            percent(part.share)
        )?;
        x += wide;
    }
    for (at, part) in levels.time.iter().enumerate() {
        let (x, y) = ((at % keys_a_line) as f64 * KEY_WIDTH, y + BAR + 10.0 + (at / keys_a_line) as f64 * KEY);
        write!(
            out,
            "<rect class=\"part\" x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{} \
             <tspan class=\"b\">{}</tspan></text>",
            look::fill(&part.hue),
            x + 18.0,
            y + 10.5,
            Safe(&part.label),
            percent(part.share)
        )?;
    }
    Ok(())
}
