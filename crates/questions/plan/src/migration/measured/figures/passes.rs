//! What was really left as each pass began, down to what may be left when the guest is stopped.

use super::super::passes::{Pass, before_final, of};
use super::{MOST_CURVES, time, whose};
use crate::migration::model::memory::PAGE_BYTES;
use base::Figure;
use base::figure::{Axis, Curve, Curves, Drawing, Form, Limit, On};
use base::number::{bytes, counted, duration, many, thousands};
use facts::migrations::Migration;

/// A run by its number, and what was left as each of its passes began.
type Course<'m> = (usize, &'m Migration, Vec<(f64, f64)>);

/// `None` where no run has two passes of which that is known.
pub(super) fn figure(migrations: &[Migration]) -> Option<Figure> {
    let courses: Vec<Course<'_>> = migrations
        .iter()
        .enumerate()
        .map(|(run, migration)| (run, migration, points(&of(migration))))
        .filter(|(.., points)| points.len() > 1)
        .collect();
    let (run, first_migration, first) = courses.first()?;
    let left_out = courses.len().saturating_sub(MOST_CURVES) as u64;
    let drawn = || courses.iter().take(MOST_CURVES);
    let mut limits: Vec<Limit> = Vec::new();
    for limit in drawn().filter_map(|(_, migration, _)| limit(migration)) {
        if !limits.contains(&limit) {
            limits.push(limit);
        }
    }
    let mut caption = caption(whose(*run, migrations.len()), first_migration, first, limits.first());
    if left_out > 0 {
        caption.push_str(&format!(" {} more are not drawn.", many(left_out, "run")));
    }
    let curves = drawn().map(|(run, _, points)| Curve {
        label: whose(*run, migrations.len()),
        form: Form::Steps,
        points: points.clone(),
    });
    Some(Figure {
        id: "passes".into(),
        title: "What was left to send as each pass began".into(),
        caption,
        in_terminals: true,
        drawing: Drawing::Curves(Curves {
            x: time("time since the migration began"),
            y: Axis { title: "pages left".into(), unit: "count", is_logarithmic: true },
            curves: curves.collect(),
            limits,
        }),
    })
}

/// `Of 32,388 pages run 0 left 57 in 3 passes: below the 1,218 that go over in the downtime limit.` What the final one leaves decides nothing.
fn caption(whose: String, migration: &Migration, points: &[(f64, f64)], limit: Option<&Limit>) -> String {
    let [(_, whole), left @ ..] = points else { return String::new() };
    let passes = before_final(migration).map_or(left.len(), |before| left.len().min(before as usize));
    let Some((_, last)) = passes.checked_sub(1).and_then(|last| left.get(last)) else { return String::new() };
    let held = match limit {
        Some(limit) if *last <= limit.value => "below",
        Some(_) => "above",
        None => "",
    };
    let limit =
        limit.map(|limit| format!(": {held} the {} that go over in the downtime limit", thousands(limit.value as u64)));
    format!(
        "Of {} pages {whose} left {} in {}{}.",
        thousands(*whole as u64),
        thousands(*last as u64),
        counted(passes as u64, "pass", "passes"),
        limit.unwrap_or_default()
    )
}

/// When a pass began, and how many pages were left then: of the first one all that it sent, of the others what the one before left.
/// A pass of which that is not known is left out, and so is what is left when all is over: a logarithm has no place for nothing.
fn points(passes: &[Pass]) -> Vec<(f64, f64)> {
    let whole = passes.first().filter(|first| first.number == 0);
    let whole = whole.and_then(|first| Some((first.start_ns, first.pages? + first.zero_pages?)));
    let others = passes.iter().filter_map(|pass| Some((pass.end_ns, pass.dirty_pages?)));
    let all = whole.into_iter().chain(others).filter(|(_, left)| *left > 0);
    all.map(|(at_ns, left)| (at_ns as f64, left as f64)).collect()
}

/// How many pages go over in the downtime limit, at the rate that QEMU was told to keep below.
fn limit(migration: &Migration) -> Option<Limit> {
    let (limit_ns, bytes_per_s) = (migration.downtime_limit_ns? as f64, migration.max_bytes_per_s? as f64);
    Some(Limit {
        label: format!("pages sent in {} at {}/s", duration(limit_ns), bytes(bytes_per_s)),
        on: On::Y,
        value: (limit_ns / 1e9 * bytes_per_s / PAGE_BYTES).round(),
        until: None,
    })
}
