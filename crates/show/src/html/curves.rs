//! Curves and cells: SVG as wide as the page is, with words that keep their size.

use super::escape::Safe;
use base::figure::{Axis, Curve, Curves, Form, Heat, Limit, Mark, On, Scale};
use base::number;
use std::fmt::{Result, Write};

/// Curves are drawn in a square of this size and stretched; their strokes are not.
const SQUARE: f64 = 1_000.0;

/// How many dashes tell curves apart: hue means level and nothing else. `style.css` has them, and so has the dashboard.
pub(super) const DASHES: usize = 6;

/// A limit that ends before so many per cent of the page has its words behind its end.
const SHORT: f64 = 60.0;

/// How many per cent of a wide page a letter of a mark takes.
const LETTER: f64 = 0.9;

/// Marks with more characters crowd a narrow screen, which then shows every other one.
const LONG: usize = 8;

/// More values along the page than this are a curve, and no list of what was measured.
const FEW: usize = 8;

/// Words of marks that are nearer than so many per cent of the page touch each other.
const APART: f64 = 6.0;

/// Outlines of values of ours: of several curves of them, each has its own. `ui/src/views/Sign.tsx` has the same.
const OURS: [&str; 6] = [
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
    "M0-5L4.5 3H-4.5Z",
    "M-3.5-3.5H3.5V3.5H-3.5Z",
    "M0 5L4.5-3H-4.5Z",
    "M5 0L-3 4.5V-4.5Z",
    "M-5 0L3 4.5V-4.5Z",
];

/// All others are diamonds, and what is in them tells their curves apart.
const INSIDE: [&str; 6] = ["", "M0-4V4", "M-4 0H4", "M0-4V4M-4 0H4", "M-2-2L2 2", "M-2 2L2-2"];

/// Curves with their axes, limits and legend.
pub(super) fn render(title: &str, curves: &Curves, out: &mut String) -> Result {
    let (x, y) = curves.scales();
    write!(out, "<div class=\"plot\"><p class=\"quiet\">{}</p>", Safe(&curves.y.title))?;
    write!(out, "<svg class=\"area\" role=\"img\" aria-label=\"{}\" overflow=\"visible\">", Safe(title))?;
    // No line crosses words.
    let mut words_on_top = String::new();
    for mark in y.marks() {
        let at = up(y, mark);
        write!(out, "<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{at:.2}%\" y2=\"{at:.2}%\"/>")?;
        let text = Safe(words(&curves.y, mark)).to_string();
        write!(words_on_top, "<text x=\"2\" y=\"{at:.2}%\" dy=\"-4\">{text}</text>")?;
    }
    let whole = "width=\"100%\" height=\"100%\"";
    write!(out, "<svg viewBox=\"0 0 {SQUARE} {SQUARE}\" preserveAspectRatio=\"none\" {whole} overflow=\"visible\">")?;
    for curve in &curves.curves {
        if let Form::StepsBelow(value) = curve.form {
            out.push_str(&missing(curve, value, x, y));
        }
    }
    // The first one is drawn last, on top.
    for (place, curve) in curves.curves.iter().enumerate().rev() {
        if !matches!(curve.form, Form::Points(_)) {
            write!(out, "<path class=\"curve c{}\" d=\"{}\"/>", place % DASHES, path(curve, x, y))?;
        }
    }
    out.push_str("</svg>");
    for limit in &curves.limits {
        let text = Safe(limit_words(curves, limit)).to_string();
        match limit.on {
            On::X => {
                let at = across(x, limit.value);
                let top = limit.until.map_or(0.0, |end| up(y, end));
                write!(out, "<line class=\"limit\" x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"{top:.2}%\" y2=\"100%\"/>")?;
                write!(words_on_top, "<text class=\"limit\" x=\"{at:.2}%\" dx=\"5\" y=\"12\">{text}</text>")?;
            }
            On::Y => {
                let at = up(y, limit.value);
                let end = limit.until.map_or(100.0, |end| across(x, end));
                write!(out, "<line class=\"limit\" x1=\"0\" x2=\"{end:.2}%\" y1=\"{at:.2}%\" y2=\"{at:.2}%\"/>")?;
                // Words that have no room before a line's end stand behind it.
                let (side, away, up) = if end > SHORT { (" end", 0, -5) } else { ("", 6, 4) };
                write!(
                    words_on_top,
                    "<text class=\"limit{side}\" x=\"{end:.2}%\" dx=\"{away}\" y=\"{at:.2}%\" dy=\"{up}\">{text}</text>"
                )?;
            }
        }
    }
    out.push_str(&words_on_top);
    for (place, curve) in curves.curves.iter().enumerate() {
        if let Form::Points(mark) = curve.form {
            for (at, value) in &curve.points {
                let [across, up] = [across(x, *at), up(y, *value)];
                write!(
                    out,
                    "<svg x=\"{across:.2}%\" y=\"{up:.2}%\" overflow=\"visible\">{}</svg>",
                    shape(mark, curves, place)
                )?;
            }
        }
    }
    out.push_str("</svg>\n");
    marked(&curves.x, x, &marks_along(curves, x), out)?;
    legend(curves, out)?;
    out.write_str("</div>\n")
}

