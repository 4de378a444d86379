//! Pairs of numbers before and after: a row each, those of one group on one scale, and a legend for all.

use super::escape::Safe;
use super::{curves, look};
use base::figure::{Dumbbell, DumbbellGroup, DumbbellKey, Mark, Scale, Sure};
use base::number;
use std::fmt::{Result, Write};

/// Half the height of a row's drawing, in pixels: `style.css` makes it twice as high.
const MIDDLE: u32 = 8;

pub(super) fn render(groups: &[DumbbellGroup], out: &mut String) -> Result {
    groups.iter().try_for_each(|group| one(group, out))?;
    legend(groups, out)
}

fn one(group: &DumbbellGroup, out: &mut String) -> Result {
    let scale = group.scale();
    writeln!(out, "<div class=\"bars spans dumbbells\"><h4>{}</h4>\n<table>", Safe(&group.title))?;
    for row in &group.rows {
        let [before, after] = [row.before, row.after].map(|value| number::amount(value, group.x.unit));
        write!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{} → {}</td><td class=\"n\">{}</td><td class=\"bar\">",
            Safe(&row.label),
            Safe(before),
            Safe(after),
            Safe(&row.change)
        )?;
        drawing(row, scale, out)?;
        writeln!(out, "</td><td class=\"note\">{}</td></tr>", Safe(&row.verdict))?;
    }
    out.push_str("<tr aria-hidden=\"true\"><td></td><td></td><td></td><td class=\"bar\">");
    curves::axis(&group.x, scale, out)?;
    out.write_str("</td><td></td></tr>\n</table></div>\n")
}

fn drawing(row: &Dumbbell, scale: Scale, out: &mut String) -> Result {
    let percent = |value: f64| 100.0 * scale.place(value);
    out.push_str("<svg aria-hidden=\"true\" overflow=\"visible\">");
    write!(out, "<line class=\"track\" x1=\"0\" x2=\"100%\" y1=\"{MIDDLE}\" y2=\"{MIDDLE}\"/>")?;
    if let Some((low, high)) = row.interval {
        write!(
            out,
            "<rect class=\"rim\" x=\"{:.2}%\" y=\"{}\" width=\"{:.2}%\" height=\"6\"/>",
            percent(low),
            MIDDLE - 3,
            percent(high) - percent(low)
        )?;
    }
    let (from, to) = row.ends();
    write!(
        out,
        "<line class=\"between\" x1=\"{:.2}%\" x2=\"{:.2}%\" y1=\"{MIDDLE}\" y2=\"{MIDDLE}\"/>",
        percent(from),
        percent(to)
    )?;
    let at = |value: f64, drawn: &str| {
        format!("<svg x=\"{:.2}%\" y=\"{MIDDLE}\" overflow=\"visible\">{drawn}</svg>", percent(value))
    };
    out.push_str(&at(row.before, BEFORE));
    out.push_str(&at(row.after, &shape((row.mark, row.sure), &look::fill(&row.hue))));
    out.write_str("</svg>")
}

const BEFORE: &str = "<path class=\"was\" d=\"M0-7V7\"/>";

/// Fill says how sure, shape where from. Half: a filled shape in a ring.
fn shape((mark, sure): DumbbellKey, hue: &str) -> String {
    let of = |half: f64| match mark {
        Mark::Measured => format!("<circle r=\"{half}\""),
        Mark::Emulated => format!("<path d=\"M-{half}-{half}H{half}V{half}H-{half}Z\""),
        Mark::Modelled | Mark::Published => format!("<path d=\"M-{half} 0L0-{half}L{half} 0L0 {half}Z\""),
    };
    let hollow = format!("{} class=\"hollow\"/>", of(5.0));
    match sure {
        Sure::Changed => format!("{} class=\"full\" fill=\"{hue}\"/>", of(5.5)),
        Sure::TwoRuns => format!("{} class=\"hollow\"/>{} fill=\"{hue}\" stroke=\"var(--ink)\"/>", of(6.5), of(3.0)),
        Sure::Noise => hollow,
        Sure::Void => format!("{hollow}<path class=\"sign cross\" d=\"M-5-5L5 5M-5 5L5-5\"/>"),
        Sure::Unknown => format!("{} class=\"hollow\" stroke-dasharray=\"2 2\"/>", of(5.0)),
    }
}

fn legend(groups: &[DumbbellGroup], out: &mut String) -> Result {
    let entry = |drawn: &str, words: &str, out: &mut String| {
        write!(
            out,
            "<li><svg aria-hidden=\"true\"><svg x=\"50%\" y=\"50%\" overflow=\"visible\">{drawn}</svg></svg>{}</li>",
            Safe(words)
        )
    };
    out.push_str("<ul class=\"keys dumbbells\">");
    entry(BEFORE, "before", out)?;
    for key in DumbbellGroup::keys(groups) {
        entry(&shape(key, &look::fill("")), &DumbbellGroup::say(key), out)?;
    }
    if groups.iter().flat_map(|group| &group.rows).any(|row| row.interval.is_some()) {
        let rim = "<rect class=\"rim\" x=\"-12\" y=\"-3\" width=\"24\" height=\"6\"/>";
        entry(rim, "95 % interval of the number after", out)?;
    }
    out.write_str("</ul>\n")
}
