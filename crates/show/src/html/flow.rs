//! The way of packets: a tile for each hop with the station that it ends at, tiles beside each other as far as the page is wide.
//!
//! ```text
//! |  ovs-dpdk         |
//! |  8.62 Mpps        |
//! |--> [switch] -> [VNF 2]   above
//! | - - - - - - - PCIe| - -
//! |                   |      below
//! |  pmd 100 %        |
//! ```
//! Every tile has the boundary at one height, so that a line of tiles is one drawing, wherever it is broken. The dashboard draws the
//! same tiles, ui/src/draw/flow.ts.

use super::escape::Safe;
use base::figure::{Flow, Fullness, Hop, Side, Stop};
use base::number;
use std::fmt::{Result, Write};

/// Ways drawn open; the others wait behind a line that says how many they are.
const OPEN_FLOWS: usize = 4;

/// Of a tile, in pixels: two of them fit beside each other on a phone.
const WIDTH: u32 = 178;
const HEIGHT: u32 = 206;
/// Heights of what is above the boundary, of the boundary, and of what is below it.
const ABOVE: u32 = 84;
const BOUNDARY: u32 = 126;
const BELOW: u32 = 162;
/// Where a hop from a named end begins, and where it ends at a box.
const BEGIN: u32 = 28;
const END: u32 = 120;
/// Half the height of a box.
const HALF: u32 = 17;
/// How far a line's corners are rounded.
const ROUND: u32 = 8;
/// Where a line goes up behind the first station below, down before the last one, and both for what returns.
const UP: u32 = 51;
const DOWN: u32 = 78;
const RETURN: (u32, u32) = (32, 80);
/// Of the spot that marks a crossing, with its number: up to two digits, and more.
const SPOT: f64 = 8.5;
const WIDE_SPOT: f64 = 12.0;
/// Widths of lines without load, and of the fullest ones.
const THIN: f64 = 2.0;
const THICK: f64 = 12.0;

pub(super) fn render(flows: &[Flow], out: &mut String) -> Result {
    for (index, flow) in flows.iter().enumerate() {
        if index == OPEN_FLOWS {
            let more = number::many((flows.len() - index) as u64, "more way");
            writeln!(out, "<details><summary>{more} like these</summary>")?;
        }
        one(flow, out)?;
    }
    if flows.len() > OPEN_FLOWS {
        out.push_str("</details>\n");
    }
    let Some(flow) = flows.first() else { return Ok(()) };
    out.push_str("<ul class=\"keys\">");
    for (fullness, words) in
        [(Fullness::Free, "has room"), (Fullness::Near, "nearly full"), (Fullness::Full, "full: it binds")]
    {
        let class = fullness.name();
        write!(
            out,
            "<li><svg class=\"hop {class}\" aria-hidden=\"true\"><path d=\"M0 6H26\" stroke-width=\"5\"/></svg>{words}</li>"
        )?;
    }
    writeln!(
        out,
        "<li><svg class=\"hop\" aria-hidden=\"true\"><line class=\"boundary\" x2=\"26\" y1=\"6\" y2=\"6\"/></svg>\
         {}: above it {}, below it {}; crossings are counted</li></ul>",
        Safe(&flow.boundary),
        Safe(&flow.above),
        Safe(&flow.below)
    )
}

fn one(flow: &Flow, out: &mut String) -> Result {
    let crossed = number::counted(u64::from(flow.crossings()), "crossing", "crossings");
    writeln!(
        out,
        "<h4>{} <span class=\"quiet\">{crossed} of {}</span></h4>\n<div class=\"hops\">",
        Safe(&flow.title),
        Safe(&flow.boundary)
    )?;
    let mut before: u32 = 0;
    for (at, hop) in flow.hops.iter().enumerate() {
        tile(flow, hop, at == 0, before, out)?;
        before = before.saturating_add(hop.crossings().saturating_mul(hop.count));
    }
    out.write_str("</div>\n")
}

/// One hop; so many crossings were `before` it.
fn tile(flow: &Flow, hop: &Hop, is_first: bool, before: u32, out: &mut String) -> Result {
    let class = hop.fullness().name();
    write!(
        out,
        "<svg class=\"hop {class}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        Safe(words(flow, hop))
    )?;
    write!(out, "<line class=\"boundary\" x2=\"{WIDTH}\" y1=\"{BOUNDARY}\" y2=\"{BOUNDARY}\"/>")?;
    write!(out, "<text class=\"end\" x=\"{}\" y=\"{}\">{}</text>", WIDTH - 4, BOUNDARY - 5, Safe(&flow.boundary))?;
    let thick = THIN + (THICK - THIN) * flow.part(hop);
    let (line, crossings) = line(hop, is_first);
    // The head takes the line's end.
    let tip = if hop.to.side == Side::Above { (END, ABOVE) } else { (END + 6, BELOW) };
    let head = 5.0 + thick * 0.6;
    write!(out, "<path d=\"{line}H{:.1}\" stroke-width=\"{thick:.1}\"/>", f64::from(tip.0) - head)?;
    write!(out, "<path class=\"head\" d=\"M{} {}l-{head:.1} -{head:.1}v{:.1}z\"/>", tip.0, tip.1, 2.0 * head)?;
    // Of folded hops the first crossing and the last one.
    let last = before.saturating_add(hop.crossings().saturating_mul(hop.count));
    for (place, x) in crossings.iter().enumerate() {
        let nth = if place + 1 == crossings.len() { last } else { before.saturating_add(1) };
        let radius = if nth < 100 { SPOT } else { WIDE_SPOT };
        write!(
            out,
            "<circle cx=\"{x}\" cy=\"{BOUNDARY}\" r=\"{radius}\"/><text class=\"nth\" x=\"{x}\" y=\"{}\">{nth}</text>",
            BOUNDARY + 4
        )?;
    }
    let (above, below) = places(hop);
    for (label, (from, to), y) in [(&hop.above, above, ABOVE), (&hop.below, below, BELOW)] {
        if let Some(label) = label {
            write!(
                out,
                "<rect x=\"{from}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\"/><text x=\"{}\" y=\"{}\">{}</text>",
                y - HALF,
                to - from,
                2 * HALF,
                (from + to) / 2,
                y + 4,
                Safe(label)
            )?;
        }
    }
    if is_first {
        write!(out, "<text class=\"at\" x=\"0\" y=\"{}\">{}</text>", height(&hop.from) + 4, Safe(&hop.from.label))?;
    }
    station(&hop.to, out)?;
    let middle = END / 2;
    let times = if hop.count > 1 { format!("{} x ", hop.count) } else { String::new() };
    let (packets, bits) = (number::packets_per_s(hop.pps), number::bits_per_s(hop.bits_per_s));
    write!(out, "<text class=\"name\" x=\"{middle}\" y=\"14\">{times}{}</text>", Safe(&hop.path))?;
    write!(out, "<text x=\"{middle}\" y=\"31\">{packets}</text><text x=\"{middle}\" y=\"47\">{bits}</text>")?;
    if let Some(fullest) = &hop.fullest {
        let share = number::percent(fullest.share);
        write!(
            out,
            "<text class=\"share\" x=\"{middle}\" y=\"{}\">{} {share}</text>",
            HEIGHT - 6,
            Safe(&fullest.resource)
        )?;
    }
    out.write_str("</svg>\n")
}

