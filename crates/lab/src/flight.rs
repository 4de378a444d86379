//! The last seconds of raw events, beside something else that observes: this program once more, as `record --flight`, one flight after the other.
//!
//! ```text
//! look --> child: ring of the last --keep --freeze, a broken budget--> look: a recording, and the next flight
//!                                         --drop---------------------> nothing
//! ```
//! What a recorder changes of the host is in the journal; one whose parent was killed ends by itself.

use crate::Error;
use crate::program::{cpu_time, tie};
use crate::trigger::TRIGGER;
use base::recording::{Ended, EndedBy, Recording};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Less than pages may be late on a busy host, and nothing of what led to a trigger might be there.
pub const LEAST_KEEP: Duration = Duration::from_secs(1);

/// Room for some pages of each of a few hundred CPUs.
pub const LEAST_ROOM_BYTES: u64 = 16 << 20;

/// A recorder that cannot start now may later: a disk gets room, a tracer ends.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// What is kept, and what ends it by itself.
#[derive(Debug, Clone)]
pub struct Flight {
    /// This program.
    pub program: PathBuf,
    /// How much before the end.
    pub keep: Duration,
    /// Most bytes of it on the disk.
    pub most_bytes: u64,
    /// A budget by name or file, as `record --stop-on` takes it.
    pub stop_on: Option<OsString>,
    /// Where changes of the host are noted.
    pub journal: OsString,
    /// Where processes are, as `/proc`.
    pub proc: PathBuf,
}

/// What a flight came to.
#[derive(Debug)]
pub enum News {
    /// A recording, and what ended it: a breach or a trigger.
    Saved { place: PathBuf, ended: Ended },
    /// It ended without one, and this is what it said.
    Failed(String),
}

/// Flights, one after the other, each with a place of its own.
pub struct Flights {
    flight: Flight,
    place: Box<dyn FnMut() -> PathBuf + Send>,
    flying: Option<Flying>,
    /// When to try again, after one that failed.
    due: Option<Instant>,
    over: Duration,
}

impl Flights {
    /// None yet: the first one begins with the first look. `place` names where the next recording goes.
    pub fn new(flight: Flight, place: impl FnMut() -> PathBuf + Send + 'static) -> Self {
        Self { flight, place: Box::new(place), flying: None, due: None, over: Duration::ZERO }
    }

    /// Begins the next flight if none is in the air, and says what came of one that has ended.
    pub fn look(&mut self, now: Instant) -> Option<News> {
        let Some(mut flying) = self.flying.take() else {
            if self.due.is_some_and(|due| now < due) {
                return None;
            }
            let begun = Flying::start(&self.flight, (self.place)());
            return begun
                .map(|flying| self.flying = Some(flying))
                .err()
                .map(|error| self.failed(error.to_string(), now));
        };
        match flying.look() {
            Ok(None) => {
                self.flying = Some(flying);
                None
            }
            Ok(Some(Ok(ended))) => {
                (self.over, self.due) = (self.over + flying.used, None);
                Some(News::Saved { place: flying.place, ended })
            }
            Ok(Some(Err(said))) => {
                self.over += flying.used;
                flying.cancel();
                Some(self.failed(said, now))
            }
            Err(error) => {
                flying.cancel();
                Some(self.failed(error.to_string(), now))
            }
        }
    }

    /// Has the last seconds become a recording that says `why`, which a later look tells.
    ///
    /// # Errors
    /// If nothing records now.
    pub fn freeze(&self, why: &str) -> Result<(), Error> {
        self.flying.as_ref().map_or_else(|| Err(not_yet()), |flying| flying.freeze(why))
    }

    /// CPU time of flights that are over, and of the one in the air when it was looked at last.
    pub fn used(&self) -> (Duration, Duration) {
        (self.over, self.flying.as_ref().map_or(Duration::ZERO, |flying| flying.used))
    }

    fn failed(&mut self, said: String, now: Instant) -> News {
        self.due = Some(now + RETRY_AFTER);
        News::Failed(format!("{said}; the next flight recorder starts in {} s", RETRY_AFTER.as_secs()))
    }
}

impl Drop for Flights {
    /// Nothing broke in what is in the air.
    fn drop(&mut self) {
        self.flying.take().into_iter().for_each(Flying::cancel);
    }
}

fn not_yet() -> Error {
    Error::Absent("the flight recorder does not record yet".to_owned())
}

/// A flight in the air.
struct Flying {
    child: Child,
    place: PathBuf,
    /// Its `stat`, and the CPU time that this showed last.
    stat: PathBuf,
    used: Duration,
}

impl Flying {
    fn start(flight: &Flight, place: PathBuf) -> Result<Self, Error> {
        let mut command = Command::new(&flight.program);
        command
            .args(["record", "--quiet", "--no-progress", "--no-self-check", "--flight", "--trigger", "fifo", "--keep"])
            .arg(format!("{}ms", flight.keep.as_millis()))
            .arg("--keep-size")
            .arg(format!("{}K", flight.most_bytes >> 10))
            .args(flight.stop_on.iter().flat_map(|budget| [OsString::from("--stop-on"), budget.clone()]))
            .arg("-o")
            .arg(&place)
            .env("KVMSCOPE_JOURNAL", &flight.journal)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C in a terminal is for its parent.
            .process_group(0);
        tie(&mut command, Signal::INT);
        let child = command.spawn().map_err(|error| Error::io(&flight.program, error))?;
        let stat = flight.proc.join(format!("{}/stat", child.id()));
        Ok(Self { child, place, stat, used: Duration::ZERO })
    }

