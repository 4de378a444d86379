//! A session, message by message: what is known of its migration so far.

use super::super::method::Told;
use super::super::{Began, Migration, Poll, REPORTED_ERROR_NS, is_over};
use base::qmp::{Event, Message, is_under_way};
use serde_json::Value;

/// The guest stands still and waits for `migrate-continue`.
const HELD: &str = "pre-switchover";

#[derive(Default)]
pub(super) struct Reading {
    pub found: Option<Migration>,
    /// Commands without an answer yet: when, which, its id.
    asked: Vec<(u64, String, Value)>,
    /// Its guest has not come to run: what is told of a migration is of one that arrives.
    pub(crate) is_incoming: bool,
    is_called_off: bool,
    /// What this side was told, and what when a migration began.
    pub told: Told,
    pub(crate) told_then: Told,
    /// Where it was told to send, or to listen.
    pub uri: Option<String>,
    pub is_emulated: Option<bool>,
    /// `dirty-sync-count` as it was told last, and passes by it.
    count: Option<u64>,
    pub counted: Vec<(u64, u64)>,
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

    pub(super) fn command(&mut self, Message { at_ns, message, .. }: &Message) {
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

    pub(super) fn answer(&mut self, Message { at_ns, message, .. }: &Message) {
        // Answers come in the order of the commands; those of the greeting belong to none.
        let place = self.asked.iter().position(|(.., id)| *id == message["id"]);
        let Some((asked_ns, command, _)) = place.map(|place| self.asked.remove(place)) else { return };
        let answer = &message["return"];
        match command.as_str() {
            // A target that waits, in a session that somebody else's command is not in. It has never been a source: what was heard before
            // this answer was of the guest that arrives.
            "query-status" if answer["status"] == "inmigrate" => (self.is_incoming, self.found) = (true, None),
            "query-status" => {
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
        // What was asked before a migration was over, and is answered afterwards, tells of no other one.
        let ended_ns = self.found.as_ref().and_then(|migration| Some(migration.ended.as_ref()?.0));
        if is_under_way(status) && ended_ns.is_none_or(|ended_ns| asked_ns > ended_ns) {
            match poll.total_ms {
                Some(ms) => {
                    // Whole milliseconds, counted somewhere between question and answer.
                    let error_ns = at_ns.saturating_sub(asked_ns).saturating_add(REPORTED_ERROR_NS);
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

    pub(super) fn event(&mut self, event: &Event, at_ns: u64) {
        let status = event.data["status"].as_str().unwrap_or_default();
        match event.name.as_str() {
            "MIGRATION" if status == "setup" => self.hears(at_ns, Began::Told),
            "MIGRATION" if is_under_way(status) => self.hears(at_ns, Began::Before),
            // One that has failed may still tell of its first pass; another one tells of its setup before.
            "MIGRATION_PASS" if self.found.is_none() => self.hears(at_ns, Began::Before),
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
