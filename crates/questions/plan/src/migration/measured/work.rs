//! How much of its work did the guest lose to being moved?
//!
//! ```text
//! count    |  .  .  .  . b | .... migrate .... dark .... | r .  .     read through QEMU on the source, then on the target
//! before: beats per second           from b to r: what it counted, and what it would have counted at that rate
//! lost = time - beats / rate of before: seconds of the guest's own work, throttled, dark, or slowed by QEMU beside it
//! ```
//! A migration is paid with more than dark time: auto-converge takes most of the guest's time for as long as it lasts.

use base::number::{duration, percent};
use base::{Cell, Table, TableSpec, shown, table};
use facts::migrations::{Counted, Migration};

pub(super) const WORK: TableSpec = table! {
    migration.work version 1:
    "What the guest counted of its work in one phase of one run: `before`, `pass N` or, where it was not read during the migration, `moved` as a \
     whole, and `after`. Times count from the \
          beginning of the migration; `share` is of the rate before; `lost_ns` is the time in which it would have done at that rate what it did not do; below 0 it did more.";
    key phase, i64("ns") start_ns, i64("ns") end_ns, count beats, f64("1/s") beats_per_s, share share,
    i64("ns") lost_ns, key_u64("") run;
    shown![
        "Guest progress during the migration", 40;
        run, phase, start_ns: "since", end_ns: "until", beats_per_s: "beats", share: "of before",
        lost_ns: "work lost",
    ]
};

/// A rate of less time than this is mostly the time that an answer takes.
const LEAST_NS: u64 = 50_000_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Phase {
    pub name: String,
    pub from_ns: u64,
    pub to_ns: u64,
    beats: u64,
}

impl Phase {
    fn between(name: &str, first: &Counted, last: &Counted) -> Self {
        let beats = u64::from(last.count.wrapping_sub(first.count));
        Self { name: name.to_owned(), from_ns: first.at_ns, to_ns: last.at_ns, beats }
    }

    fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// Beats in a nanosecond.
    pub(super) fn rate(&self) -> Option<f64> {
        Some(self.beats as f64 / self.length_ns() as f64).filter(|_| self.length_ns() > 0)
    }

    pub(super) fn lost_ns(&self, rate: f64) -> f64 {
        self.length_ns() as f64 - self.beats as f64 / rate
    }
}

/// The phases of a run, that before first; `None` where its work was not counted before or after.
pub(super) fn of(migration: &Migration) -> Option<Vec<Phase>> {
    let [on_source, on_target] = &migration.counted;
    let address = &on_source.last()?.address;
    let same = |one: &&Counted| one.address == *address;
    // What is 0 has not begun to count.
    let before: Vec<&Counted> =
        on_source.iter().filter(same).filter(|one| one.at_ns <= migration.began_ns && one.count > 0).collect();
    let resumed_ns = migration.resumed_ns?;
    let after: Vec<&Counted> = on_target.iter().filter(same).filter(|one| one.at_ns >= resumed_ns).collect();
    let [(first, last), (arrived, end)] = [(before.first()?, before.last()?), (after.first()?, after.last()?)];
    let baseline = Phase::between("before", first, last);
    if baseline.beats == 0 || baseline.length_ns() < LEAST_NS {
        return None;
    }
    let stopped_ns = migration.stopped_ns.unwrap_or(resumed_ns);
    let during = on_source
        .iter()
        .filter(same)
        .filter(|one| (migration.began_ns.saturating_add(1)..stopped_ns).contains(&one.at_ns));
    let readings: Vec<&Counted> = std::iter::once(*last).chain(during).chain([*arrived]).collect();
    let is_whole = readings.len() == 2;
    let mut phases = vec![baseline];
    for pair in readings.windows(2) {
        let [from, to] = pair else { continue };
        let pass = migration
            .passes
            .iter()
            .rfind(|(_, at_ns)| *at_ns <= from.at_ns)
            .map_or(0, |(number, _)| number.saturating_sub(1));
        let phase = Phase::between(&if is_whole { "moved".to_owned() } else { format!("pass {pass}") }, from, to);
        match phases.last_mut().filter(|last| last.name == phase.name) {
            Some(last) => (last.to_ns, last.beats) = (phase.to_ns, last.beats + phase.beats),
            None => phases.push(phase),
        }
    }
    if end.at_ns > arrived.at_ns {
        phases.push(Phase::between("after", arrived, end));
    }
    Some(phases)
}

