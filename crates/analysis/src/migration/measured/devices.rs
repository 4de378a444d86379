//! What did each device take while the guest stood still?
//!
//! ```text
//! src-downtime-start --stop--> src-vm-stopped --ram, cpu, .. saved--> src-downtime-end
//! first load ..... cpu, .. loaded ..... dst-precopy-loadvm-completed --start--> dst-precopy-bh-vm-started
//! all rows of a side = its last line - its first; what lies between two lines and was taken by no device is `unnamed`
//! ```

use super::waits::Splits;
use crate::facts::migrations::Migration;
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Span, Table};
use host::migrated::Side;
use host::migrated::downtime_log::What;
use std::collections::BTreeMap;

pub const DEVICES: TableSpec = TableSpec {
    section: "migration",
    name: "devices",
    version: 1,
    row: "What one device took on one side while the guest stood still, all its instances together, by QEMU's trace: kind is iterable, non-iterable, \
          checkpoint (from the line before to this one) or unnamed. Where a trace of the same machine has the thread, it ran for `work_ns` and was runnable or \
          interrupted for `waiting_ns`; in the rest it slept, or the trace does not show it.",
    columns: &[
        Column::key("side"),
        Column::key("device"),
        Column::key("kind"),
        Column::ns("total_ns"),
        Column::ns("work_ns"),
        Column::ns("waiting_ns"),
        Column::key_of("run", ColumnType::U64),
    ],
    shown: Some(Shown {
        largest_first: Some("total_ns"),
        ..Shown::of(
            "What devices took while the guest stood still",
            &[
                ("run", "run"),
                ("side", "side"),
                ("device", "device"),
                ("kind", "kind"),
                ("total_ns", "took"),
                ("work_ns", "worked"),
                ("waiting_ns", "waited for a CPU"),
            ],
            16,
        )
    }),
};

/// Device or place, and kind.
pub(super) type Key = (String, &'static str);

/// What one thread did with a stretch of a side's time, CLOCK_REALTIME.
pub(super) struct Piece {
    pub key: Key,
    pub tid: Option<i32>,
    pub span: Span,
}

/// A side in pieces, one behind the other.
pub(super) fn pieces(side: &Side) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut before_ns: Option<u64> = None;
    for step in &side.steps {
        let (key, took_ns) = match &step.what {
            What::Device { name, is_iterable, took_ns, .. } => {
                ((name.clone(), if *is_iterable { "iterable" } else { "non-iterable" }), *took_ns)
            }
            What::Checkpoint(name) => {
                let since_ns = before_ns.map_or(0, |before_ns| step.at_ns.saturating_sub(before_ns));
                ((name.clone(), "checkpoint"), since_ns)
            }
        };
        // A device of which the first line tells took its time before that line.
        let since_ns = before_ns.map_or(took_ns, |before_ns| step.at_ns.saturating_sub(before_ns));
        let own_from_ns = step.at_ns.saturating_sub(took_ns.min(since_ns));
        let gap = Span { from_ns: step.at_ns.saturating_sub(since_ns), to_ns: own_from_ns };
        let between = ("between the lines".to_owned(), "unnamed");
        let own = Span { from_ns: own_from_ns, to_ns: step.at_ns };
        let both = [(between, gap), (key, own)].into_iter().filter(|(_, span)| span.from_ns < span.to_ns);
        pieces.extend(both.map(|(key, span)| Piece { key, tid: step.tid, span }));
        // A line with an earlier time than the one before, damaged or of another thread, takes none.
        before_ns = before_ns.max(Some(step.at_ns));
    }
    pieces
}

/// What a side spent its time on; the sum is that of the whole side.
pub(super) fn of(side: &Side) -> BTreeMap<Key, u64> {
    let mut taken: BTreeMap<Key, u64> = BTreeMap::new();
    for piece in pieces(side) {
        *taken.entry(piece.key).or_default() += piece.span.length_ns();
    }
    taken
}

/// Table [`DEVICES`]; without rows where nobody traced any.
pub(super) fn table(migrations: &[Migration], splits: &Splits) -> Table {
    let mut table = Table::new(&DEVICES);
    for (run, migration) in migrations.iter().enumerate() {
        for (number, (side, name)) in
            [(&migration.source, "source"), (&migration.target, "target")].into_iter().enumerate()
        {
            let mut taken: Vec<(Key, u64)> = side.as_ref().map(of).unwrap_or_default().into_iter().collect();
            taken.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            for (key, total_ns) in taken {
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
        let taken = side.as_ref().map(of).unwrap_or_default().into_iter();
        for ((device, _), ns) in taken.filter(|((_, kind), _)| kind.ends_with("iterable")) {
            let (saved_ns, loaded_ns) = both.entry(device).or_default();
            *(if is_source { saved_ns } else { loaded_ns }) += ns;
        }
    }
    let slowest = both.into_iter().max_by_key(|(_, (saved_ns, loaded_ns))| saved_ns.saturating_add(*loaded_ns));
    slowest.map(|(device, (saved_ns, loaded_ns))| (device, saved_ns, loaded_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::migrated::downtime_log::read;

    #[test]
    fn a_time_that_jumps_ahead_and_back_is_counted_once() {
        let log = "1@5.000100:vmstate_downtime_save type=non-iterable idstr=apic instance_id=0 downtime=90\n\
                   1@15000000000.000000:vmstate_downtime_save type=non-iterable idstr=nic instance_id=0 downtime=5\n\
                   1@5.000200:vmstate_downtime_save type=non-iterable idstr=cpu instance_id=0 downtime=50\n\
                   1@15000000000.000100:vmstate_downtime_save type=non-iterable idstr=rtc instance_id=0 downtime=100\n";
        let side = &read(log)[0];
        let spans: Vec<Span> = pieces(side).iter().map(|piece| piece.span).collect();
        assert!(spans.windows(2).all(|two| two[0].to_ns <= two[1].from_ns), "one behind the other: {spans:?}");
        assert_eq!(of(side).values().sum::<u64>(), 15_000_000_000_000_100_000 - 5_000_010_000);
    }

    #[test]
    fn all_rows_of_a_side_are_its_time_and_a_gap_is_unnamed() {
        let log = "1@5.000100:vmstate_downtime_checkpoint src-downtime-start\n\
            1@5.000150:vmstate_downtime_checkpoint src-vm-stopped\n\
            1@5.000400:vmstate_downtime_save type=iterable idstr=ram instance_id=0 downtime=200\n\
            1@5.000450:vmstate_downtime_save type=non-iterable idstr=cpu instance_id=0 downtime=50\n\
            1@5.000460:vmstate_downtime_save type=non-iterable idstr=cpu instance_id=1 downtime=11\n\
            1@5.000500:vmstate_downtime_checkpoint src-downtime-end\n";
        let taken = of(&read(log)[0]);
        let us = |device: &str, kind| taken.get(&(device.to_owned(), kind)).map(|ns| ns / 1_000);
        assert_eq!([us("ram", "iterable"), us("cpu", "non-iterable")], [Some(200), Some(60)]);
        assert_eq!([us("src-vm-stopped", "checkpoint"), us("src-downtime-end", "checkpoint")], [Some(50), Some(40)]);
        assert_eq!((us("between the lines", "unnamed"), us("src-downtime-start", "checkpoint")), (Some(50), None));
        assert_eq!(taken.values().sum::<u64>(), 400_000);
    }
}