/// Whether the words of a mark touch those of the last one, which end with the axis, on one of a third of the page.
fn is_near(marks: &[(f64, String)], place: usize) -> bool {
    let Some(((last, last_words), [.., (at, words)])) = marks.split_last() else { return false };
    let letters = last_words.len() as f64 + words.len() as f64 / 2.0;
    place + 2 == marks.len() && *last > 97.0 && at + letters * 3.0 * LETTER > *last
}

/// The axis along the page, below what it measures.
pub(super) fn axis(axis: &Axis, scale: Scale, out: &mut String) -> Result {
    marked(axis, scale, &scale.marks(), out)
}

fn marked(axis: &Axis, scale: Scale, marks: &[f64], out: &mut String) -> Result {
    out.push_str("<svg class=\"axis\" aria-hidden=\"true\">");
    let marks: Vec<(f64, String)> = marks.iter().map(|mark| (across(scale, *mark), words(axis, *mark))).collect();
    let crowds = marks.iter().any(|(_, words)| words.len() > LONG);
    let mut ends_at = f64::NEG_INFINITY;
    for (place, (at, words)) in marks.iter().enumerate() {
        let end = if *at < 2.0 {
            "first"
        } else if *at > 97.0 {
            "last"
        } else {
            ""
        };
        let between = if crowds && place % 2 == 1 { " between" } else { "" };
        let near = if is_near(&marks, place) { " near" } else { "" };
        // A mark too near to the one before has its line alone.
        let half = words.len() as f64 * LETTER / 2.0;
        let words = if at - half < ends_at { "" } else { words.as_str() };
        if !words.is_empty() {
            ends_at = at + half;
        }
        write!(
            out,
            "<line x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"0\" y2=\"5\"/>\
             <text class=\"{end}{between}{near}\" x=\"{at:.2}%\" y=\"18\">{}</text>",
            Safe(words)
        )?;
    }
    write!(out, "</svg><p class=\"quiet along\">{}</p>", Safe(&axis.title))
}

/// The marks of the axis along the page: where curves have a few whole numbers there, such as sizes of batches, these alone.
fn marks_along(curves: &Curves, scale: Scale) -> Vec<f64> {
    let axis = &curves.x;
    let mut own: Vec<f64> = curves.curves.iter().flat_map(|curve| &curve.points).map(|point| point.0).collect();
    own.sort_by(f64::total_cmp);
    own.dedup();
    let are_whole = own.iter().all(|at| *at > 0.0 && at.fract() == 0.0);
    let is_list = axis.is_logarithmic && axis.unit == "count" && are_whole && (1..=FEW).contains(&own.len());
    let are_apart = own.windows(2).all(|pair| across(scale, pair[1]) - across(scale, pair[0]) >= APART);
    if is_list && are_apart { own } else { scale.marks() }
}