/// Table [`WORK`]; without rows where no guest's work was counted.
pub(super) fn table(migrations: &[Migration]) -> Table {
    let mut table = Table::new(&WORK);
    for (run, migration) in migrations.iter().enumerate() {
        let phases = of(migration).unwrap_or_default();
        let Some(rate) = phases.first().and_then(Phase::rate) else { continue };
        for phase in &phases {
            let since = |at_ns: u64| Cell::I64(at_ns.wrapping_sub(migration.began_ns) as i64);
            let cell = |value: Option<f64>| value.map_or(Cell::Missing, Cell::F64);
            let is_before = phase.name == "before";
            table.push(vec![
                phase.name.as_str().into(),
                since(phase.from_ns),
                since(phase.to_ns),
                phase.beats.into(),
                cell(phase.rate().map(|rate| rate * 1e9)),
                cell(phase.rate().map(|own| own / rate)),
                if is_before { Cell::Missing } else { Cell::I64(phase.lost_ns(rate).round() as i64) },
                (run as u64).into(),
            ]);
        }
    }
    table
}

/// What was lost of its work while it was moved, and of how much time.
pub(super) fn lost(phases: &[Phase]) -> Option<(f64, u64)> {
    let rate = phases.first()?.rate()?;
    let moved = || phases.iter().filter(|phase| !["before", "after"].contains(&phase.name.as_str()));
    let lost_ns: f64 = moved().map(|phase| phase.lost_ns(rate)).sum();
    Some((lost_ns, moved().map(Phase::length_ns).sum()))
}

/// `By its own count the guest lost 175.0 ms of its work in 515.0 ms, 34.0 % of that time.`
pub(super) fn sentence(migration: &Migration) -> Option<String> {
    let (lost_ns, length_ns) = lost(&of(migration)?)?;
    let share = percent((lost_ns / length_ns as f64).clamp(0.0, 1.0));
    let (lost, length) = (duration(lost_ns), duration(length_ns as f64));
    (lost_ns > 0.0 && length_ns > 0)
        .then(|| format!(" By its own count the guest lost {lost} of its work in {length}, {share} of that time."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn counted(readings: &[(u64, u32)]) -> Vec<Counted> {
        let one = |(ms, count): &(u64, u32)| Counted { at_ns: ms * MS, address: "0x100000".to_owned(), count: *count };
        readings.iter().map(one).collect()
    }

    /// A guest that counts 10 in a millisecond, is moved from 200 to 600 ms, and stands still from 500 on.
    fn moved(on_source: &[(u64, u32)], on_target: &[(u64, u32)]) -> Migration {
        Migration {
            began_ns: 200 * MS,
            passes: vec![(1, 200 * MS), (2, 400 * MS)],
            stopped_ns: Some(500 * MS),
            resumed_ns: Some(600 * MS),
            counted: [counted(on_source), counted(on_target)],
            ..Migration::default()
        }
    }

    fn lost_ms(migration: &Migration) -> Vec<(String, i64)> {
        let phases = of(migration).unwrap();
        let rate = phases[0].rate().unwrap();
        phases[1..].iter().map(|phase| (phase.name.clone(), (phase.lost_ns(rate) / 1e6).round() as i64)).collect()
    }

    #[test]
    fn what_it_would_have_counted_and_did_not_is_lost() {
        // It wraps; throttled to half until 500 ms, then dark: 1,500 in 400 ms.
        let begins = u32::MAX - 500;
        let count = |beats: u32| begins.wrapping_add(beats);
        let source = [(50, 0), (100, count(0)), (200, count(1_000))];
        let plain = moved(&source, &[(600, count(2_500)), (700, count(3_500))]);
        assert_eq!(lost_ms(&plain), [("moved".to_owned(), 250), ("after".to_owned(), 0)]);
        assert_eq!(
            sentence(&plain).unwrap(),
            " By its own count the guest lost 250.0 ms of its work in 400.0 ms, 62.5 % of that time."
        );
        assert_eq!(table(&[plain]).rows.len(), 3);
    }

    #[test]
    fn readings_meanwhile_part_it_by_passes() {
        let source = [(100, 1_000), (200, 2_000), (300, 3_000), (400, 3_500), (450, 3_600)];
        let parted = moved(&source, &[(650, 3_600), (700, 4_100)]);
        let expected = [("pass 0", 50), ("pass 1", 240), ("after", 0)].map(|(name, ms)| (name.to_owned(), ms));
        assert_eq!(lost_ms(&parted), expected);
    }

    #[test]
    fn without_a_rate_before_or_a_count_after_nothing_is_known() {
        assert_eq!(of(&moved(&[(199, 10), (200, 20)], &[(600, 30)])), None, "a millisecond is no rate");
        assert_eq!(of(&moved(&[(100, 1_000), (200, 1_000)], &[(600, 1_000)])), None, "it did nothing before");
        assert_eq!(of(&moved(&[(100, 1_000), (200, 2_000)], &[])), None);
        assert_eq!(of(&Migration::default()), None);
    }
}
