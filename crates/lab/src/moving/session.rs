//! What QEMU itself tells, over a connection of our own.
//!
//! Events say when, but only where whoever migrates has turned on the capability `events` (libvirt does); answers to `query-migrate` say how
//! much. Nothing but `query-*` is ever sent, and none of what measures dirty pages: `calc-dirty-rate` slows a migration down, and two of its
//! modes end a QEMU 7.2 without KVM.

use super::monitor::ADVICE;
use super::{Error, Shared};
use crate::qmp::Qmp;
use base::qmp::{ENDS, append, is_under_way};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// It greets at once, unless another program is connected.
const GREETS: Duration = Duration::from_secs(2);
/// QEMU answers no monitor while it saves devices; a guest that is dark for longer than this is another problem.
const ANSWER: Duration = Duration::from_secs(10);
/// How often it is asked during a migration, besides at each event: numbers change once a pass (`migration_update_counters`).
const WHILE_MOVING: Duration = Duration::from_millis(50);
/// How often it is asked before, where no event tells of the beginning.
const UNTOLD: Duration = Duration::from_millis(100);
/// How often it is asked before, where an event will.
const TOLD: Duration = Duration::from_secs(1);

/// What is asked once: whether it is a target that waits, whether it emulates, what is turned on.
const ONCE: [&str; 3] = ["query-status", "query-kvm", "query-migrate-capabilities"];

pub(super) fn connect(socket: &Path) -> Result<Qmp, Error> {
    Qmp::connect(socket, GREETS, clock_ns).map_err(|error| match error {
        Error::Refused { what, said } => Error::Refused { what, said: format!("{said}. {ADVICE}") },
        other => other,
    })
}

/// What keeps a guest from being migrated, by its own QEMU.
pub(super) fn blocked_reasons(socket: &Path) -> Result<Vec<String>, Error> {
    let told = connect(socket)?.execute("query-migrate", Value::Null, ANSWER)?;
    let reasons = told["blocked-reasons"].as_array().into_iter().flatten();
    Ok(reasons.filter_map(|reason| reason.as_str().map(str::to_owned)).collect())
}

/// Listens and asks until it is told to stop, or QEMU goes; `place` is that of `file`, for messages.
pub(super) fn follow(mut qmp: Qmp, file: File, place: &Path, shared: &Shared) -> Result<(), Error> {
    let mut watching = Watching { qmp: &mut qmp, file, place, shared };
    let told = watching.watch();
    let kept = watching.keep();
    shared.has_ended.fetch_or(told.is_err() || qmp.is_closed(), Ordering::Relaxed);
    match told {
        // Its end is the end of what can be seen.
        Err(_) if qmp.is_closed() => kept,
        told => told.and(kept),
    }
}

struct Watching<'a> {
    qmp: &'a mut Qmp,
    file: File,
    place: &'a Path,
    shared: &'a Shared,
}

impl Watching<'_> {
    fn watch(&mut self) -> Result<(), Error> {
        let mut has_events = false;
        for command in ONCE {
            match self.qmp.execute(command, Value::Null, ANSWER) {
                Ok(answer) => has_events |= is_on(&answer, "events"),
                Err(error) if self.qmp.is_closed() => return Err(error),
                // An old one may lack a command; then that is not known of it.
                Err(_) => {}
            }
        }
        let (mut asked, mut is_moving): (Option<Instant>, bool) = (None, false);
        while !self.shared.stop.load(Ordering::Relaxed) {
            let event = self.qmp.event(WHILE_MOVING)?;
            let every = if is_moving {
                WHILE_MOVING
            } else if has_events {
                TOLD
            } else {
                UNTOLD
            };
            if event.is_some() || asked.is_none_or(|asked| asked.elapsed() >= every) {
                asked = Some(Instant::now());
                let told = self.qmp.execute("query-migrate", Value::Null, ANSWER)?;
                let status = told["status"].as_str().unwrap_or_default();
                if is_moving && ENDS.contains(&status) {
                    self.shared.has_ended.store(true, Ordering::Relaxed);
                }
                is_moving = is_under_way(status);
            }
            self.keep()?;
        }
        Ok(())
    }

    fn keep(&mut self) -> Result<(), Error> {
        let messages = self.qmp.take_messages();
        append(&messages, &self.file).map_err(|error| Error::io(self.place, error))
    }
}

/// Whether a capability is on, by an answer to `query-migrate-capabilities`.
fn is_on(answer: &Value, capability: &str) -> bool {
    let all = answer.as_array().into_iter().flatten();
    all.filter(|one| one["capability"] == capability).any(|one| one["state"] == true)
}

/// CLOCK_REALTIME.
pub(super) fn clock_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}