fn legend(curves: &Curves, out: &mut String) -> Result {
    out.push_str("<ul class=\"keys\">");
    for (place, curve) in curves.curves.iter().enumerate() {
        let drawn = match curve.form {
            Form::Points(mark) => {
                format!("<svg x=\"50%\" y=\"50%\" overflow=\"visible\">{}</svg>", shape(mark, curves, place))
            }
            Form::Line | Form::Steps | Form::StepsBelow(_) => {
                format!("<line class=\"curve c{}\" x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/>", place % DASHES)
            }
        };
        let mark = if let Form::Points(mark) = curve.form { format!(" ({})", mark.name()) } else { String::new() };
        write!(out, "<li><svg aria-hidden=\"true\">{drawn}</svg>{}{mark}</li>", Safe(&curve.label))?;
    }
    if curves.curves.iter().any(|curve| matches!(curve.form, Form::StepsBelow(_))) {
        let drawn = "<rect class=\"missing\" width=\"100%\" height=\"100%\"/>";
        write!(out, "<li><svg aria-hidden=\"true\">{drawn}</svg>missing</li>")?;
    }
    out.write_str("</ul>")
}

/// How many curves of the same mark stand before this one.
fn nth(curves: &Curves, place: usize) -> usize {
    let form = curves.curves[place].form;
    curves.curves[..place].iter().filter(|curve| curve.form == form).count()
}

/// A single number: ours by an outline, a published one as a diamond; an emulated one and a modelled one are hollow.
fn shape(mark: Mark, curves: &Curves, place: usize) -> String {
    let nth = nth(curves, place);
    let look = if place == 0 { " c0" } else { "" };
    let (outline, inside) = match mark {
        Mark::Measured | Mark::Emulated => (OURS[nth % OURS.len()], ""),
        Mark::Published | Mark::Modelled => ("M-5 0L0-5L5 0L0 5Z", INSIDE[nth % INSIDE.len()]),
    };
    let (class, within) = match mark {
        Mark::Measured | Mark::Published => ("dot", "cut"),
        Mark::Emulated | Mark::Modelled => ("curve", "curve"),
    };
    let inside =
        if inside.is_empty() { String::new() } else { format!("<path class=\"{within}{look}\" d=\"{inside}\"/>") };
    format!("<path class=\"{class}{look}\" d=\"{outline}\"/>{inside}")
}

/// SVG path data in the square.
fn path(curve: &Curve, x: Scale, y: Scale) -> String {
    let mut data = String::new();
    let mut before = None;
    for (at, value) in &curve.points {
        let [across, up] = [x.place(*at) * SQUARE, (1.0 - y.place(*value)) * SQUARE];
        // Writing into a text cannot fail.
        let _ = match (before.replace(up), curve.form) {
            (None, _) => write!(data, "M{across:.1} {up:.1}"),
            (Some(_), Form::Steps | Form::StepsBelow(_)) => write!(data, "H{across:.1}V{up:.1}"),
            (Some(_), Form::Line | Form::Points(_)) => write!(data, "L{across:.1} {up:.1}"),
        };
    }
    data
}

/// What is missing up to `value`, as an area.
fn missing(curve: &Curve, value: f64, x: Scale, y: Scale) -> String {
    let points = curve.points.iter().map(|(at, own)| (*at, own.min(value))).collect();
    let lower = Curve { points, ..curve.clone() };
    let (Some((first, _)), top) = (curve.points.first(), (1.0 - y.place(value)) * SQUARE) else { return String::new() };
    let begin = x.place(*first) * SQUARE;
    format!("<path class=\"missing\" d=\"{}V{top:.1}H{begin:.1}Z\"/>", path(&lower, x, y))
}