    fn freeze(&self, why: &str) -> Result<(), Error> {
        let pipe = self.place.join(TRIGGER);
        // A pipe without its reader would have us wait.
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32;
        let opened = File::options().write(true).custom_flags(flags).open(&pipe);
        let mut open = opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => not_yet(),
            _ => Error::io(&pipe, error),
        })?;
        writeln!(open, "{}", why.replace(['\n', '\r'], " ")).map_err(|error| Error::io(&pipe, error))
    }

    /// What ended it, or what it said where that was nothing that makes a recording; `None` while it flies.
    fn look(&mut self) -> Result<Option<Result<Ended, String>>, Error> {
        self.used = cpu_time(&self.stat).unwrap_or(self.used);
        let Some(status) = self.child.try_wait().map_err(|error| Error::io(&self.place, error))? else {
            return Ok(None);
        };
        let ended = Recording::open(&self.place).ok().and_then(|recording| recording.ended);
        let ended = ended.filter(|ended| matches!(ended.by, EndedBy::Breach | EndedBy::Trigger));
        let said = || self.complaint().unwrap_or_else(|| format!("the flight recorder ended: {status}"));
        Ok(Some(ended.ok_or_else(said)))
    }

    /// Ends it, and leaves no recording.
    fn cancel(mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // It may have ended in this moment.
            let _ = Pid::from_raw(self.child.id() as i32).map(|pid| kill_process(pid, Signal::INT));
            let _ = self.child.wait();
        }
        // What cannot be removed is a partial recording, and says so.
        let _ = std::fs::remove_dir_all(&self.place);
    }

    /// What it said last before it ended.
    fn complaint(&mut self) -> Option<String> {
        let mut said = String::new();
        // What it said until then is all there is.
        let _ = self.child.stderr.take()?.read_to_string(&mut said);
        let line = said.trim_end().lines().last()?.trim_start_matches("kvmscope: ").to_owned();
        (!line.is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// A program that does what a shell script says in place of recording; its arguments end in the place.
    fn flights(directory: &Path, script: &str) -> Flights {
        let program = directory.join("program");
        std::fs::write(&program, format!("#!/bin/sh\nfor place; do :; done\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let flight = Flight {
            program,
            keep: Duration::from_secs(10),
            most_bytes: 1 << 24,
            stop_on: None,
            journal: directory.join("journal").into(),
            proc: "/proc".into(),
        };
        let (place, mut number) = (directory.to_owned(), 0);
        Flights::new(flight, move || {
            number += 1;
            place.join(format!("flight-{number}"))
        })
    }

    fn news(flights: &mut Flights, now: Instant) -> News {
        loop {
            if let Some(news) = flights.look(now) {
                return news;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    const MANIFEST: &str = r#"{"schema": "kvmscope-recording/2", "created": "2026-12-01T00:42:26Z", "tool": "test", "emulated": null,
        "machines": [], "parts": [], "clock_pairs": [], "ended": {"by": "trigger", "text": "a line in its pipe: alert"}}"#;

    #[test]
    fn what_is_frozen_is_a_recording_and_the_next_flight_begins() {
        let place = tempfile::tempdir().unwrap();
        let script = format!(
            "mkdir $place; mkfifo $place/trigger; read line <$place/trigger; rm $place/trigger\ncat >$place/recording.json <<'end'\n{MANIFEST}\nend"
        );
        let mut flights = flights(place.path(), &script);
        let now = Instant::now();
        assert!(flights.freeze("early").unwrap_err().to_string().contains("does not record yet"));
        assert!(flights.look(now).is_none());
        while flights.freeze("alert\nof two lines").is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let News::Saved { place: saved, ended } = news(&mut flights, now) else { panic!("it was frozen") };
        assert_eq!((saved, ended.by), (place.path().join("flight-1"), EndedBy::Trigger));
        assert!(flights.look(now).is_none() && flights.flying.is_some(), "the next one");
        drop(flights);
        assert!(place.path().join("flight-1").is_dir() && !place.path().join("flight-2").exists());
    }

    #[test]
    fn one_that_fails_says_why_and_is_tried_again_later() {
        let place = tempfile::tempdir().unwrap();
        let mut flights = flights(place.path(), "mkdir $place; echo 'kvmscope: no tracefs here' >&2; exit 1");
        let now = Instant::now();
        let News::Failed(said) = news(&mut flights, now) else { panic!("it failed") };
        assert_eq!(said, "no tracefs here; the next flight recorder starts in 30 s");
        assert!(flights.look(now).is_none() && flights.flying.is_none() && !place.path().join("flight-1").exists());
        assert!(flights.look(now + RETRY_AFTER).is_none() && flights.flying.is_some());
    }
}
