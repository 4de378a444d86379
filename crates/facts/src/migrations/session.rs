//! What sessions of QEMU's machine protocol tell of one migration: that of a source, that of a target, and which of them belong together.
//!
//! ```text
//! migrate                        told by whoever recorded the session
//! MIGRATION setup                somebody else began it, and QEMU told so
//! query-migrate: 730 ms so far   it was under way when it was asked: it began 730 ms before, give or take the time of the answer
//! ```
//! Where the capability `events` is off, statuses and passes (`dirty-sync-count`, which is what MIGRATION_PASS tells) come from answers.

mod reading;

use super::method::Told;
use super::{CLOCKS_NS, Counted, Migration};
use base::qmp::{Event, Message, Way};
use reading::Reading;
use serde_json::Value;

/// What a source's session tells.
pub(super) struct Departure {
    pub migration: Migration,
    told: Told,
}

/// What a target's session tells.
pub(super) struct Arrival {
    machine: String,
    /// When it was told to wait for a guest, or was first seen to.
    listened_ns: u64,
    uri: Option<String>,
    told: Told,
    /// When the guest came to run there.
    pub resumed_ns: Option<u64>,
    blocktime_ms: Option<u64>,
    counted: Vec<Counted>,
}

impl Departure {
    /// That of a source's session; `None` if it migrates nothing. Of several, the last one.
    pub(super) fn of_source(messages: &[Message], machine: &str) -> Option<Self> {
        let mut reading = Reading::default();
        for message in messages {
            match message.way {
                Way::ToQemu => reading.command(message),
                Way::FromQemu => match Event::of(&message.message) {
                    Some(event) => reading.event(&event, event.at_ns.unwrap_or(message.at_ns)),
                    None => reading.answer(message),
                },
            }
        }
        let mut migration = reading.found?;
        migration.is_emulated = reading.is_emulated;
        migration.machines = [Some(machine.to_owned()), None];
        migration.counted = [counted(messages), Vec::new()];
        if migration.passes.is_empty() {
            migration.passes_are_polled = !reading.counted.is_empty();
            migration.passes = reading.counted;
        }
        Some(Self { migration, told: reading.told_then })
    }

    /// With what its target told, which is taken away: the one that ran the guest first after it was stopped here, or, where the guest never
    /// came, the one that listened at that address at the time.
    pub(super) fn meets(self, arrivals: &mut Vec<Arrival>) -> Migration {
        let Self { mut migration, told } = self;
        // The clocks of two hosts differ by less than a run takes.
        let ran = |arrival: &Arrival, stopped_ns: u64| {
            arrival.resumed_ns.is_some_and(|resumed_ns| resumed_ns.saturating_add(CLOCKS_NS) >= stopped_ns)
        };
        let place = if migration.is_completed() {
            migration.stopped_ns.and_then(|stopped_ns| arrivals.iter().position(|arrival| ran(arrival, stopped_ns)))
        } else {
            let is_there = |arrival: &Arrival| arrival.uri.is_some() && arrival.uri == migration.uri;
            let there = arrivals.iter().enumerate().filter(|(_, arrival)| is_there(arrival));
            there.min_by_key(|(_, arrival)| arrival.listened_ns.abs_diff(migration.began_ns)).map(|(place, _)| place)
        };
        let Some(arrival) = place.map(|place| arrivals.remove(place)) else { return migration };
        // Of a side that somebody else told, nothing is known.
        if migration.uri.is_some() && arrival.uri.is_some() {
            migration.one_sided = told.one_sided(&arrival.told);
        }
        migration.machines[1] = Some(arrival.machine);
        if migration.is_completed() {
            migration.resumed_ns = arrival.resumed_ns;
            migration.blocktime_ms = arrival.blocktime_ms;
            let [_, of_target] = &mut migration.counted;
            *of_target = arrival.counted;
        }
        migration
    }
}

impl Arrival {
    /// That of a session; `None` if it is of none that waits for a guest.
    pub(super) fn of_target(messages: &[Message], machine: &str) -> Option<Self> {
        let mut reading = Reading::default();
        let mut found: Option<Self> = None;
        for message in messages {
            let event = Event::of(&message.message).filter(|_| message.way == Way::FromQemu);
            match (message.way, &event) {
                (Way::ToQemu, _) => reading.command(message),
                (Way::FromQemu, Some(_)) => {}
                (Way::FromQemu, None) => reading.answer(message),
            }
            if reading.is_incoming && found.is_none() {
                let (listened_ns, uri, told) = (message.at_ns, reading.uri.clone(), reading.told.clone());
                let machine = machine.to_owned();
                let (resumed_ns, blocktime_ms, counted) = (None, None, Vec::new());
                found = Some(Self { machine, listened_ns, uri, told, resumed_ns, blocktime_ms, counted });
            }
            let Some(arrival) = &mut found else { continue };
            if let Some(event) = event.filter(|event| event.name == "RESUME" && arrival.resumed_ns.is_none()) {
                arrival.resumed_ns = event.at_ns;
            }
            let blocktime_ms = message.message["return"]["postcopy-blocktime"].as_u64();
            arrival.blocktime_ms = blocktime_ms.or(arrival.blocktime_ms);
        }
        found.map(|arrival| Self { told: reading.told, counted: counted(messages), ..arrival })
    }
}

/// Why its QEMU said that its guest cannot be migrated, when it was asked last.
pub(super) fn blocked(messages: &[Message]) -> Vec<String> {
    let answers = messages.iter().filter(|one| one.way == Way::FromQemu).map(|one| &one.message["return"]);
    let mut of_migrations =
        answers.filter(|answer| answer["blocked"].is_boolean() || answer["blocked-reasons"].is_array());
    let reasons = of_migrations.next_back().and_then(|answer| answer["blocked-reasons"].as_array());
    reasons.into_iter().flatten().filter_map(|reason| reason.as_str().map(str::to_owned)).collect()
}

/// What a guest counts its work with, read through its QEMU: `xp /1xw ADDRESS` of the monitor for people, and when each answer came.
pub(super) fn counted(messages: &[Message]) -> Vec<Counted> {
    let mut asked: Vec<(&Value, &str)> = Vec::new();
    let mut counted = Vec::new();
    for Message { at_ns, way, message } in messages {
        match way {
            Way::ToQemu => {
                let line = message["arguments"]["command-line"].as_str().unwrap_or_default();
                asked.extend(line.strip_prefix("xp /1xw ").map(|address| (&message["id"], address)));
            }
            Way::FromQemu => {
                let Some(place) = asked.iter().position(|(id, _)| **id == message["id"]) else { continue };
                let (_, address) = asked.remove(place);
                // `0000000000100000: 0x00001234`
                let word = message["return"].as_str().and_then(|said| said.split_once(": 0x"));
                let count = word.and_then(|(_, word)| u32::from_str_radix(word.trim(), 16).ok());
                counted.extend(count.map(|count| Counted { at_ns: *at_ns, address: address.to_owned(), count }));
            }
        }
    }
    counted
}

#[cfg(test)]
mod tests;
