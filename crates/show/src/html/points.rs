//! Single numbers on a logarithmic scale: ours as dots in their interval, those of others as diamonds.

use super::escape::Safe;
use super::{curves, look};
use base::figure::{Mark, Point, PointGroup, Scale};
use base::number;
use std::fmt::{Result, Write};

/// Half the height of a line's drawing, in pixels: `style.css` makes it twice as high.
const MIDDLE: u32 = 8;

/// Groups below each other, those of one unit on one scale.
pub(super) fn render(groups: &[PointGroup], out: &mut String) -> Result {
    for group in groups {
        let (x, scale) = (group.axis(), group.scale(groups));
        writeln!(out, "<div class=\"bars spans\"><h4>{}</h4>\n<table>", Safe(&group.title))?;
        for point in &group.points {
            write!(
                out,
                "<tr><th scope=\"row\">{}</th><td class=\"n\" data-v=\"{}\">{}</td><td>{}</td><td class=\"bar\">",
                Safe(&point.label),
                point.value,
                Safe(number::amount(whole(point.value), group.unit)),
                point.mark.name()
            )?;
            drawing(point, scale, out)?;
            writeln!(out, "</td><td class=\"note\">{}</td></tr>", Safe(&point.source))?;
        }
        out.push_str("<tr aria-hidden=\"true\"><td></td><td></td><td></td><td class=\"bar\">");
        curves::axis(&x, scale, out)?;
        out.push_str("</td><td></td></tr>\n</table></div>\n");
    }
    Ok(())
}

/// Large numbers without a fraction, which would say more than is known.
fn whole(value: f64) -> f64 {
    if value.abs() >= 100.0 { value.round() } else { value }
}

fn drawing(point: &Point, scale: Scale, out: &mut String) -> Result {
    let percent = |value: f64| 100.0 * scale.place(value);
    let hue = look::fill(if point.mark == Mark::Published { "" } else { &point.label });
    out.push_str("<svg aria-hidden=\"true\" overflow=\"visible\">");
    write!(out, "<line x1=\"0\" x2=\"100%\" y1=\"{MIDDLE}\" y2=\"{MIDDLE}\" stroke=\"var(--line)\"/>")?;
    if let Some((low, high)) = point.interval {
        let (low, high) = (percent(low), percent(high));
        write!(
            out,
            "<line x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=\"{MIDDLE}\" y2=\"{MIDDLE}\" stroke=\"var(--ink)\" stroke-width=\"3\"/>"
        )?;
    }
    let at = percent(point.value);
    match point.mark {
        // A shape of several corners cannot stand at a percentage; a drawing of its own can.
        Mark::Published => write!(
            out,
            "<svg x=\"{at:.2}%\" y=\"{MIDDLE}\" overflow=\"visible\"><path d=\"M-5 0L0-5L5 0L0 5Z\" fill=\"var(--quiet)\"/></svg>"
        )?,
        Mark::Modelled => write!(
            out,
            "<svg x=\"{at:.2}%\" y=\"{MIDDLE}\" overflow=\"visible\"><path d=\"M-5 0L0-5L5 0L0 5Z\" fill=\"none\" stroke=\"var(--ink)\" stroke-width=\"2\"/></svg>"
        )?,
        Mark::Measured => {
            write!(out, "<circle cx=\"{at:.2}%\" cy=\"{MIDDLE}\" r=\"5\" fill=\"{hue}\" stroke=\"var(--ink)\"/>")?
        }
        Mark::Emulated => {
            write!(
                out,
                "<circle cx=\"{at:.2}%\" cy=\"{MIDDLE}\" r=\"4\" fill=\"none\" stroke=\"var(--ink)\" stroke-width=\"2\"/>"
            )?;
        }
    }
    out.write_str("</svg>")
}
