//! Rates as the dashboard draws them: a number, a bar up to the ceiling, and diamonds for what others published.

use super::escape::Safe;
use base::figure::{Gauge, GaugeGroup};
use base::number;
use std::fmt::{Result, Write};

/// Groups drawn open; the others wait behind a line that says how many they are.
const OPEN_GROUPS: usize = 4;
/// Length of a bar, in units of its picture.
const LENGTH: f64 = 200.0;

pub(super) fn render(groups: &[GaugeGroup], out: &mut String) -> Result {
    for (index, group) in groups.iter().enumerate() {
        if index == OPEN_GROUPS {
            let more = number::many((groups.len() - index) as u64, "more group");
            writeln!(out, "<details><summary>{more} like these</summary>")?;
        }
        writeln!(out, "<h4>{}</h4>\n<div class=\"gauges\">", Safe(&group.title))?;
        group.gauges.iter().try_for_each(|one| gauge(one, out))?;
        out.push_str("</div>\n");
    }
    if groups.len() > OPEN_GROUPS {
        out.push_str("</details>\n");
    }
    Ok(())
}

fn gauge(gauge: &Gauge, out: &mut String) -> Result {
    let Gauge { label, all, each, ceiling, published_pps } = gauge;
    let at = |pps: f64| LENGTH * gauge.place(pps);
    let [packets, bits] = [number::packets_per_s(all.pps), number::bits_per_s(all.bits_per_s)];
    write!(
        out,
        "<div class=\"gauge\"><b>{}</b><span class=\"big\">{packets}</span>\n\
         <svg viewBox=\"-6 0 212 18\" role=\"img\" aria-label=\"{}: {packets}, {bits}\">\
         <rect class=\"track\" y=\"4\" width=\"{LENGTH}\" height=\"10\"/><rect y=\"4\" width=\"{:.1}\" height=\"10\"/>\
         <path class=\"ceiling\" d=\"M{:.1} 0V18\"/>",
        Safe(label),
        Safe(&all.of),
        at(all.pps),
        at(ceiling.pps)
    )?;
    for pps in published_pps {
        write!(out, "<path class=\"diamond\" d=\"M{:.1} 9l5-6l5 6l-5 6z\"/>", at(*pps) - 5.0)?;
    }
    write!(out, "</svg>\n<span>{} {bits}</span>", Safe(&all.of))?;
    if let Some(each) = each {
        let [packets, bits] = [number::packets_per_s(each.pps), number::bits_per_s(each.bits_per_s)];
        write!(out, "<span>{} {packets}, {bits}</span>", Safe(&each.of))?;
    }
    let most = number::packets_per_s(ceiling.pps);
    write!(out, "<span class=\"quiet\">ceiling {most}, {}</span>", Safe(&ceiling.resource))?;
    if !published_pps.is_empty() {
        let others: Vec<String> = published_pps.iter().map(|pps| number::plain(pps / 1e6)).collect();
        write!(out, "<span class=\"quiet\">\u{25c6} published {} Mpps</span>", number::list(&others))?;
    }
    out.write_str("</div>\n")
}
