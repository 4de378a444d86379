//! Where a difference comes from, as a staircase: from the sum before, part by part, to the sum after.
//!
//! ```text
//! before                 41.2 %  ████████████████████
//! IO, VMM in userspace    +8.2                       ▒▒▒▒
//! VMREAD of L1            -7.5                       ▒▒▒▒      ends where the next one begins
//! 9 others                +3.1                       ▒▒
//! after                  55.9 %  ███████████████████████████
//! ```
//! The steps are rows of the table; they add up to the difference, as those do.

use super::{Cause, Causes, Measured};
use base::Figure;
use base::figure::{Axis, Drawing, SpanGroup, SpanRow, Stretch};
use base::number::{amount, counted};

/// Steps that are drawn one by one; the others are one step.
const STEPS: usize = 10;

/// The staircase; `None` where there is nothing to step over, and of a migration, whose own pictures show it.
pub(super) fn staircase(causes: &Causes, id: String) -> Option<Figure> {
    let (title, axis, unit) = match &causes.measured {
        Measured::Busy => ("Where the difference of busy time comes from".to_owned(), "of the vCPUs' time", "share"),
        Measured::Lost => {
            ("Where the difference of what the host took comes from".to_owned(), "of the vCPUs' time", "share")
        }
        Measured::PerWork(work) => {
            (format!("Where the difference of each {work} comes from"), "vCPU time for each", "ns")
        }
        Measured::Dark => return None,
    };
    let stepped: Vec<&Cause> = causes.list.iter().filter(|cause| cause.difference() != 0.0).collect();
    let (drawn, others) = stepped.split_at(stepped.len().min(STEPS));
    if drawn.is_empty() {
        return None;
    }
    let (before, after) = (causes.all.before.amount, causes.all.after.amount);
    let mut rows = vec![whole("before", before, unit)];
    let mut at = before;
    let mut steps: Vec<(String, f64, (&str, &str), String)> = Vec::new();
    for cause in drawn {
        let note = format!("{} before, {} after", amount(cause.before.amount, unit), amount(cause.after.amount, unit));
        steps.push((cause.part.to_string(), cause.difference(), (&cause.kind.0, &cause.kind.1), note));
    }
    if !others.is_empty() {
        let sum: f64 = others.iter().map(|cause| cause.difference()).sum();
        steps.push((counted(others.len() as u64, "other", "others"), sum, ("", "others"), String::new()));
    }
    // Of a whole there is no more than all of it: what takes less steps back before others take more.
    if unit == "share" {
        steps.sort_by_key(|(_, difference, ..)| *difference > 0.0);
    }
    for (label, difference, kind, note) in steps {
        rows.push(step(causes, &label, difference, at, kind, note));
        at += difference;
    }
    rows.push(whole("after", after, unit));
    let x = Axis { title: axis.into(), unit, is_logarithmic: false };
    let caption = format!(
        "{}. Each step begins where the one above ends: one to the right takes more than before, one to the left less.",
        causes.whole()
    );
    let drawing = Drawing::Spans(vec![SpanGroup {
        title: "From before to after, part by part".into(),
        x,
        rows,
        limits: Vec::new(),
    }]);
    Some(Figure { id, title, caption, in_terminals: false, drawing })
}

fn whole(label: &str, sum: f64, unit: &str) -> SpanRow {
    let stretch = Stretch { from: 0.0, to: Some(sum), what: "in all".into(), hue: String::new() };
    SpanRow {
        label: label.into(),
        value: amount(sum, unit),
        note: String::new(),
        stretches: vec![stretch],
        signs: vec![],
    }
}

fn step(causes: &Causes, label: &str, by: f64, at: f64, (hue, what): (&str, &str), note: String) -> SpanRow {
    let (from, to) = (at.min(at + by).max(0.0), at.max(at + by));
    SpanRow {
        label: label.into(),
        value: causes.measured.difference(by),
        note,
        stretches: vec![Stretch { from, to: Some(to), what: what.into(), hue: hue.into() }],
        signs: Vec::new(),
    }
}
