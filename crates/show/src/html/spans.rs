//! Stretches along an axis: a row each, those of one axis on one scale, and a legend for all.

use super::escape::Safe;
use super::{curves, look};
use base::figure::{Key, Scale, Shape, SpanGroup, SpanRow};
use base::number;
use std::fmt::{Result, Write};

/// Groups drawn open; the others wait behind a line that says how many they are.
const OPEN_GROUPS: usize = 8;

/// The narrowest stretch, in percent of the page: what is there at all is seen.
const NARROWEST: f64 = 0.3;

pub(super) fn render(groups: &[SpanGroup], out: &mut String) -> Result {
    for (index, group) in groups.iter().enumerate() {
        if index == OPEN_GROUPS {
            let more = number::many((groups.len() - index) as u64, "more group");
            writeln!(out, "<details><summary>{more} like these</summary>")?;
        }
        span_group(group, groups, out)?;
    }
    if groups.len() > OPEN_GROUPS {
        out.push_str("</details>\n");
    }
    legend(groups, out)
}

fn span_group(group: &SpanGroup, groups: &[SpanGroup], out: &mut String) -> Result {
    let scale = group.scale(groups);
    let has_notes = group.rows.iter().any(|row| !row.note.is_empty());
    writeln!(out, "<div class=\"bars spans\"><h4>{}</h4>\n<table>", Safe(&group.title))?;
    for row in &group.rows {
        write!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"bar\">",
            Safe(&row.label),
            Safe(&row.value)
        )?;
        drawing(group, row, scale, out)?;
        out.push_str("</td>");
        if has_notes {
            write!(out, "<td class=\"note\">{}</td>", Safe(&row.note))?;
        }
        out.push_str("</tr>\n");
    }
    out.push_str("<tr aria-hidden=\"true\"><td></td><td></td><td class=\"bar\">");
    curves::axis(&group.x, scale, out)?;
    writeln!(out, "</td>{}</tr>\n</table></div>", if has_notes { "<td></td>" } else { "" })
}

fn drawing(group: &SpanGroup, row: &SpanRow, scale: Scale, out: &mut String) -> Result {
    let percent = |value: f64| 100.0 * scale.place(value);
    out.push_str("<svg aria-hidden=\"true\" overflow=\"visible\">");
    out.push_str("<line class=\"track\" x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/>");
    for one in &row.stretches {
        let (from, to) = (percent(one.from), one.to.map_or(100.0, percent));
        write!(
            out,
            "<rect x=\"{from:.2}%\" width=\"{:.2}%\" height=\"100%\" fill=\"{}\"><title>{}</title></rect>",
            (to - from).max(NARROWEST),
            look::fill(&one.hue),
            Safe(&one.what)
        )?;
        if one.to.is_none() {
            out.push_str(
                "<svg x=\"100%\" y=\"50%\" overflow=\"visible\"><path class=\"sign\" d=\"M2-5L8 0L2 5Z\"/></svg>",
            );
        }
    }
    for limit in &group.limits {
        let at = percent(limit.value);
        write!(
            out,
            "<line class=\"limit\" x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"-6\" y2=\"22\"><title>{}</title></line>",
            Safe(&limit.label)
        )?;
    }
    for sign in &row.signs {
        write!(out, "<svg x=\"{:.2}%\" y=\"50%\" overflow=\"visible\">{}</svg>", percent(sign.at), shape(sign.shape))?;
    }
    out.write_str("</svg>")
}

/// A single value around the place where it stands.
fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Dot => "<circle class=\"sign\" r=\"5\"/>",
        Shape::Bar => "<path class=\"sign\" d=\"M-1.5-9h3v18h-3z\"/>",
        Shape::Cross => "<path class=\"sign cross\" d=\"M-5-5L5 5M-5 5L5-5\"/>",
    }
}

fn legend(groups: &[SpanGroup], out: &mut String) -> Result {
    out.push_str("<ul class=\"keys\">");
    for (what, key) in SpanGroup::keys(groups) {
        let drawn = match key {
            Key::Hue(hue) => format!("<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>", look::fill(hue)),
            Key::Shape(of) => format!("<svg x=\"50%\" y=\"50%\" overflow=\"visible\">{}</svg>", shape(of)),
        };
        write!(out, "<li><svg aria-hidden=\"true\">{drawn}</svg>{}</li>", Safe(what))?;
    }
    let mut limits: Vec<String> = Vec::new();
    for group in groups {
        for limit in &group.limits {
            let words = format!("{}, {}", limit.label, number::amount(limit.value, group.x.unit));
            if !limits.contains(&words) {
                limits.push(words);
            }
        }
    }
    for words in limits {
        let drawn = "<line class=\"limit\" x1=\"50%\" x2=\"50%\" y1=\"0\" y2=\"100%\"/>";
        write!(out, "<li><svg aria-hidden=\"true\">{drawn}</svg>{}</li>", Safe(words))?;
    }
    out.write_str("</ul>\n")
}
