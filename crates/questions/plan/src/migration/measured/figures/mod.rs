//! The figures of recorded migrations: passes, what was dark and why, the guest's work, and what was said before.

mod dark;
mod passes;
mod said;
mod work;

pub(super) use said::figure as held;

use super::residuals::Held;
use super::waits::Splits;
use base::Figure;
use base::figure::Axis;
use facts::migrations::Migration;

/// Curves that are told apart.
const MOST_CURVES: usize = 6;

pub(super) fn figures(migrations: &[Migration], splits: &Splits, said: &[Held<'_>]) -> Vec<Figure> {
    let figures =
        [passes::figure(migrations), dark::figure(migrations, splits), work::figure(migrations), held("run", said)];
    figures.into_iter().flatten().collect()
}

fn time(title: &str) -> Axis {
    Axis { title: title.into(), unit: "ns", is_logarithmic: false }
}

/// `run 2`, or what a recording of one is about.
fn whose(run: usize, runs: usize) -> String {
    if runs > 1 { format!("run {run}") } else { "the migration".to_owned() }
}
