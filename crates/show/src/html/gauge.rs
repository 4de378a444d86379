//! Rates on dials of 270 degrees, as the dashboard's: the hand, the ceiling at its end, and diamonds for what others published.

use super::escape::Safe;
use base::figure::{Gauge, GaugeGroup};
use base::number;
use std::fmt::{Result, Write};

/// Groups drawn open; the others wait behind a line that says how many they are.
const OPEN_GROUPS: usize = 4;
/// The dial's radius; of its hand, from where to where it reaches; of diamonds.
const RADIUS: f64 = 62.0;
const HAND: (f64, f64) = (53.0, 72.0);
const DIAMONDS: f64 = 82.0;
/// Words at its ends are nearer to its middle: a diamond has room beside them.
const INWARDS: f64 = 0.85;
/// Where a dial begins and how far it goes, in degrees clockwise from the right.
const BEGIN: f64 = 135.0;
const SWEEP: f64 = 270.0;

/// All groups, one below the other.
pub fn render(groups: &[GaugeGroup], out: &mut String) -> Result {
    for (index, group) in groups.iter().enumerate() {
        if index == OPEN_GROUPS {
            let more = number::many((groups.len() - index) as u64, "more group");
            writeln!(out, "<details><summary>{more} like these</summary>")?;
        }
        writeln!(out, "<h4>{}</h4>\n<div class=\"dials\">", Safe(&group.title))?;
        group.gauges.iter().try_for_each(|gauge| dial(gauge, out))?;
        out.push_str("</div>\n");
    }
    if groups.len() > OPEN_GROUPS {
        out.push_str("</details>\n");
    }
    Ok(())
}

fn dial(gauge: &Gauge, out: &mut String) -> Result {
    let [packets, bits] = [number::packets_per_s(gauge.all.pps), number::bits_per_s(gauge.all.bits_per_s)];
    write!(
        out,
        "<div class=\"dial\"><b>{}</b>\n<svg viewBox=\"-90 -82 180 146\" role=\"img\" aria-label=\"{}: {packets}, {bits}\">",
        Safe(&gauge.label),
        Safe(&gauge.all.of)
    )?;
    write!(out, "<path class=\"track\" d=\"{}\"/>", arc(1.0))?;
    let place = gauge.place(gauge.all.pps);
    if place > 0.0 {
        write!(out, "<path class=\"fill\" d=\"{}\"/>", arc(place))?;
    }
    mark("hand", place, out)?;
    mark("ceiling", gauge.place(gauge.ceiling.pps), out)?;
    for pps in &gauge.published_pps {
        let (x, y) = on_dial(gauge.place(*pps), DIAMONDS);
        write!(out, "<path class=\"diamond\" d=\"M{:.1} {y:.1}l5-5l5 5l-5 5z\"/>", x - 5.0)?;
    }
    let number = packets.strip_suffix(" Mpps").unwrap_or(&packets);
    write!(out, "<text class=\"big\" y=\"-2\">{number}</text><text y=\"15\">Mpps</text><text y=\"32\">{bits}</text>")?;
    for (share, words) in [(0.0, "0".to_owned()), (1.0, number::packets_per_s(gauge.end_pps()))] {
        let (x, y) = on_dial(share, RADIUS);
        let x = x * INWARDS;
        write!(out, "<text class=\"end\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>", y + 18.0, words.replace(" Mpps", ""))?;
    }
    write!(out, "</svg>\n<span>{}</span>", Safe(&gauge.all.of))?;
    if let Some(each) = &gauge.each {
        let [packets, bits] = [number::packets_per_s(each.pps), number::bits_per_s(each.bits_per_s)];
        write!(out, "<span>{} {packets}, {bits}</span>", Safe(&each.of))?;
    }
    let most = number::packets_per_s(gauge.ceiling.pps);
    write!(out, "<span class=\"quiet\">ceiling {most}, {}</span>", Safe(&gauge.ceiling.resource))?;
    if !gauge.published_pps.is_empty() {
        let others: Vec<String> = gauge.published_pps.iter().map(|pps| number::plain(pps / 1e6)).collect();
        write!(out, "<span class=\"quiet\">\u{25c6} published {} Mpps</span>", number::list(&others))?;
    }
    out.write_str("</div>\n")
}

/// A line across the dial.
fn mark(class: &str, share: f64, out: &mut String) -> Result {
    let [(x1, y1), (x2, y2)] = [on_dial(share, HAND.0), on_dial(share, HAND.1)];
    write!(out, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>")
}

/// SVG path data of the dial from its beginning to a place.
fn arc(to: f64) -> String {
    let [(x1, y1), (x2, y2)] = [on_dial(0.0, RADIUS), on_dial(to, RADIUS)];
    let is_long = u8::from(to * SWEEP > 180.0);
    format!("M{x1:.2} {y1:.2}A{RADIUS} {RADIUS} 0 {is_long} 1 {x2:.2} {y2:.2}")
}

fn on_dial(share: f64, radius: f64) -> (f64, f64) {
    let angle = (BEGIN + SWEEP * share).to_radians();
    (angle.cos() * radius, angle.sin() * radius)
}
