//! What did each device take while the guest stood still? See [`facts::migrations::pieces`].

use super::waits::Splits;
use base::{Cell, Shown, Table, TableSpec, shown, table};
use facts::migrations::Migration;
use facts::migrations::pieces::{Key, taken};
use std::collections::BTreeMap;

pub(super) const DEVICES: TableSpec = table! {
    migration.devices version 1:
    "What one device took on one side while the guest was stopped, all its instances together, by QEMU's trace: kind is iterable, non-iterable, \
          checkpoint (from the line before to this one) or unnamed. Where a trace of the same machine has the thread, it ran for `work_ns` and was runnable or \
          interrupted for `waiting_ns`; in the rest it slept, or the trace does not show it.";
    key side, key device, key kind, ns total_ns, ns work_ns, ns waiting_ns, key_u64("") run;
    Shown {
        largest_first: Some("total_ns"),
        ..shown![
            "What devices took while the guest was stopped", 16;
            run, side, device, kind, total_ns: "took", work_ns: "worked", waiting_ns: "waited for a CPU",
        ]
    }
};

/// Table [`DEVICES`]; without rows where nobody traced any.
pub(super) fn table(migrations: &[Migration], splits: &Splits) -> Table {
    let mut table = Table::new(&DEVICES);
    for (run, migration) in migrations.iter().enumerate() {
        for (number, (side, name)) in
            [(&migration.source, "source"), (&migration.target, "target")].into_iter().enumerate()
        {
            let mut devices: Vec<(Key, u64)> = side.as_ref().map(taken).unwrap_or_default().into_iter().collect();
            devices.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            for (key, total_ns) in devices {
                let split = splits.of(run, number, &key);
                let [work, waiting] = [split.map(|split| split.work_ns), split.map(|split| split.waiting_ns)]
                    .map(|ns| ns.map_or(Cell::Missing, Cell::U64));
                let (device, kind) = key;
                let row = [name.into(), device.into(), kind.into(), total_ns.into(), work, waiting];
                table.push(row.into_iter().chain([(run as u64).into()]).collect());
            }
        }
    }
    table
}

/// The device that took most on both sides together, and what each of them took.
pub(super) fn slowest(migration: &Migration) -> Option<(String, u64, u64)> {
    let mut both: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (side, is_source) in [(&migration.source, true), (&migration.target, false)] {
        let devices = side.as_ref().map(taken).unwrap_or_default().into_iter();
        for ((device, _), ns) in devices.filter(|((_, kind), _)| kind.ends_with("iterable")) {
            let (saved_ns, loaded_ns) = both.entry(device).or_default();
            *(if is_source { saved_ns } else { loaded_ns }) += ns;
        }
    }
    let slowest = both.into_iter().max_by_key(|(_, (saved_ns, loaded_ns))| saved_ns.saturating_add(*loaded_ns));
    slowest.map(|(device, (saved_ns, loaded_ns))| (device, saved_ns, loaded_ns))
}
