//! Marks of a time axis: at round numbers, a handful, as percentages of its length.

use super::escape::Safe;
use base::number;
use std::fmt::{Result, Write};

/// Marks along an axis of `length_ns`, which starts at `from_ns`, at 1, 2 or 5 times a power of ten.
fn marks(from_ns: u64, length_ns: u64) -> Vec<u64> {
    let step = (0..19u32)
        .flat_map(|power| [1, 2, 5].map(|times| times * 10u64.pow(power)))
        .find(|step| length_ns / step <= 8)
        .unwrap_or(u64::MAX);
    let end = from_ns.saturating_add(length_ns);
    let first = from_ns.div_ceil(step).checked_mul(step);
    std::iter::successors(first, |at| at.checked_add(step)).take_while(|at| *at <= end).take(10).collect()
}

/// A time axis across a drawing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    /// What the first mark could say.
    pub from_ns: u64,
    /// Time before that, which is drawn and has no marks.
    pub lead_ns: u64,
    pub length_ns: u64,
}

impl Axis {
    /// Where an instant of the drawing is, in percent of its width.
    pub(super) fn percent(&self, ns: u64) -> f64 {
        100.0 * ns as f64 / self.length_ns.max(1) as f64
    }

    /// Draws it, below what it measures.
    pub(super) fn render(&self, out: &mut String) -> Result {
        write!(out, "<svg class=\"axis\" aria-hidden=\"true\">")?;
        for at in marks(self.from_ns, self.length_ns.saturating_sub(self.lead_ns)) {
            let x = self.percent(at - self.from_ns + self.lead_ns);
            let end = match x {
                x if x < 2.0 => " class=\"first\"",
                x if x > 97.0 => " class=\"last\"",
                _ => "",
            };
            write!(
                out,
                "<line x1=\"{x:.3}%\" x2=\"{x:.3}%\" y1=\"0\" y2=\"5\"/><text{end} x=\"{x:.3}%\" y=\"18\">{}</text>",
                Safe(short(at))
            )?;
        }
        out.write_str("</svg>\n")
    }
}

/// `200 us` and not `200.0 us`.
fn short(ns: u64) -> String {
    if ns == 0 { "0".to_owned() } else { number::duration(ns as f64).replace(".0 ", " ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_few() {
        assert_eq!(
            marks(0, 638_000_000),
            [0, 100_000_000, 200_000_000, 300_000_000, 400_000_000, 500_000_000, 600_000_000]
        );
        assert_eq!(marks(7, 10), [8, 10, 12, 14, 16]);
        assert_eq!(marks(0, 0), [0]);
        assert!(marks(u64::MAX - 5, 5).len() <= 10);
        assert_eq!([0, 200_000, 1_500].map(short), ["0", "200 us", "1.5 us"]);
    }
}
