//! How fast the guest worked before, while it was moved, and after; how far it fell short of its rate before is an area.

use super::super::work::{Phase, lost, of};
use super::{MOST_CURVES, time, whose};
use base::Figure;
use base::figure::{Axis, Curve, Curves, Drawing, Form, Limit, On};
use base::number::{duration, many, percent, thousands};
use facts::migrations::Migration;

/// `None` where no guest's work was counted.
pub(super) fn figure(migrations: &[Migration]) -> Option<Figure> {
    let counted = migrations.iter().enumerate().filter_map(|(run, migration)| {
        let phases = of(migration)?;
        let (lost_ns, length_ns) = lost(&phases).filter(|(lost_ns, ns)| lost_ns.is_finite() && *ns > 0)?;
        Some((run, migration, phases, lost_ns, length_ns))
    });
    let mut runs: Vec<(usize, &Migration, Vec<Phase>, f64, u64)> = counted.collect();
    // Its area is the one that is drawn.
    runs.sort_by(|a, b| b.3.total_cmp(&a.3));
    let left_out = runs.len().saturating_sub(MOST_CURVES) as u64;
    runs.truncate(MOST_CURVES);
    let (run, migration, phases, lost_ns, length_ns) = runs.first()?;
    let before = phases.first()?.rate()? * 1e9;
    let name = |run: usize| whose(run, migrations.len());
    let mut caption = format!(
        "Before, the guest counted {} in a second. While it was moved it lost {} of its work in {}, {} of that time{}. Shaded: how far it fell short of its rate before.",
        thousands(before.round() as u64),
        duration(lost_ns.max(0.0)),
        duration(*length_ns as f64),
        percent((lost_ns / *length_ns as f64).clamp(0.0, 1.0)),
        if runs.len() > 1 { format!(", in {}, the run that lost most", name(*run)) } else { String::new() }
    );
    if left_out > 0 {
        caption.push_str(&format!(" {} that lost less are not drawn.", many(left_out, "run")));
    }
    let curves = runs.iter().enumerate().map(|(place, (run, migration, phases, ..))| Curve {
        label: name(*run),
        form: if place == 0 { Form::StepsBelow(before) } else { Form::Steps },
        points: points(migration, phases),
    });
    let limit = |label: &str, on, value| Limit { label: label.into(), on, value, until: None };
    let of = if migrations.len() > 1 { format!("{} before", name(*run)) } else { "before".to_owned() };
    let mut limits = vec![limit(&of, On::Y, before)];
    let stopped = migration.stopped_ns.map(|ns| ns.saturating_sub(migration.began_ns) as f64);
    limits.extend(stopped.map(|at_ns| limit("stopped", On::X, at_ns)));
    Some(Figure {
        id: "work".into(),
        title: "Guest progress during the migration".into(),
        caption,
        in_terminals: migrations.len() == 1,
        drawing: Drawing::Curves(Curves {
            x: time("time since the migration began"),
            y: Axis { title: "counted in a second".into(), unit: "count", is_logarithmic: false },
            curves: curves.collect(),
            limits,
        }),
    })
}

/// The rate of each phase from its beginning on, but of what was before, and the last one's until its end.
fn points(migration: &Migration, phases: &[Phase]) -> Vec<(f64, f64)> {
    let since = |at_ns: u64| at_ns.wrapping_sub(migration.began_ns) as i64 as f64;
    let known = |phase: &Phase| Some((since(phase.from_ns), since(phase.to_ns), phase.rate()? * 1e9));
    let known: Vec<(f64, f64, f64)> = phases.iter().skip(1).filter_map(known).collect();
    let last = known.last().map(|(_, to_ns, rate)| (*to_ns, *rate));
    known.iter().map(|(from_ns, _, rate)| (*from_ns, *rate)).chain(last).collect()
}
