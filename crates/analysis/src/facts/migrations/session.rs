//! What sessions of QEMU's machine protocol tell of one migration: that of a source, that of a target, and which of them belong together.
//!
//! ```text
//! migrate                        told by whoever recorded the session
//! MIGRATION setup                somebody else began it, and QEMU told so
//! query-migrate: 730 ms so far   it was under way when it was asked: it began 730 ms before, give or take the time of the answer
//! ```
//! Where the capability `events` is off, statuses and passes (`dirty-sync-count`, which is what MIGRATION_PASS tells) come from answers.

use super::method::Told;
use super::{Began, CLOCKS_NS, Counted, Migration, Poll, is_over};
use base::qmp::{Event, Message, Way, is_under_way};
use serde_json::Value;

/// The guest stands still and waits for `migrate-continue`.
const HELD: &str = "pre-switchover";

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
    pub fn of_source(messages: &[Message], machine: &str) -> Option<Self> {
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
    pub fn meets(self, arrivals: &mut Vec<Arrival>) -> Migration {
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
    pub fn of_target(messages: &[Message], machine: &str) -> Option<Self> {
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

/// What is known so far.
#[derive(Default)]
struct Reading {
    found: Option<Migration>,
    /// Commands without an answer yet: when, which, its id.
    asked: Vec<(u64, String, Value)>,
    /// Its guest has not come to run: what is told of a migration is of one that arrives.
    is_incoming: bool,
    is_called_off: bool,
    /// What this side was told, and what when a migration began.
    told: Told,
    told_then: Told,
    /// Where it was told to send, or to listen.
    uri: Option<String>,
    is_emulated: Option<bool>,
    /// `dirty-sync-count` as it was told last, and passes by it.
    count: Option<u64>,
    counted: Vec<(u64, u64)>,
}

impl Reading {
    fn begin(&mut self, began_ns: u64, began: Began) {
        self.found = Some(Migration { began_ns, began, ..Migration::default() });
        (self.count, self.counted) = (None, Vec::new());
    }

    /// One that is heard of for the first time, if none is under way.
    fn hears(&mut self, began_ns: u64, began: Began) {
        // One that is paused may be recovered.
        let ended = |migration: &Migration| migration.ended.as_ref().is_some_and(|(_, how)| !is_under_way(how));
        let is_new = self.found.as_ref().is_none_or(ended);
        let is_earlier = |migration: &Migration| migration.began == Began::Before && began != Began::Before;
        if is_new && !self.is_incoming {
            self.begin(began_ns, began);
        } else if let Some(migration) = self.found.as_mut().filter(|migration| is_earlier(migration)) {
            (migration.began_ns, migration.began) = (began_ns, began);
        }
    }

    fn command(&mut self, Message { at_ns, message, .. }: &Message) {
        let command = message["execute"].as_str().unwrap_or_default();
        self.told.take(command, &message["arguments"]);
        // Unlike a method, limits may be changed meanwhile.
        if let Some(migration) = self.found.as_mut().filter(|migration| migration.ended.is_none()) {
            (migration.downtime_limit_ns, migration.max_bytes_per_s) = self.told.limits();
        }
        let uri = || message["arguments"]["uri"].as_str().map(str::to_owned);
        match command {
            "migrate" => {
                self.begin(*at_ns, Began::Told);
                (self.is_called_off, self.is_incoming) = (false, false);
                self.told_then = self.told.clone();
                if let Some(migration) = &mut self.found {
                    (migration.method, migration.uri) = (Some(self.told.method()), uri());
                    (migration.downtime_limit_ns, migration.max_bytes_per_s) = self.told.limits();
                }
            }
            "migrate_cancel" => self.is_called_off = true,
            "migrate-incoming" => (self.is_incoming, self.uri) = (true, uri()),
            // Whoever holds it lets it go on; that its thread then waits for a CPU is another cause.
            "migrate-continue" => {
                if let Some(migration) = &mut self.found {
                    migration.held_ns = migration.held_ns.map(|(from_ns, _)| (from_ns, (*at_ns).max(from_ns + 1)));
                }
            }
            _ => {}
        }
        self.asked.push((*at_ns, command.to_owned(), message["id"].clone()));
    }

    fn answer(&mut self, Message { at_ns, message, .. }: &Message) {
        // Answers come in the order of the commands; those of the greeting belong to none.
        let place = self.asked.iter().position(|(.., id)| *id == message["id"]);
        let Some((asked_ns, command, _)) = place.map(|place| self.asked.remove(place)) else { return };
        let answer = &message["return"];
        match command.as_str() {
            // A target that waits, in a session that somebody else's command is not in.
            "query-status" => {
                self.is_incoming |= answer["status"] == "inmigrate";
                if let Some(migration) = self.found.as_mut().filter(|_| !self.is_incoming) {
                    migration.runs_on_source = answer["running"].as_bool();
                }
            }
            "query-kvm" => self.is_emulated = answer["enabled"].as_bool().map(|enabled| !enabled),
            "query-migrate" => self.state(*at_ns, asked_ns, answer),
            _ => {}
        }
    }

    fn state(&mut self, at_ns: u64, asked_ns: u64, answer: &Value) {
        let status = answer["status"].as_str().unwrap_or_default();
        let poll = Poll::of(answer);
        if is_under_way(status) {
            match poll.total_ms {
                Some(ms) => {
                    // Whole milliseconds, counted somewhere between question and answer.
                    let error_ns = at_ns.saturating_sub(asked_ns).saturating_add(super::REPORTED_ERROR_NS);
                    self.hears(at_ns.saturating_sub(ms.saturating_mul(1_000_000)), Began::Counted { error_ns });
                }
                None => self.hears(at_ns, Began::Before),
            }
        }
        let Some(migration) = self.found.as_mut().filter(|_| !self.is_incoming) else { return };
        if let Some(count) = answer["ram"]["dirty-sync-count"].as_u64().filter(|_| migration.ended.is_none()) {
            // When a pass began that was under way already is not known, but for the first one.
            if count == 1 && self.count != Some(1) {
                self.counted.push((1, migration.began_ns));
            } else if self.count.is_some_and(|before| count > before) {
                self.counted.push((count, at_ns));
            }
            self.count = Some(count);
        }
        migration.polls.push((at_ns, poll));
        if migration.ended.is_none() {
            self.ended(status, at_ns);
        }
    }

    fn event(&mut self, event: &Event, at_ns: u64) {
        let status = event.data["status"].as_str().unwrap_or_default();
        match event.name.as_str() {
            "MIGRATION" if status == "setup" => self.hears(at_ns, Began::Told),
            "MIGRATION" if is_under_way(status) => self.hears(at_ns, Began::Before),
            "MIGRATION_PASS" => self.hears(at_ns, Began::Before),
            _ => {}
        }
        if event.name == "MIGRATION" {
            self.ended(status, at_ns);
        }
        let Some(migration) = &mut self.found else { return };
        if event.name == "MIGRATION" {
            match &mut migration.held_ns {
                None if status == HELD => migration.held_ns = Some((at_ns, at_ns)),
                Some((from_ns, until_ns)) if from_ns == until_ns => *until_ns = at_ns,
                _ => {}
            }
        }
        match event.name.as_str() {
            "MIGRATION_PASS" => migration.passes.extend(event.data["pass"].as_u64().map(|pass| (pass, at_ns))),
            "STOP" => migration.stopped_ns = Some(at_ns),
            _ => {}
        }
    }

    fn ended(&mut self, status: &str, at_ns: u64) {
        if !is_over(status) || std::mem::take(&mut self.is_incoming) {
            return;
        }
        let Some(migration) = &mut self.found else { return };
        // QEMU closes the connection before it notes that it was told to (`migrate_fd_cancel` of migration/migration.c, 7.2),
        // and whoever writes to it in between reports a failure.
        let status = if self.is_called_off && status == "failed" { "cancelled" } else { status };
        migration.ended = Some((at_ns, status.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn departs(messages: &[Message]) -> Option<Migration> {
        Departure::of_source(messages, "L0").map(|departure| departure.migration)
    }

    fn resumed(messages: &[Message]) -> Option<u64> {
        Arrival::of_target(messages, "L0")?.resumed_ns
    }

    fn to(at_ns: u64, id: u64, command: &str) -> Message {
        Message { at_ns, way: Way::ToQemu, message: json!({ "execute": command, "id": id }) }
    }

    fn from(at_ns: u64, message: Value) -> Message {
        Message { at_ns, way: Way::FromQemu, message }
    }

    fn event(us: u64, name: &str, data: Value) -> Message {
        from(0, json!({ "event": name, "data": data, "timestamp": { "seconds": 1, "microseconds": us } }))
    }

    #[test]
    fn a_session_tells_when_passes_began_and_what_was_answered_to_what() {
        let ram =
            |transferred: u64| json!({ "status": "active", "ram": { "transferred": transferred, "page-size": 4096 } });
        let messages = [
            from(1, json!({ "QMP": {} })),
            to(2, 0, "migrate"),
            from(3, json!({ "return": {}, "id": 0 })),
            event(10, "MIGRATION_PASS", json!({ "pass": 1 })),
            to(5, 1, "query-migrate"),
            to(6, 2, "query-status"),
            event(20, "MIGRATION_PASS", json!({ "pass": 2 })),
            from(7, json!({ "return": { "status": "running" }, "id": 2 })),
            from(8, json!({ "return": ram(100), "id": 1 })),
            event(30, "STOP", Value::Null),
            event(40, "MIGRATION", json!({ "status": "device" })),
            event(50, "MIGRATION", json!({ "status": "completed" })),
        ];
        let migration = departs(&messages).unwrap();
        let us = |us: u64| 1_000_000_000 + us * 1_000;
        assert_eq!(migration.began_ns, 2);
        assert_eq!(migration.passes, [(1, us(10)), (2, us(20))]);
        assert_eq!(
            (migration.stopped_ns, migration.ended.clone()),
            (Some(us(30)), Some((us(50), "completed".to_owned())))
        );
        let [(8, poll)] = &migration.polls[..] else { panic!("{:?}", migration.polls) };
        assert_eq!((poll.transferred_bytes, poll.zero_pages), (Some(100), None), "what is not told is missing");
        assert_eq!(departs(&messages[..1]), None);
        assert_eq!(resumed(&messages), None);
        let failed = || event(50, "MIGRATION", json!({ "status": "failed" }));
        let ended = |messages: &[Message]| departs(messages).unwrap().ended.unwrap().1;
        assert_eq!(ended(&[to(2, 0, "migrate"), to(3, 1, "migrate_cancel"), failed()]), "cancelled");
        assert_eq!(
            ended(&[to(2, 0, "migrate_cancel"), to(3, 1, "migrate"), failed()]),
            "failed",
            "that was another one"
        );
        let target = [to(1, 0, "migrate-incoming"), event(60, "RESUME", Value::Null)];
        assert_eq!(resumed(&target), Some(us(60)));
        assert_eq!(resumed(&target[1..]), None, "somebody let a guest go on that was never moved");
    }

    fn asked(at_ns: u64, id: u64, answer: Value) -> [Message; 2] {
        [to(at_ns - 1_000, id, "query-migrate"), from(at_ns, json!({ "return": answer, "id": id }))]
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn one_that_somebody_else_began_begins_with_what_is_first_heard_of_it() {
        let told = [
            event(10, "MIGRATION", json!({ "status": "setup" })),
            event(12, "MIGRATION_PASS", json!({ "pass": 1 })),
            event(13, "MIGRATION", json!({ "status": "active" })),
            event(50, "MIGRATION", json!({ "status": "completed" })),
        ];
        let us = |us: u64| 1_000_000_000 + us * 1_000;
        let migration = departs(&told).unwrap();
        assert_eq!((migration.began_ns, migration.began, migration.passes_are_polled), (us(10), Began::Told, false));
        let migration = departs(&told[1..]).unwrap();
        assert_eq!((migration.began_ns, migration.began), (us(12), Began::Before));
        assert_eq!(migration.total_ns(), None, "how long it had gone on is not known");
        // Where events are off, answers tell all of it.
        let poll = |ms: u64, pass: u64| json!({ "status": "active", "total-time": ms, "ram": { "dirty-sync-count": pass, "transferred": ms } });
        let kvm = [to(1, 90, "query-kvm"), from(2, json!({ "return": { "enabled": false }, "id": 90 }))];
        let begins =
            [kvm.to_vec(), asked(1_000 * MS, 0, json!({})).to_vec(), asked(1_100 * MS, 1, poll(70, 1)).to_vec()];
        let goes_on = [
            asked(1_200 * MS, 2, poll(170, 1)),
            asked(1_300 * MS, 3, poll(270, 2)),
            asked(1_400 * MS, 4, json!({ "status": "completed" })),
        ];
        let all = begins.into_iter().flatten().chain(goes_on.iter().flatten().cloned()).collect::<Vec<_>>();
        let migration = departs(&all).unwrap();
        assert_eq!((migration.began_ns, migration.began), (1_030 * MS, Began::Counted { error_ns: MS + 1_000 }));
        assert_eq!(
            (migration.passes.clone(), migration.passes_are_polled),
            (vec![(1, 1_030 * MS), (2, 1_300 * MS)], true)
        );
        assert_eq!(migration.ended, Some((1_400 * MS, "completed".to_owned())));
        assert_eq!(migration.is_emulated, Some(true));
        // Joined in its second pass: when that began is not known.
        let late: Vec<Message> = goes_on[1..].iter().flatten().cloned().collect();
        let migration = departs(&late).unwrap();
        assert_eq!((migration.began_ns, migration.passes.len()), (1_030 * MS, 0));
    }

    #[test]
    fn what_blocks_is_what_was_answered_last() {
        let blocks = asked(2_000, 0, json!({ "blocked": true, "blocked-reasons": ["VFIO"] }));
        assert_eq!(blocked(&blocks), ["VFIO"]);
        let no_more = asked(4_000, 1, json!({ "blocked": false }));
        assert_eq!(blocked(&[blocks, no_more].concat()), [""; 0]);
    }

    #[test]
    fn what_a_target_tells_that_waited_is_no_migration_of_its_own() {
        let waits = [to(1, 0, "query-status"), from(2, json!({ "return": { "status": "inmigrate" }, "id": 0 }))];
        let arrives = [
            event(10, "MIGRATION", json!({ "status": "setup" })),
            event(20, "RESUME", Value::Null),
            event(30, "MIGRATION", json!({ "status": "completed" })),
        ];
        let moves_on = [event(40, "MIGRATION", json!({ "status": "setup" })), event(50, "STOP", Value::Null)];
        let target = [&waits[..], &arrives[..]].concat();
        assert_eq!((departs(&target), resumed(&target)), (None, Some(1_000_020_000)));
        let both = [&target[..], &moves_on[..]].concat();
        assert_eq!(departs(&both).map(|migration| migration.began_ns), Some(1_000_040_000), "then it was moved on");
    }

    #[test]
    fn a_target_that_never_ran_the_guest_is_found_by_its_address_and_what_it_alone_was_told() {
        let with = |at_ns, command: &str, arguments: Value| Message {
            at_ns,
            way: Way::ToQemu,
            message: json!({ "execute": command, "arguments": arguments }),
        };
        let on = |name: &str| json!({ "capabilities": [{ "capability": name, "state": true }] });
        let uri = |path: &str| json!({ "uri": path });
        let source = [
            with(1, "migrate-set-capabilities", on("multifd")),
            with(10, "migrate", uri("unix:a")),
            event(20, "STOP", Value::Null),
            event(30, "MIGRATION", json!({ "status": "pre-switchover" })),
            event(50, "MIGRATION", json!({ "status": "device" })),
            event(60, "MIGRATION", json!({ "status": "failed" })),
            to(70, 5, "query-status"),
            from(71, json!({ "return": { "running": true }, "id": 5 })),
        ];
        let target = |at_ns, path: &str, name: &str| {
            let told = [with(1, "migrate-set-capabilities", on(name)), with(at_ns, "migrate-incoming", uri(path))];
            Arrival::of_target(&told, "B").unwrap()
        };
        let mut targets =
            vec![target(2, "unix:a", "multifd"), target(9, "unix:a", "events"), target(10, "unix:b", "events")];
        let met = Departure::of_source(&source, "A").unwrap().meets(&mut targets);
        assert_eq!(met.one_sided, [("multifd".to_owned(), true)], "the nearest one at that address");
        assert_eq!((targets.len(), met.runs_on_source, met.resumed_ns), (2, Some(true), None));
        let held_ns = |migration: Migration| migration.held_ns.map(|(from_ns, until_ns)| until_ns - from_ns);
        assert_eq!(held_ns(met), Some(20_000));
        let mut let_go = source.to_vec();
        let_go.insert(4, to(1_000_037_000, 4, "migrate-continue"));
        assert_eq!(
            held_ns(Departure::of_source(&let_go, "A").unwrap().migration),
            Some(7_000),
            "that is when it was let go"
        );
    }
}
