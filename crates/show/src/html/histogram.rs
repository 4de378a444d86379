//! A histogram: bars of equal width in a drawing as wide as the page, limits across them.

use super::escape::Safe;
use super::look;
use base::figure::{Bin, Histogram};
use base::number;
use std::fmt::{Result, Write};

/// Ends of bins that have their value below them: as many as fit a narrow screen.
const MOST_MARKS: usize = 6;

/// Bars with their limits, values and legend.
pub(super) fn render(title: &str, drawn: &Histogram, out: &mut String) -> Result {
    write!(out, "<div class=\"plot bins\"><p class=\"quiet\">{}, logarithmic</p>", Safe(drawn.counted))?;
    write!(out, "<svg class=\"area\" role=\"img\" aria-label=\"{}\" overflow=\"visible\">", Safe(title))?;
    let mut words_on_top = String::new();
    for power in 0..=drawn.decades() {
        let count = 10_u64.saturating_pow(power);
        let at = 100.0 * (1.0 - drawn.height(count));
        write!(out, "<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{at:.2}%\" y2=\"{at:.2}%\"/>")?;
        // Words over bars have a rim: drawn behind all of them.
        write!(words_on_top, "<text x=\"2\" y=\"{at:.2}%\" dy=\"-4\">{}</text>", number::thousands(count))?;
    }
    let wide = 100.0 / drawn.bins.len().max(1) as f64;
    for (place, bin) in drawn.bins.iter().enumerate().filter(|(_, bin)| bin.total() > 0) {
        bar(drawn, bin, (wide * place as f64, wide), out)?;
    }
    out.push_str(&words_on_top);
    for limit in &drawn.limits {
        let at = 100.0 * drawn.place(limit.value);
        let (side, away) = if at > 60.0 { (" end", -5) } else { ("", 5) };
        write!(
            out,
            "<line class=\"limit\" x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"0\" y2=\"100%\"/>\
             <text class=\"limit{side}\" x=\"{at:.2}%\" dx=\"{away}\" y=\"12\">{}, {}</text>",
            Safe(&limit.label),
            Safe(words(drawn, limit.value))
        )?;
    }
    out.push_str("</svg>\n<svg class=\"axis\" aria-hidden=\"true\">");
    let every = drawn.bins.len().div_ceil(MOST_MARKS).max(1);
    for (place, end) in drawn.ends().enumerate().filter(|(place, _)| place % every == 0) {
        let at = wide * place as f64;
        let side = if place == 0 {
            " class=\"first\""
        } else if place == drawn.bins.len() {
            " class=\"last\""
        } else {
            ""
        };
        write!(
            out,
            "<line x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"0\" y2=\"5\"/><text{side} x=\"{at:.2}%\" y=\"18\">{}</text>",
            Safe(words(drawn, end))
        )?;
    }
    write!(out, "</svg><p class=\"quiet along\">{}</p><ul class=\"keys\">", Safe(&drawn.x.title))?;
    for kind in &drawn.kinds {
        write!(
            out,
            "<li><svg aria-hidden=\"true\"><rect width=\"100%\" height=\"100%\" fill=\"{}\"/></svg>{}</li>",
            look::fill(&kind.hue),
            Safe(&kind.label)
        )?;
    }
    out.write_str("</ul></div>\n")
}

/// One bin: as high as all of it, divided by the shares of its kinds.
fn bar(drawn: &Histogram, bin: &Bin, (at, wide): (f64, f64), out: &mut String) -> Result {
    let total = bin.total();
    let height = 100.0 * drawn.height(total);
    let mut top = 100.0 - height;
    let what = format!("{} to {}", words(drawn, bin.from), words(drawn, bin.to));
    for (kind, count) in drawn.kinds.iter().zip(&bin.counts).filter(|(_, count)| **count > 0) {
        let high = height * *count as f64 / total as f64;
        write!(
            out,
            "<rect class=\"bin\" x=\"{at:.2}%\" width=\"{wide:.2}%\" y=\"{top:.2}%\" height=\"{high:.2}%\" fill=\"{}\">\
             <title>{}: {} {}, {}</title></rect>",
            look::fill(&kind.hue),
            Safe(&what),
            number::thousands(*count),
            Safe(drawn.counted),
            Safe(&kind.label)
        )?;
        top += high;
    }
    Ok(())
}

fn words(drawn: &Histogram, value: f64) -> String {
    number::amount(value, drawn.x.unit).replace(".0 ", " ")
}
