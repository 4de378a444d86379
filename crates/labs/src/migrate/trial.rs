//! How fast does QEMU send here where its limit does not hold it? Tried with guests that write to nothing, before anything is predicted.

use super::sector::Work;
use super::session::Ran;
use super::{Method, Settings};
use crate::machine::scratch::Scratch;
use base::qmp::{Event, Message, Way};
use lab::Error;
use lab::journal::Journal;
use lab::watch::Watch;
use std::path::Path;
use std::time::Duration;

/// How often each guest is moved: the time of one varies by half on a machine that does something else.
const REPEATS: usize = 3;
/// What is added to the memory of the filled one, all of it filled: 64 MiB, which take tens of milliseconds.
const FILLED_PAGES: u32 = 16_384;
const PAGE_BYTES: u64 = 4_096;
/// Such a guest moves in a second; a busy machine takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// What no connection carries.
const UNLIMITED_BYTES_PER_S: u64 = 1 << 40;

/// Moves of two guests: one of as much memory as asked, nearly all of it zeros, and one that has `filled_pages` besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trials {
    /// Those of the first one.
    pub empty: Vec<Trial>,
    pub filled: Vec<Trial>,
    pub filled_pages: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// From `migrate` until the first pass began.
    pub setup: Duration,
    /// From then until the guest was stopped.
    pub running: Duration,
    /// From then until it ran on the target.
    pub dark: Duration,
}

pub(super) fn run(
    settings: &Settings,
    cache: &Path,
    journal: &Journal,
    watch: &mut Watch<'_>,
) -> Result<Trials, Error> {
    let [mut empty, mut filled] = [Vec::new(), Vec::new()];
    for repeat in 0..REPEATS {
        for (trials, pages) in [(&mut empty, 1), (&mut filled, FILLED_PAGES)] {
            (watch.say)(&format!(
                "how fast QEMU sends without a limit: {} of {}",
                2 * repeat + usize::from(pages > 1) + 1,
                2 * REPEATS
            ));
            trials.push(once(&settings.tried_with(pages), cache, journal, watch)?);
        }
    }
    Ok(Trials { empty, filled, filled_pages: FILLED_PAGES - 1 })
}

fn once(settings: &Settings, cache: &Path, journal: &Journal, watch: &mut Watch<'_>) -> Result<Trial, Error> {
    let scratch = Scratch::new(cache)?;
    let Ran { source, target, .. } = super::moved(settings, Method::Precopy, scratch.path(), journal, watch)?;
    let why = "a guest that writes nothing did not move; state the rate of the connection: --link RATE";
    Trial::of(&source, &target).ok_or_else(|| Error::Malformed(why.to_owned()))
}

impl Trial {
    /// By the command and the events of both sides.
    fn of(source: &[Message], target: &[Message]) -> Option<Self> {
        let [passes_ns, stopped_ns] = [at_ns(source, "MIGRATION_PASS")?, at_ns(source, "STOP")?];
        let between = |from_ns: u64, to_ns: u64| to_ns.checked_sub(from_ns).map(Duration::from_nanos);
        Some(Self {
            setup: between(began_ns(source)?, passes_ns)?,
            running: between(passes_ns, stopped_ns)?,
            dark: between(stopped_ns, at_ns(target, "RESUME")?)?,
        })
    }
}

fn began_ns(session: &[Message]) -> Option<u64> {
    let is_begin = |one: &&Message| one.way == Way::ToQemu && one.message["execute"] == "migrate";
    session.iter().find(is_begin).map(|one| one.at_ns)
}

fn at_ns(session: &[Message], event: &str) -> Option<u64> {
    let mut events = session.iter().filter_map(|one| Event::of(&one.message));
    events.find(|one| one.name == event)?.at_ns
}

impl Settings {
    /// The same for a guest that has filled so many pages, in memory of their own but for the first one, and then waits.
    fn tried_with(&self, pages: u32) -> Self {
        Self {
            memory_bytes: self.memory_bytes + u64::from(pages - 1) * PAGE_BYTES,
            work: Work { pages, ticks: Work::IDLE_TICKS, anywhere: false },
            bandwidth_bytes_per_s: UNLIMITED_BYTES_PER_S,
            is_observed: false,
            patience: PATIENCE,
            injection: None,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(at_ns: u64, way: Way, message: serde_json::Value) -> Message {
        Message { at_ns, way, message }
    }

    fn event(name: &str, microseconds: u64) -> Message {
        let timestamp = json!({ "seconds": 5, "microseconds": microseconds });
        message(9, Way::FromQemu, json!({ "event": name, "timestamp": timestamp }))
    }

    #[test]
    fn a_move_is_timed_by_the_command_and_the_events_of_both_sides() {
        let begin = message(4_990_000_000, Way::ToQemu, json!({ "execute": "migrate" }));
        let source = [event("RESUME", 1), begin, event("MIGRATION_PASS", 5_000), event("STOP", 20_000)];
        let target = [event("STOP", 0), event("RESUME", 26_000)];
        let trial = Trial::of(&source, &target).unwrap();
        assert_eq!([trial.setup, trial.running, trial.dark], [15, 15, 6].map(Duration::from_millis));
        assert_eq!(Trial::of(&source, &[event("RESUME", 19_999)]), None, "no time runs backwards");
    }
}