/// Cells: their strength is how much there is, and those of which nothing is known are hatched.
pub(super) fn heat(title: &str, heat: &Heat, out: &mut String) -> Result {
    write!(out, "<div class=\"plot heat\"><table aria-label=\"{}\">", Safe(title))?;
    for row in &heat.rows {
        write!(out, "<tr><th scope=\"row\">{}</th><td><svg>", Safe(&row.label))?;
        let wide = 100.0 / row.cells.len().max(1) as f64;
        for (place, cell) in row.cells.iter().enumerate() {
            let at = wide * place as f64;
            let (fill, strength, words) = match cell {
                None => ("url(#p-unknown)", 1.0, "not known".to_owned()),
                Some(value) => {
                    let share = (value / heat.most.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
                    // What is there at all is seen.
                    let strength = if *value > 0.0 { 0.15 + 0.85 * share } else { 0.0 };
                    ("var(--ink)", strength, number::amount(*value, heat.unit))
                }
            };
            let begin = heat.ends.0 + (heat.ends.1 - heat.ends.0) * place as f64 / row.cells.len() as f64;
            let when = number::amount(begin, heat.x.unit);
            write!(
                out,
                "<rect x=\"{at:.3}%\" width=\"{wide:.3}%\" height=\"100%\" fill=\"{fill}\" fill-opacity=\"{strength:.2}\">\
                 <title>{}: {}</title></rect>",
                Safe(when),
                Safe(words)
            )?;
        }
        out.push_str("</svg></td></tr>\n");
    }
    let [from, to] = [heat.ends.0, heat.ends.1].map(|value| number::amount(value, heat.x.unit));
    let most = number::amount(heat.most, heat.unit);
    writeln!(
        out,
        "</table><p class=\"quiet\">{}, {} to {}; {}, the strongest from {} on; hatched: not known</p></div>",
        Safe(&heat.x.title),
        Safe(from),
        Safe(to),
        Safe(&heat.what),
        Safe(most)
    )
}

fn words(axis: &Axis, value: f64) -> String {
    number::amount(value, axis.unit).replace(".0 ", " ")
}

fn limit_words(curves: &Curves, limit: &Limit) -> String {
    let axis = if limit.on == On::X { &curves.x } else { &curves.y };
    format!("{}, {}", limit.label, words(axis, limit.value))
}

fn across(scale: Scale, value: f64) -> f64 {
    100.0 * scale.place(value)
}

fn up(scale: Scale, value: f64) -> f64 {
    100.0 * (1.0 - scale.place(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(unit: &'static str, values: &[f64]) -> Curves {
        let axis = Axis { title: String::new(), unit, is_logarithmic: true };
        let curve = |mark| Curve {
            label: String::new(),
            form: Form::Points(mark),
            points: values.iter().map(|at| (*at, 1.0)).collect(),
        };
        let curves = [Mark::Measured, Mark::Modelled, Mark::Measured, Mark::Modelled].map(curve).into();
        Curves { x: axis.clone(), y: axis, curves, limits: Vec::new() }
    }

    #[test]
    fn a_few_whole_numbers_that_were_measured_are_the_marks() {
        let marks = |unit, values: &[f64]| {
            let curves = measured(unit, values);
            marks_along(&curves, curves.scales().0)
        };
        assert_eq!(marks("count", &[32.0, 1.0, 8.0, 64.0]), [1.0, 8.0, 32.0, 64.0]);
        assert_eq!(marks("count", &[32.0]), [32.0]);
        assert_eq!(
            marks("Mpps", &[1.0, 8.0, 32.0]),
            [1.0, 2.0, 5.0, 10.0, 20.0, 50.0],
            "what is no list has round numbers"
        );
        assert_eq!(marks("count", &[1.0, 8.0, 9.0]), [1.0, 2.0, 5.0, 10.0], "words would touch each other");
    }

    #[test]
    fn curves_of_points_are_told_apart() {
        let curves = measured("count", &[1.0]);
        let mut shapes: Vec<String> = curves
            .curves
            .iter()
            .enumerate()
            .map(|(place, curve)| {
                let Form::Points(mark) = curve.form else { panic!("points") };
                shape(mark, &curves, place).replace(" c0", "")
            })
            .collect();
        shapes.sort();
        shapes.dedup();
        assert_eq!(shapes.len(), 4, "{shapes:?}");
    }
}
