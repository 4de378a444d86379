//! What each pass sent, how long it took, and what it left.

use base::{Cell, Table, TableSpec, shown, table};
use facts::migrations::{Migration, Poll};

pub(super) const PASSES: TableSpec = table! {
    migration.passes version 1:
    "One pass over the guest's memory; pass 0 is QEMU's first. Times count from the command `migrate`. What no answer between two passes had is \
     missing; `dirty_pages` is what was left to send when the pass was over. The final one continues under another number once the guest is stopped.";
    key_u64("") pass, ns start_ns, ns end_ns, u64("bytes") bytes, count pages, count zero_pages, count dirty_pages,
    f64("bytes/s") rate_bytes_per_s, share throttle, key_u64("") run, flag is_final;
    shown![
        "Passes", 40;
        run, pass, start_ns: "since", end_ns: "until", bytes: "sent", zero_pages: "zero pages",
        dirty_pages: "pages left", rate_bytes_per_s: "per second", is_final: "final",
    ]
};

pub(super) struct Pass {
    /// From 0, the first one of QEMU's; those before one that was watched late are missing.
    pub number: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: Option<u64>,
    pub pages: Option<u64>,
    pub zero_pages: Option<u64>,
    pub dirty_pages: Option<u64>,
    /// Of these, what was dirtied in the meantime; not known where no answer came in it or in the next one.
    pub(crate) dirtied_pages: Option<u64>,
    pub throttle: Option<f64>,
}

impl Pass {
    /// What it sent in a second.
    pub(super) fn bytes_per_s(&self) -> Option<f64> {
        let length_s = self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9;
        self.bytes.filter(|_| length_s > 0.0).map(|bytes| bytes as f64 / length_s)
    }
}

/// QEMU counts its passes from 1.
const FIRST: u64 = 1;

/// Passes before the final one, of a migration that completed. By events: the sync before the guest was stopped found little enough left, so
/// that the final one begins there; where the first one was over before QEMU knew a bandwidth, nothing looked for more. By sums: QEMU counts
/// that sync, and the one with the guest stopped (`dirty-sync-count`; migration/ram.c, `ram_save_complete`, QEMU 7.2), but for post-copy.
pub(in super::super) fn before_final(migration: &Migration) -> Option<u64> {
    if migration.total_ns().is_some() {
        let before = migration.passes.iter().filter(|(_, at_ns)| Some(*at_ns) < migration.stopped_ns);
        return before.map(|(number, _)| number.saturating_sub(FIRST).max(1)).max();
    }
    let asked_for = migration.last(|poll| poll.requested_pages).unwrap_or(0);
    let counted = migration.counted_passes.filter(|_| migration.is_completed() && asked_for == 0);
    counted.map(|syncs| syncs.saturating_sub(2).max(1))
}

/// What is left to send.
fn remaining_pages(poll: &Poll) -> Option<u64> {
    Some(poll.remaining_bytes? / poll.page_bytes?.max(1))
}

/// What was sent so far and what is left of the pass: the same all through it, and more by what was dirtied as the next one begins. Answers come
/// a while after that, when some of it is sent. Pages that xbzrle finds unchanged are in neither, so that this is no more than what it was.
fn whole_pages(poll: &Poll) -> Option<u64> {
    Some(remaining_pages(poll)?.saturating_add(poll.normal_pages?).saturating_add(poll.zero_pages?))
}

/// Those of one migration; the last one is sent while the guest stands still.
pub(super) fn of(migration: &Migration) -> Vec<Pass> {
    let end_ns = migration.ended.as_ref().map(|(at_ns, _)| *at_ns);
    let starts = migration.passes.iter().copied();
    let ends: Vec<Option<u64>> = starts.clone().skip(1).map(|(_, at_ns)| Some(at_ns)).chain([end_ns]).collect();
    let pass = |(place, (number, start_ns)): (usize, (u64, u64))| {
        let end_ns = ends[place]?;
        // An answer tells of the pass before if it came before the pass after.
        let before = migration.poll_at(start_ns);
        let after = migration.poll_at(end_ns);
        // What is counted begins at 0: an answer before the first pass, which has no counts yet, is none that is missing.
        let counted = |of: fn(&Poll) -> Option<u64>| of(before?).or((number == FIRST).then_some(0));
        let grown = |of: fn(&Poll) -> Option<u64>| of(after?)?.checked_sub(counted(of)?);
        let left = after.and_then(remaining_pages);
        let next_end_ns = ends.get(place + 1).copied().flatten();
        let whole =
            |from_ns, until_ns| migration.polls_in(from_ns, until_ns).iter().find_map(|(_, poll)| whole_pages(poll));
        let dirtied =
            next_end_ns.and_then(|next_end_ns| whole(end_ns, next_end_ns)?.checked_sub(whole(start_ns, end_ns)?));
        Some(Pass {
            number: number.saturating_sub(1),
            start_ns: start_ns.saturating_sub(migration.began_ns),
            end_ns: end_ns.saturating_sub(migration.began_ns),
            bytes: grown(|poll| poll.transferred_bytes),
            pages: grown(|poll| poll.normal_pages),
            zero_pages: grown(|poll| poll.zero_pages),
            dirty_pages: left.map(|left| left.max(dirtied.unwrap_or(0))),
            dirtied_pages: dirtied,
            throttle: after.and_then(|poll| Some(poll.throttle_percent? as f64 / 100.0)),
        })
    };
    starts.enumerate().filter_map(pass).collect()
}

pub(super) fn table(migrations: &[Migration]) -> Table {
    let mut table = Table::new(&PASSES);
    for (run, migration) in migrations.iter().enumerate() {
        let before = before_final(migration);
        for pass in of(migration) {
            let count = |value: Option<u64>| value.map_or(Cell::Missing, Cell::U64);
            let real = |value: Option<f64>| value.map_or(Cell::Missing, Cell::F64);
            table.push(vec![
                pass.number.into(),
                pass.start_ns.into(),
                pass.end_ns.into(),
                count(pass.bytes),
                count(pass.pages),
                count(pass.zero_pages),
                count(pass.dirty_pages),
                real(pass.bytes_per_s()),
                real(pass.throttle),
                (run as u64).into(),
                before.map(|before| pass.number >= before).map_or(Cell::Missing, Cell::Bool),
            ]);
        }
    }
    table
}
