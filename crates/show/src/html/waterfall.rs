//! Steps that use up a whole: each bar begins where the one above it ends; what would come back is its lighter end.

use super::escape::Safe;
use super::look;
use base::figure::{Step, Waterfall};
use base::number;
use std::fmt::{Result, Write};

/// Wholes drawn open; the others wait behind a line that says how many they are.
const OPEN: usize = 2;

/// The narrowest step, in percent: what is there at all is seen.
const NARROWEST: f64 = 0.3;

pub(super) fn render(all: &[Waterfall], out: &mut String) -> Result {
    for (index, whole) in all.iter().enumerate() {
        if index == OPEN {
            let more = number::thousands((all.len() - index) as u64);
            writeln!(out, "<details><summary>{more} more like these, of a VM or a vCPU each</summary>")?;
        }
        one(whole, out)?;
    }
    if all.len() > OPEN {
        out.push_str("</details>\n");
    }
    out.write_str(
        "<ul class=\"keys\"><li><svg aria-hidden=\"true\"><rect width=\"100%\" height=\"100%\" fill=\"url(#p-plain)\"/></svg>stays</li>\
         <li><svg aria-hidden=\"true\"><rect class=\"back\" width=\"100%\" height=\"100%\"/></svg>would come back, at most</li></ul>\n",
    )
}

fn one(whole: &Waterfall, out: &mut String) -> Result {
    writeln!(out, "<div class=\"bars fall\"><h4>{}</h4>\n<table>", Safe(&whole.title))?;
    let mut begins = 0.0;
    for step in &whole.steps {
        row(step, begins, out)?;
        begins += step.share;
    }
    out.write_str("</table></div>\n")
}

fn row(step: &Step, begins: f64, out: &mut String) -> Result {
    let (from, wide) = (100.0 * begins, (100.0 * step.share).max(NARROWEST));
    let back = (100.0 * step.given_back()).min(wide);
    write!(
        out,
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"bar\"><svg aria-hidden=\"true\">\
         <rect x=\"{from:.2}%\" width=\"{wide:.2}%\" height=\"100%\" fill=\"{}\"/>",
        Safe(&step.label),
        number::percent(step.share),
        look::fill(&step.hue)
    )?;
    if back > 0.0 {
        write!(out, "<rect class=\"back\" x=\"{:.2}%\" width=\"{back:.2}%\" height=\"100%\"/>", from + wide - back)?;
    }
    writeln!(out, "</svg></td><td class=\"note\">{}</td></tr>", Safe(step.note()))
}
