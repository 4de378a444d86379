//! What does a migration tell of the working set? Each pass took a time, and left what the guest dirtied in it.

use super::super::tables::WORKING_SET;
use super::passes;
use base::{Cell, Table};
use facts::migrations::{Migration, Migrations};

struct Window {
    run: usize,
    pass: u64,
    window_ns: u64,
    pages: u64,
}

/// Passes of all runs of which it is known, but for the last one of each, in which the guest stood still, and those in which it was throttled.
fn windows(migrations: &[Migration]) -> impl Iterator<Item = Window> {
    migrations.iter().enumerate().flat_map(|(run, migration)| {
        let mut passes = passes::of(migration);
        passes.pop();
        passes.into_iter().filter(|pass| pass.throttle.unwrap_or(0.0) == 0.0).filter_map(move |pass| {
            let stopped_ns = migration.stopped_ns.map_or(u64::MAX, |at_ns| at_ns.saturating_sub(migration.began_ns));
            let window_ns =
                pass.end_ns.min(stopped_ns).checked_sub(pass.start_ns).filter(|window_ns| *window_ns > 0)?;
            Some(Window { run, pass: pass.number, window_ns, pages: pass.dirtied_pages? })
        })
    })
}

/// Windows in seconds and the pages that were dirtied in each, as [`WorkingSet`](super::super::model::working_set) takes them.
pub fn points(migrations: &Migrations) -> Vec<(f64, f64)> {
    windows(&migrations.list).map(|window| (window.window_ns as f64 / 1e9, window.pages as f64)).collect()
}

pub(super) fn table(migrations: &[Migration]) -> Table {
    let mut table = Table::new(&WORKING_SET);
    let mut windows: Vec<Window> = windows(migrations).collect();
    windows.sort_by_key(|window| window.window_ns);
    for Window { run, pass, window_ns, pages } in windows {
        let by = format!("pass {pass} of run {run}");
        table.push(vec![window_ns.into(), pages.into(), by.into(), Cell::Missing, Cell::Missing]);
    }
    table
}
