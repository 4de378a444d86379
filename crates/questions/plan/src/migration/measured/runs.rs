//! By which method did each run go, how did it end, and what was its price?

use super::{culprits, passes};
use base::{Cell, Table, TableSpec, shown, table};
use facts::migrations::Migration;

pub(super) const RUNS: TableSpec = table! {
    migration.runs version 2:
    "One migration: its method, by the source's settings; how it ended; and its price: the most of its time that was taken from the \
          guest, how long all its vCPUs waited for pages at once after post-copy had begun, and how many pages it asked for then. `passes` are \
          those before the final one, of one that did not complete those that began. What was not reported is missing.";
    key_u64("") run, text method, text ended, ns total_ns, u64("bytes") bytes, count passes, share throttle,
    ns blocktime_ns, count requested_pages, text why;
    shown![
        "Runs", 40;
        run, method: "by", ended: "ended as", total_ns: "took", bytes: "sent", throttle: "throttled",
        blocktime_ns: "waited for pages", requested_pages: "pages asked for", why: "because",
    ]
};

pub(super) fn table(migrations: &[Migration]) -> Table {
    let mut table = Table::new(&RUNS);
    for (run, migration) in migrations.iter().enumerate() {
        let text = |text: Option<&str>| text.map_or(Cell::Missing, Cell::from);
        let begun = migration.counted_passes.unwrap_or(migration.passes.len() as u64);
        let passes = passes::before_final(migration).unwrap_or(begun);
        let throttle = migration.polls.iter().filter_map(|(_, poll)| poll.throttle_percent).max();
        let switched = migration.blocktime_ms.map(|ms| ms.saturating_mul(1_000_000));
        let requested = migration.last(|poll| poll.requested_pages).filter(|_| switched.is_some());
        table.push(vec![
            (run as u64).into(),
            text(migration.method.map(|method| method.name())),
            text(migration.ended.as_ref().map(|(_, how)| how.as_str())),
            migration.total_ns().into(),
            migration.last(|poll| poll.transferred_bytes).into(),
            (passes > 0).then_some(passes).into(),
            throttle.map_or(Cell::Missing, |percent| Cell::F64(percent as f64 / 100.0)),
            switched.into(),
            requested.into(),
            text(culprits::why(migration).as_deref()),
        ]);
    }
    table
}
