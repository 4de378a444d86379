//! Did the thread that saved and loaded devices work, or wait for a CPU?
//!
//! ```text
//! 15995@1795523691.272414: nic took 9 ms      the thread that printed it, by its id, and when      CLOCK_REALTIME
//!   trace of the same machine --clock pairs--> 15995 ran 0.4 ms | runnable 8.6 ms                  work, waiting
//! ```
//! A QEMU in a pid namespace prints ids that the trace does not have: its source is then looked for by the name of its migration thread.

use facts::Case;
use facts::attribution::pollers::{Asked, spent};
use facts::ledger::model::PartFlow;
use facts::migrations::Migration;
use facts::migrations::pieces::{Key, Piece, pieces};
use facts::samples::SampleClock;
use std::collections::BTreeMap;

/// What the thread is called that sends (`migration_thread`), with debug-threads=on: QEMU 2.1, 7.0 and 9.2.
const OF_SOURCE: [&str; 3] = ["migration", "live_migration", "mig/src/main"];

/// A stretch of time, taken apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Split {
    pub work_ns: u64,
    /// It could have run: another thread or an interrupt had its CPU.
    pub waiting_ns: u64,
}

/// Those of all sides: by run, by side (the source is 0), by device.
#[derive(Debug, Default)]
pub(super) struct Splits(BTreeMap<(usize, usize), BTreeMap<Key, Split>>);

impl Splits {
    /// That of a device, if its thread was recorded.
    pub(super) fn of(&self, run: usize, side: usize, key: &Key) -> Option<Split> {
        self.0.get(&(run, side))?.get(key).copied()
    }

    pub(super) fn whole(&self, run: usize, side: usize) -> Option<Split> {
        let all = self.0.get(&(run, side))?.values();
        Some(all.fold(Split::default(), |sum, one| Split {
            work_ns: sum.work_ns + one.work_ns,
            waiting_ns: sum.waiting_ns + one.waiting_ns,
        }))
    }

    /// Reads the traces of machines whose migrations were traced by QEMU meanwhile.
    pub(super) fn new(case: &Case, migrations: &[Migration]) -> Self {
        let mut splits = Self::default();
        let is_traced = |one: &Migration| one.source.is_some() || one.target.is_some();
        if case.input().parts.is_empty() || !migrations.iter().any(is_traced) {
            return splits;
        }
        for (place, part) in case.ledger().parts.iter().enumerate() {
            if part.twin_of.is_none() && part.has_switches {
                splits.read(case, place, part, migrations);
            }
        }
        splits
    }

    fn read(&mut self, case: &Case, place: usize, part: &PartFlow, migrations: &[Migration]) {
        let mut wanted: Vec<((usize, usize), Piece)> = Vec::new();
        let mut asked: Vec<Asked> = Vec::new();
        for (run, migration) in migrations.iter().enumerate() {
            let sides = [&migration.source, &migration.target].into_iter().zip(&migration.machines).enumerate();
            for (number, (side, _)) in sides.filter(|(_, (_, machine))| machine.as_ref() == Some(&part.machine)) {
                for piece in side.iter().flat_map(pieces) {
                    let Some(tid) = thread(part, piece.tid, number == 0) else { continue };
                    asked.push(Asked { tid, window: piece.span });
                    wanted.push(((run, number), piece));
                }
            }
        }
        if asked.is_empty() {
            return;
        }
        let hear = &mut |done, all| case.hear(done, all);
        let of_trace = (case.input(), case.given(), case.ledger());
        let Some((spent, _)) = spent(of_trace, place, (&asked, SampleClock::Realtime), hear) else { return };
        for ((side, piece), spent) in wanted.into_iter().zip(spent) {
            if spent.unknown_ns < piece.span.length_ns() {
                let split = self.0.entry(side).or_default().entry(piece.key).or_default();
                split.work_ns += spent.ran_ns;
                split.waiting_ns += spent.taken.values().map(|part| part.total_ns).sum::<u64>();
            }
        }
    }
}

fn thread(part: &PartFlow, tid: Option<i32>, is_source: bool) -> Option<i32> {
    if let Some(tid) = tid.filter(|tid| part.comms.contains_key(tid)) {
        return Some(tid);
    }
    let mut named = part.comms.iter().filter(|(_, comm)| is_source && OF_SOURCE.contains(&comm.as_str()));
    match (named.next(), named.next()) {
        (Some((tid, _)), None) => Some(*tid),
        _ => None,
    }
}
