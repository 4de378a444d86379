//! One episode as a sequence over the levels, to scale.
//!
//! ```text
//!  L2  ▇▇┐                                          ┌▇▇      a step is a box in its level's row, as wide as it lasted;
//!  L1    │      ┌▇▇▇┐        ┌▇▇┐                   │        lines join it to the next
//!  L0    └▇▇▇▇▇▇┘   └▇VMREAD▇┘  └▇▇▇▇▇VMRESUME▇▇▇▇▇▇┘
//!        0        10 us         20 us       30 us
//! ```

use super::axis::Axis;
use super::escape::Safe;
use super::look;
use base::number;
use std::fmt::{Result, Write};

/// A step with the hue of its state.
pub(super) struct Step {
    /// Row: `L2`, `L1`, `L0`, `VMM`.
    pub lane: String,
    /// What happens; empty where the row says it all.
    pub label: String,
    /// Name of the state or level that decides its look.
    pub hue: String,
    /// Start after the drawing's.
    pub at_ns: u64,
    pub length_ns: u64,
    /// True for what was before the episode and after it: drawn, so that one sees where it comes from and goes to.
    pub around: bool,
}

/// Boxes drawn at most: an episode of more is a chain that was interrupted for long, and would be a smear.
const MOST_STEPS: usize = 400;

/// Height of a row, and of the box in it. Words that stand upright need the box's height.
const ROW: usize = 74;
const BOX: usize = 64;

/// At a drawing 1,000 pixels wide, a letter is about this many of its percents wide; upright words need one line.
const LETTER_PERCENT: f64 = 0.66;
const LINE_PERCENT: f64 = 1.15;

/// Draws the steps, and lists them in words below. The episode begins `lead_ns` after the drawing does.
pub(super) fn render(steps: &[Step], lead_ns: u64, out: &mut String) -> Result {
    let (all, steps) = (steps.len(), &steps[..steps.len().min(MOST_STEPS)]);
    let length_ns = steps.iter().map(|step| step.at_ns.saturating_add(step.length_ns)).max().unwrap_or(0);
    let axis = Axis { from_ns: 0, lead_ns, length_ns };
    let mut lanes: Vec<&str> = Vec::new();
    for step in steps {
        if !lanes.contains(&step.lane.as_str()) {
            lanes.push(&step.lane);
        }
    }
    // Innermost first, as one falls from L2 towards L0; `VMM` stands below the levels.
    lanes.sort_by(|a, b| (!a.starts_with('L')).cmp(&!b.starts_with('L')).then_with(|| b.cmp(a)));
    let height = lanes.len() * ROW;
    out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Steps to scale\"><div class=\"ladder\"><div class=\"rows\">");
    for lane in &lanes {
        write!(out, "<div>{}</div>", Safe(lane))?;
    }
    write!(
        out,
        "</div><div class=\"drawing\"><svg height=\"{height}\" role=\"img\" aria-label=\"{} steps, listed below\">",
        steps.iter().filter(|step| !step.around).count()
    )?;
    let row = |step: &Step| lanes.iter().position(|lane| *lane == step.lane).unwrap_or(0) * ROW;
    for index in 0..lanes.len() {
        let y = index * ROW + ROW / 2;
        write!(out, "<line class=\"level\" x1=\"0\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>")?;
    }
    for pair in steps.windows(2) {
        let (x, from, to) = (axis.percent(pair[1].at_ns), row(&pair[0]) + ROW / 2, row(&pair[1]) + ROW / 2);
        if from != to {
            write!(out, "<line class=\"join\" x1=\"{x:.3}%\" x2=\"{x:.3}%\" y1=\"{from}\" y2=\"{to}\"/>")?;
        }
    }
    for step in steps {
        step_box(step, row(step) + (ROW - BOX) / 2, axis, out)?;
    }
    out.push_str("</svg>");
    axis.render(out)?;
    out.push_str("</div></div></div>\n");
    if all > MOST_STEPS {
        writeln!(
            out,
            "<p class=\"quiet\">The first {MOST_STEPS} of {} steps are drawn.</p>",
            number::thousands(all as u64)
        )?;
    }
    in_words(steps, lead_ns, out)
}

fn step_box(step: &Step, y: usize, axis: Axis, out: &mut String) -> Result {
    let lasts = if step.around { String::new() } else { format!(": {}", number::duration(step.length_ns as f64)) };
    let (x, width) = (axis.percent(step.at_ns), axis.percent(step.length_ns));
    write!(
        out,
        "<rect class=\"step\" x=\"{x:.3}%\" y=\"{y}\" width=\"{width:.3}%\" height=\"{BOX}\" fill=\"{}\"><title>{}{lasts}</title></rect>",
        look::fill(&step.hue),
        Safe(&step.label)
    )?;
    if step.around {
        return Ok(());
    }
    // `L1 guest` in row `L1` says nothing new: it is written where there is room, and nobody has to turn the head.
    let told = step.label.starts_with(&step.lane);
    let middle = (x + width / 2.0, y + BOX / 2);
    let letters = step.label.chars().count() as f64;
    if letters * LETTER_PERCENT + 0.6 < width {
        write!(out, "<text x=\"{:.3}%\" y=\"{}\">{}</text>", middle.0, middle.1 + 4, Safe(&step.label))?;
    } else if !told && width > LINE_PERCENT && letters <= 8.0 {
        write!(out, "<text class=\"upright\" x=\"{:.3}%\" y=\"{}\">{}</text>", middle.0, middle.1, Safe(&step.label))?;
    }
    Ok(())
}

/// The same for those who read, search or cannot see it.
fn in_words(steps: &[Step], lead_ns: u64, out: &mut String) -> Result {
    out.push_str("<details><summary>step by step</summary><div class=\"scroll\"><table><thead><tr><th class=\"n\">at</th><th class=\"n\">lasts</th><th>level</th><th>what</th></tr></thead><tbody>\n");
    for step in steps.iter().filter(|step| !step.around) {
        let at_ns = step.at_ns.saturating_sub(lead_ns);
        writeln!(
            out,
            "<tr><td class=\"n\" data-v=\"{}\">{}</td><td class=\"n\" data-v=\"{}\">{}</td><td>{}</td><td>{}</td></tr>",
            at_ns,
            Safe(number::duration(at_ns as f64)),
            step.length_ns,
            Safe(number::duration(step.length_ns as f64)),
            Safe(&step.lane),
            Safe(&step.label)
        )?;
    }
    out.write_str("</tbody></table></div></details>\n")
}
