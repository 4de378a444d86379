//! Was what was said before a run right?

use crate::facts::migrations::{Migration, Migrations};
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};

const F64: ColumnType = ColumnType::F64;

pub const RESIDUALS: TableSpec = TableSpec {
    section: "migration",
    name: "residuals",
    version: 1,
    row: "What was said of one quantity before one run, and what it was: ns, or a count. Null is never; `passes` counts those before the final one.",
    columns: &[
        Column::key_of("run", ColumnType::U64),
        Column::key("what"),
        Column::value("predicted_low", "", F64),
        Column::value("predicted_high", "", F64),
        Column::value("actual", "", F64),
        Column::value("inside", "", ColumnType::Bool),
        Column::value("naive", "", F64),
        Column::text("unit"),
    ],
    shown: Some(Shown::of(
        "What was said before, and what it was",
        &[
            ("what", "quantity"),
            ("run", "run"),
            ("predicted_low", "at least"),
            ("predicted_high", "at most"),
            ("actual", "it was"),
            ("inside", "inside"),
            ("naive", "naive model"),
            ("unit", "unit"),
        ],
        40,
    )),
};

/// What a run was; `None` is never.
pub(super) fn actual(migration: &Migration, what: &str) -> Option<f64> {
    let total_ns = migration.total_ns()?;
    match what {
        "total" => Some(total_ns as f64),
        "downtime" => migration.by_events().map(|ns| ns as f64),
        // The last one before the guest was stopped found little enough left; the one after is the final one.
        "passes" => {
            let before = migration.passes.iter().filter(|(_, at_ns)| Some(*at_ns) < migration.stopped_ns).count();
            Some(before.saturating_sub(1) as f64)
        }
        "bytes" => migration.last(|poll| poll.transferred_bytes).map(|bytes| bytes as f64),
        _ => None,
    }
}

pub(super) fn table(migrations: &Migrations) -> Table {
    let mut table = Table::new(&RESIDUALS);
    let Some(prediction) = &migrations.said else { return table };
    for (run, migration) in migrations.list.iter().enumerate() {
        for said in &prediction.said {
            let was = actual(migration, &said.what);
            let cell = |value: Option<f64>| value.map_or(Cell::Missing, Cell::F64);
            table.push(vec![
                (run as u64).into(),
                said.what.as_str().into(),
                cell(said.low),
                cell(said.high),
                cell(was),
                Cell::Bool(said.holds(was)),
                cell(said.naive),
                said.unit.as_str().into(),
            ]);
        }
    }
    table
}
