//! Figures of Sections: bars, points, curves, machines, ways, gauges, stretches, pairs.
//!
//! Everything across the page is a percentage of the drawing's width, so that a drawing fills a phone and a wall
//! without stretching its patterns or its words.

use super::escape::Safe;
use super::{curves, dumbbells, flow, gauge, histogram, levels, look, matrix, points, spans, waterfall};
use base::figure::{BarGroup, Drawing, Figure};
use base::number;
use std::fmt::{Result, Write};

/// Groups drawn open; the others wait behind a line that says how many they are.
const OPEN_GROUPS: usize = 8;

/// Renders one figure with its title and caption.
pub(super) fn render(section: &str, figure: &Figure, out: &mut String) -> Result {
    write!(out, "<figure id=\"{}-{}\">\n<h3>{}</h3>\n", Safe(section), Safe(&figure.id), Safe(&figure.title))?;
    if !figure.caption.is_empty() {
        writeln!(out, "<figcaption>{}</figcaption>", Safe(&figure.caption))?;
    }
    match &figure.drawing {
        Drawing::Bars(groups) => bars(groups, out)?,
        Drawing::Topology(panels) => super::topology::render(panels, out)?,
        Drawing::Points(groups) => points::render(groups, out)?,
        Drawing::Histogram(drawn) => histogram::render(&figure.title, drawn, out)?,
        Drawing::Curves(drawn) => curves::render(&figure.title, drawn, out)?,
        Drawing::Heat(drawn) => curves::heat(&figure.title, drawn, out)?,
        Drawing::Flows(flows) => flow::render(flows, out)?,
        Drawing::Gauges(groups) => gauge::render(groups, out)?,
        Drawing::Spans(groups) => spans::render(groups, out)?,
        Drawing::Levels(drawn) => levels::render(&figure.title, drawn, out)?,
        Drawing::Waterfall(all) => waterfall::render(all, out)?,
        Drawing::Matrix(drawn) => matrix::render(drawn, out)?,
        Drawing::Dumbbells(groups) => dumbbells::render(groups, out)?,
    }
    out.write_str("</figure>\n")
}

fn bars(groups: &[BarGroup], out: &mut String) -> Result {
    let shares = groups.iter().flat_map(|group| group.bars.iter().map(|bar| bar.value / group.total));
    let largest = shares.filter(|share| share.is_finite()).fold(0.0, f64::max);
    for (index, group) in groups.iter().enumerate() {
        if index == OPEN_GROUPS {
            let more = number::many((groups.len() - index) as u64, "more group");
            writeln!(out, "<details><summary>{more} like these</summary>")?;
        }
        bar_group(group, largest, out)?;
    }
    if groups.len() > OPEN_GROUPS {
        out.push_str("</details>\n");
    }
    Ok(())
}

fn bar_group(group: &BarGroup, largest: f64, out: &mut String) -> Result {
    let total =
        if group.has_shares() { String::new() } else { format!("{} in all", number::amount(group.total, group.unit)) };
    writeln!(
        out,
        "<div class=\"bars\"><h4>{} <span class=\"quiet\">{}</span></h4>\n<table>",
        Safe(&group.title),
        Safe(total)
    )?;
    for bar in &group.bars {
        let share = if group.total > 0.0 { bar.value / group.total } else { 0.0 };
        let width = if largest > 0.0 { 100.0 * share / largest } else { 0.0 };
        write!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"n\" data-v=\"{}\">{}</td><td class=\"n\">{}</td>\
             <td class=\"bar\"><svg aria-hidden=\"true\"><rect width=\"{width:.2}%\" height=\"100%\" fill=\"{}\"/></svg>",
            Safe(&bar.label),
            bar.value,
            Safe(number::amount(bar.value, group.unit)),
            if group.has_shares() { String::new() } else { number::percent(share) },
            look::fill(&bar.hue)
        )?;
        if !bar.note.is_empty() {
            write!(out, "<span class=\"note\">{}</span>", Safe(&bar.note))?;
        }
        out.push_str("</td></tr>\n");
    }
    out.write_str("</table></div>\n")
}
