//! Finds the migrations of a recording: reads its parts, and gives each to the migration that it tells of.

use super::session::{self, Arrival, Departure};
use super::{Clocks, Migration, Migrations, Train};
use base::Problem;
use base::heartbeat::Heartbeat;
use base::hibernation::{ABOUT, Hibernation};
use base::moved_memory::MovedMemory;
use base::network::Network;
use base::prediction::Prediction;
use base::processes::Processes;
use base::qmp::read;
use base::recording::{PartKind, Recording};
use host::migrated::{Account, Side, account, downtime_log, forms};
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::Path;

/// A log of `-trace migration_*` has some 100 bytes an event, hundreds of thousands of them.
const MOST_BYTES: u64 = 64 << 20;

impl Migrations {
    /// Those of `recording`, and what was wrong with its files.
    pub fn of(recording: &Recording) -> (Self, Vec<Problem>) {
        let (mut migrations, mut problems) = (Self::default(), Vec::new());
        let (mut sources, mut arrivals) = (Vec::new(), Vec::new());
        let (mut accounts, mut sides, mut beats, mut processes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut networks, mut memories) = (Vec::new(), Vec::new());
        for part in &recording.parts {
            let path = recording.root.join(&part.path);
            let named = || recording.as_named(&part.path.display().to_string()).into_owned();
            let none = |expected: &str, error: std::io::Error| {
                Problem::at(named(), None, expected, "none", 0, error.to_string())
            };
            match part.kind {
                PartKind::Qmp => match printed(&path) {
                    Ok(Some(printed)) => {
                        let (others, out): (Vec<_>, Vec<_>) =
                            printed.accounts.into_iter().partition(|account| account.job.is_some());
                        migrations.jobs.extend(others);
                        accounts.extend(out.into_iter().map(Migration::of_account));
                        sides.extend(printed.sides.into_iter().map(|side| (part.machine.clone(), side)));
                        continue;
                    }
                    Ok(None) => match read(&path) {
                        Ok((messages, damaged)) => {
                            if damaged > 0 {
                                let text =
                                    format!("{damaged} of its lines are none of a session of QEMU's machine protocol");
                                problems.push(Problem::at(named(), None, "a message a line", "others", 0, text));
                            }
                            migrations.blocked.extend(session::blocked(&messages));
                            sources.extend(Departure::of_source(&messages, &part.machine));
                            arrivals.extend(Arrival::of_target(&messages, &part.machine));
                        }
                        Err(error) => problems.push(none("a session", error)),
                    },
                    Err(error) => problems.push(none("a session", error)),
                },
                PartKind::Prediction => match Prediction::read(&path) {
                    Ok(said) if said.about == "migration" => migrations.said = Some(said),
                    Ok(said) if said.about == ABOUT => migrations.said_of_files = Some(said),
                    Ok(_) => {}
                    Err(error) => problems.push(none("a prediction", error)),
                },
                PartKind::Hibernation => match Hibernation::read(&path) {
                    Ok(read) => migrations.hibernation = Some(read),
                    Err(error) => problems.push(none("saved guests", error)),
                },
                PartKind::Processes => match Processes::read(&path) {
                    Ok(read) => processes.push(read),
                    Err(error) => problems.push(none("what processes did", error)),
                },
                PartKind::Network => match Network::read(&path) {
                    Ok(read) => networks.push((read.from_ns..=read.to_ns, Train::of(&read))),
                    Err(error) => problems.push(none("packets", error)),
                },
                PartKind::MovedMemory => match MovedMemory::read(&path) {
                    Ok(read) => memories.push(read),
                    Err(error) => problems.push(none("what became of a guest's memory", error)),
                },
                PartKind::Heartbeat => match Heartbeat::read(&path) {
                    Ok(heartbeat) => beats.push(heartbeat),
                    Err(error) => problems.push(none("a heartbeat", error)),
                },
                _ => {}
            }
        }
        sources.sort_by_key(|departure: &Departure| departure.migration.began_ns);
        arrivals.sort_by_key(|arrival: &Arrival| arrival.resumed_ns);
        let mut sources: Vec<Migration> = sources.into_iter().map(|departure| departure.meets(&mut arrivals)).collect();
        for heartbeat in beats {
            let begun = sources.partition_point(|one| one.began_ns <= heartbeat.last_on_source_ns);
            let last = begun.checked_sub(1).and_then(|place| sources.get_mut(place));
            last.into_iter().for_each(|migration| migration.heartbeat = Some(heartbeat.clone()));
        }
        for read in processes {
            begun_in(&mut sources, read.from_ns..=read.to_ns, |migration| migration.processes = Some(read));
        }
        for (times_ns, train) in networks {
            begun_in(&mut sources, times_ns, |migration| migration.train = Some(train));
        }
        for read in memories {
            begun_in(&mut sources, read.from_ns..=read.to_ns, |migration| migration.memory = Some(read));
        }
        sources.extend(latest(accounts));
        migrations.list = sources;
        sides.sort_by_key(|(_, side): &(String, Side)| side.steps.first().map_or(0, |step| step.at_ns));
        sides.into_iter().for_each(|(machine, side)| migrations.take(machine, side));
        for migration in &mut migrations.list {
            let [Some(source), Some(target)] = &migration.machines else { continue };
            migration.clocks = match recording.apart_ns(source, target) {
                _ if source == target => Clocks::One,
                Some(ns) => Clocks::Within(ns),
                None => Clocks::Assumed,
            };
        }
        (migrations, problems)
    }

