//! How long was the guest dark, by each way to tell?

use crate::facts::migrations::{EVENTS_ERROR_NS, Migration, REPORTED_ERROR_NS};
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};

pub const DOWNTIMES: TableSpec = TableSpec {
    section: "migration",
    name: "downtimes",
    version: 1,
    row: "The dark time of one run by one definition: `vmm_reported` by QEMU's own account, `vmm_events` from its event STOP on the source to \
          RESUME on the target, `vmm_checkpoints` from src-downtime-start to vm-started in its trace of both. `difference_ns` is to the row before.",
    columns: &[
        Column::key("definition"),
        Column::ns("value_ns"),
        Column::ns("error_ns"),
        Column::value("difference_ns", "ns", ColumnType::I64),
        Column::text("cause"),
        Column::key_of("run", ColumnType::U64),
    ],
    shown: Some(Shown::of(
        "How long the guest was dark",
        &[
            ("run", "run"),
            ("definition", "by"),
            ("value_ns", "dark"),
            ("error_ns", "give or take"),
            ("difference_ns", "difference"),
            ("cause", "because of"),
        ],
        40,
    )),
};

/// How long the guest was still dark when the source believed that it was over: the target loads devices and starts it.
fn after_the_source(migration: &Migration) -> Option<u64> {
    let believed_ns = migration.source.as_ref()?.passed("src-downtime-end")?;
    migration.target.as_ref()?.started()?.checked_sub(believed_ns)
}

/// Why one definition says more than the one before.
fn cause(migration: &Migration, definition: &str, difference_ns: i64, error_ns: u64) -> &'static str {
    let loaded = after_the_source(migration).filter(|_| definition == "vmm_checkpoints");
    let is_of_target = loaded.is_some_and(|loaded_ns| {
        i64::try_from(loaded_ns).is_ok_and(|loaded_ns| loaded_ns.abs_diff(difference_ns) <= error_ns)
    });
    match difference_ns.unsigned_abs() {
        within if within <= error_ns => "within the error",
        _ if is_of_target => "device load, after the source's end",
        _ => "unexplained",
    }
}

pub(super) fn table(migrations: &[Migration]) -> Table {
    let mut table = Table::new(&DOWNTIMES);
    for (run, migration) in migrations.iter().enumerate() {
        let reported = migration.last(|poll| poll.downtime_ms).map(|ms| ms.saturating_mul(1_000_000));
        let rows = [
            ("vmm_reported", reported, REPORTED_ERROR_NS),
            ("vmm_events", migration.by_events(), EVENTS_ERROR_NS),
            ("vmm_checkpoints", migration.by_checkpoints(), EVENTS_ERROR_NS),
        ];
        let mut before: Option<(u64, u64)> = None;
        for (definition, value_ns, error_ns) in rows {
            let Some(value_ns) = value_ns else { continue };
            let difference = before.map(|(before, _)| {
                let difference = i128::from(value_ns) - i128::from(before);
                difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64
            });
            let error_of_both = before.map_or(0, |(_, before)| before + error_ns);
            table.push(vec![
                definition.into(),
                value_ns.into(),
                error_ns.into(),
                difference.map_or(Cell::Missing, Cell::I64),
                difference.map_or(Cell::Missing, |ns| cause(migration, definition, ns, error_of_both).into()),
                (run as u64).into(),
            ]);
            before = Some((value_ns, error_ns));
        }
    }
    table
}