/// Where a hop ends: a box above, whose name and fill are seen, or words below.
fn station(stop: &Stop, out: &mut String) -> Result {
    let y = height(stop);
    if stop.side == Side::Below {
        return write!(out, "<text class=\"at\" x=\"{}\" y=\"{}\">{}</text>", END + 12, y + 4, Safe(&stop.label));
    }
    let (middle, full) = ((END + WIDTH) / 2, Fullness::of(stop.share).name());
    write!(
        out,
        "<rect class=\"{full}\" x=\"{END}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\"/>",
        y - HALF,
        WIDTH - 1 - END,
        2 * HALF
    )?;
    let Some(share) = stop.share else {
        return write!(out, "<text x=\"{middle}\" y=\"{}\">{}</text>", y + 4, Safe(&stop.label));
    };
    write!(
        out,
        "<text x=\"{middle}\" y=\"{}\">{}</text><text class=\"small\" x=\"{middle}\" y=\"{}\">{}</text>",
        y - 2,
        Safe(&stop.label),
        y + 12,
        number::percent(share)
    )
}

fn height(stop: &Stop) -> u32 {
    if stop.side == Side::Above { ABOVE } else { BELOW }
}

/// From where to where the boxes above and below reach.
fn places(hop: &Hop) -> ((u32, u32), (u32, u32)) {
    match (hop.from.side, hop.to.side) {
        (Side::Below, Side::Above) => ((58, 104), (32, 70)),
        (Side::Above, Side::Below) => ((14, 60), (59, 97)),
        (Side::Above, Side::Above) => ((32, 86), (14, 98)),
        (Side::Below, Side::Below) => ((14, 98), (32, 86)),
    }
}

/// SVG path data up to what is left to draw straight ahead, and where it crosses the boundary.
fn line(hop: &Hop, is_first: bool) -> (String, Vec<u32>) {
    let begin = if is_first { BEGIN } else { 0 };
    let from = height(&hop.from);
    let mut data = format!("M{begin} {from}");
    let mut crossings = Vec::new();
    let mut turn = |at: u32, from: u32, to: u32| {
        crossings.push(at);
        let (leave, arrive) = if from > to { (from - ROUND, to + ROUND) } else { (from + ROUND, to - ROUND) };
        // Writing into a text cannot fail.
        let _ = write!(data, "H{}Q{at} {from} {at} {leave}V{arrive}Q{at} {to} {} {to}", at - ROUND, at + ROUND);
    };
    match (hop.from.side, hop.to.side) {
        (Side::Below, Side::Above) => turn(UP, BELOW, ABOVE),
        (Side::Above, Side::Below) => turn(DOWN, ABOVE, BELOW),
        (Side::Above, Side::Above) if hop.below.is_some() => {
            turn(RETURN.0, ABOVE, BELOW);
            turn(RETURN.1, BELOW, ABOVE);
        }
        (Side::Below, Side::Below) if hop.above.is_some() => {
            turn(RETURN.0, BELOW, ABOVE);
            turn(RETURN.1, ABOVE, BELOW);
        }
        _ => {}
    }
    (data, crossings)
}

/// The hop in words, for those who do not see it.
fn words(flow: &Flow, hop: &Hop) -> String {
    let by: Vec<&str> = hop.between().into_iter().map(|(label, _)| label).collect();
    let by = if by.is_empty() { String::new() } else { format!(" by {}", by.join(" and ")) };
    let alike = if hop.count > 1 { format!("{} hops alike, ", hop.count) } else { String::new() };
    let full = hop.fullest.as_ref().map(|fullest| format!(", {} {}", fullest.resource, number::percent(fullest.share)));
    format!(
        "{alike}{} to {}{by}, {}: {}, {}{}, {} of {}",
        hop.from.label,
        hop.to.label,
        hop.path,
        number::packets_per_s(hop.pps),
        number::bits_per_s(hop.bits_per_s),
        full.unwrap_or_default(),
        number::counted(u64::from(hop.crossings()), "crossing", "crossings"),
        flow.boundary
    )
}
