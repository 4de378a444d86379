//! The last seconds before something broke: a flight recorder all the time, frozen by a budget, a signal or a line in a pipe.
//!
//! ```text
//! record --flight (a child) --budget broken, SIGUSR1, a line in DIR/trigger--> a recording --> the next flight
//! ```

use super::keep::Keep;
use super::open_metrics::{Text, label};
use super::{locked, say, words};
use base::recording::EndedBy;
use lab::flight::{Flight, Flights, News};
use lab::journal::Journal;
use lab::trigger::TriggerPipe;
use signal_hook::consts::SIGUSR1;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// How often is looked whether something was frozen, or should be.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What flights came to.
#[derive(Debug, Default)]
pub(crate) struct Frozen {
    /// Recordings by what froze them.
    saved: BTreeMap<&'static str, u64>,
    failed: u64,
    /// CPU time of flights that are over, and of the one in the air.
    used: (Duration, Duration),
}

impl Frozen {
    /// CPU time of flights that are over, which the system adds to what this process has used.
    pub(crate) fn over(&self) -> Duration {
        self.used.0
    }

    pub(crate) fn text(&self) -> String {
        let mut out = Text::default();
        let saved = ["breach", "trigger"].map(|by| (label("by", by), *self.saved.get(by).unwrap_or(&0) as f64));
        out.counter("kvmscope_flights", "", "Recordings of the last seconds, by what froze them.", &saved);
        let one = |value: f64| [(String::new(), value)];
        let failed = one(self.failed as f64);
        out.counter("kvmscope_flights_failed", "", "Flight recorders that ended without a recording.", &failed);
        let cpu = one((self.used.0 + self.used.1).as_secs_f64());
        out.counter("kvmscope_flight_cpu_seconds", "seconds", "CPU time of flight recorders.", &cpu);
        out.0
    }
}

/// Flies until it is dropped.
pub(crate) struct Flown {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flown {
    /// Begins to fly, one flight after the other, into the directory of `keep`; `frozen` has what they came to.
    ///
    /// # Errors
    /// If the pipe cannot be made: another agent has one there, or the file system has none.
    pub(crate) fn start(flight: Flight, keep: Keep, frozen: Arc<Mutex<Frozen>>) -> anyhow::Result<Self> {
        let raised = Arc::<AtomicBool>::default();
        signal_hook::flag::register(SIGUSR1, Arc::clone(&raised))?;
        let mut pipe = TriggerPipe::make(&keep.directory, &Journal::new(&flight.journal, &flight.proc))?;
        let kept = words(flight.keep);
        let path = base::shell::printable(&pipe.path().display().to_string()).into_owned();
        say(&format!(
            "the last {kept} are kept: SIGUSR1 to process {}, or a line in {path}, saves them",
            std::process::id()
        ));
        let ends = Arc::<AtomicBool>::default();
        let until = Arc::clone(&ends);
        let fly = move || {
            let placed = keep.clone();
            let mut flights = Flights::new(flight, move || placed.place(SystemTime::now()));
            while !until.load(Ordering::Relaxed) {
                let asked = match raised.swap(false, Ordering::Relaxed) {
                    true => Some("signal SIGUSR1".to_owned()),
                    false => pipe.next(),
                };
                if let Some(Err(error)) = asked.map(|why| flights.freeze(&why)) {
                    say(&format!("nothing was saved: {error}"));
                }
                let news = flights.look(Instant::now());
                let mut frozen = locked(&frozen);
                frozen.used = flights.used();
                match news {
                    Some(News::Saved { place, ended }) => {
                        let by = if ended.by == EndedBy::Breach { "breach" } else { "trigger" };
                        *frozen.saved.entry(by).or_default() += 1;
                        drop(frozen);
                        let shown = base::shell::quoted(&place.display().to_string()).into_owned();
                        say(&format!("the last {kept} are saved, ended by {}: kvmscope report {shown}", ended.text));
                        if let Err(error) = keep.prune(0, SystemTime::now(), Some(&place)) {
                            process::exit::complain(&error);
                        }
                    }
                    Some(News::Failed(said)) => {
                        frozen.failed += 1;
                        drop(frozen);
                        process::exit::complain(&anyhow::anyhow!("{said}"));
                    }
                    None => drop(frozen),
                }
                std::thread::sleep(LOOK_EVERY);
            }
        };
        // The kernel ends a recorder with the thread that started it.
        let thread = std::thread::Builder::new().name("flights".to_owned()).spawn(fly)?;
        Ok(Self { ends, thread: Some(thread) })
    }
}

impl Drop for Flown {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}