    /// Gives a side to the migration that it is of; one of its own where there is none.
    fn take(&mut self, machine: String, side: Side) {
        let at_ns = side.steps.last().map_or(0, |step| step.at_ns);
        let lacks = |one: &Migration| if side.is_source() { one.source.is_none() } else { one.target.is_none() };
        let place = self.list.iter().position(|one| lacks(one) && one.was_at(at_ns));
        let place = place.unwrap_or_else(|| {
            self.list.push(Migration { by: Some(account::By::Monitor), ..Migration::default() });
            self.list.len() - 1
        });
        let Some(migration) = self.list.get_mut(place) else { return };
        let number = usize::from(!side.is_source());
        let place = if side.is_source() { &mut migration.source } else { &mut migration.target };
        *place = Some(side);
        migration.machines[number] = Some(machine);
    }
}

/// Looks at one migration become one: of the same memory, with more time and more sent than before. The last one counts.
fn latest(accounts: Vec<Migration>) -> Vec<Migration> {
    let of = |one: &Migration| {
        one.polls
            .last()
            .map(|(_, poll)| (poll.total_bytes, poll.total_ms, poll.transferred_bytes, poll.remaining_bytes))
    };
    let mut kept: Vec<Migration> = Vec::new();
    for mut migration in accounts {
        let before =
            kept.last().filter(|before| before.ended.is_none() && before.by == migration.by && before.by.is_some());
        let looks = before.and_then(of).zip(of(&migration));
        let Some(((Some(size), Some(was_ms), Some(was_sent), left), (Some(same), Some(now_ms), Some(now_sent), _))) =
            looks
        else {
            kept.push(migration);
            continue;
        };
        if size != same || now_ms <= was_ms || now_sent < was_sent {
            kept.push(migration);
            continue;
        }
        let mut notes = kept.pop().map(|before| before.notes).unwrap_or_default();
        notes.extend(left.map(|left| {
            format!("{} s before, {} were left", (now_ms - was_ms) / 1_000, base::number::bytes(left as f64))
        }));
        notes.retain(|note| !migration.notes.contains(note));
        migration.notes.extend(notes);
        kept.push(migration);
    }
    kept
}

/// What a text holds that QEMU or libvirt printed.
struct Printed {
    accounts: Vec<Account>,
    sides: Vec<Side>,
}

/// Reads one; `None` if it is none of these, so that it is a session.
fn printed(path: &Path) -> std::io::Result<Option<Printed>> {
    let mut text = Vec::new();
    base::files::open(path)?.take(MOST_BYTES).read_to_end(&mut text)?;
    // A session has the time of each message before it.
    if text.starts_with(br#"{"at_ns":"#) {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&text);
    let accounts = account::read(&text).into_iter().chain(forms::read(&text)).collect();
    let printed = Printed { accounts, sides: downtime_log::read(&text) };
    Ok((!printed.accounts.is_empty() || !printed.sides.is_empty()).then_some(printed))
}

/// Gives something that was seen from then to then to the migration that began meanwhile.
fn begun_in(list: &mut [Migration], times_ns: RangeInclusive<u64>, give: impl FnOnce(&mut Migration)) {
    if let Some(migration) = list.iter_mut().find(|migration| times_ns.contains(&migration.began_ns)) {
        give(migration);
    }
}
