//! A recorder that flies along: it keeps the last stretch alone, until a vCPU breaks a budget or somebody pulls its trigger.
//!
//! ```text
//! pages --> ring of the last --keep --> a breach, a trigger --(--after)--> the last --keep become the recording
//!                                       a signal, the time  ------------>
//! ```

use super::breach::{Goals, Judged, Seen, every};
use crate::arguments::{duration, kept, read_budget_text};
use crate::completed::budgets;
use base::recording::{Ended, EndedBy};
use clap::{Args, ValueEnum};
use lab::flight::LEAST_ROOM_BYTES;
use lab::journal::Journal;
use lab::tracefs::{Keep, Meter, buffer_kib};
use lab::trigger::TriggerPipe;
use signal_hook::consts::SIGUSR1;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Options of a flight recorder.
#[derive(Args)]
#[command(next_help_heading = "Flight recorder")]
pub(super) struct FlightOptions {
    /// Record continuously, and keep only the most recent events
    #[arg(long, conflicts_with_all = ["perf", "lttng"])]
    flight: bool,
    /// How much time before the end to keep
    #[arg(long, value_name = "TIME", value_parser = kept, default_value = "10s", requires = "flight")]
    keep: Duration,
    /// Maximum disk space for kept events; if they need more, less time is kept
    #[arg(long, value_name = "SIZE", value_parser = room, default_value = "1G", requires = "flight")]
    keep_size: u64,
    /// End when a vCPU breaks this budget: kvm4nfv-2015, kvm4nfv-future, or a file (docs/read/latency.md)
    #[arg(long, value_name = "NAME|FILE", add = budgets(), requires = "flight")]
    stop_on: Option<PathBuf>,
    /// End on signal SIGUSR1, or at a line written into the named pipe DIR/trigger; repeatable
    #[arg(long, value_enum, value_name = "SIGUSR1|fifo", hide_possible_values = true, requires = "flight")]
    trigger: Vec<Trigger>,
    /// How long to continue after a breach or a trigger
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "200ms", requires = "flight")]
    after: Duration,
}

/// What pulls.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Trigger {
    #[value(name = "SIGUSR1")]
    Signal,
    #[value(name = "fifo")]
    Pipe,
}

/// A flight recorder in the air.
pub(super) struct Flight {
    signal: Option<Arc<AtomicBool>>,
    pipe: Option<TriggerPipe>,
    judged: Option<Judged>,
    after: Duration,
    /// Why it ends, and when.
    told: Option<(Told, Instant)>,
}

/// What ends it before its time.
enum Told {
    Breach(Box<Seen>),
    Trigger(String),
}

impl FlightOptions {
    /// What is kept, if not all is.
    pub(super) fn keep(&self) -> Option<Keep> {
        self.flight.then_some(Keep { length: self.keep, most_bytes: self.keep_size })
    }

    /// The goals of the budget that ends it.
    pub(super) fn goals(&self) -> anyhow::Result<Option<Goals>> {
        let goals = |name: &PathBuf| {
            let (budget, text) = read_budget_text(name)?;
            Ok(Goals::of(&budget, text)?)
        };
        self.stop_on.as_ref().map(goals).transpose()
    }

    /// How often the recording is looked at, if it is judged.
    pub(super) fn looks(&self) -> Option<Duration> {
        self.stop_on.as_ref().map(|_| every(self.keep))
    }

    /// Makes the triggers of a recording in `root`, where this is a flight recorder.
    pub(super) fn start(&self, root: &Path, journal: &Journal) -> anyhow::Result<Option<Flight>> {
        if !self.flight {
            return Ok(None);
        }
        let signal = self.trigger.contains(&Trigger::Signal).then(Arc::<AtomicBool>::default);
        if let Some(raised) = &signal {
            signal_hook::flag::register(SIGUSR1, Arc::clone(raised))?;
        }
        let pipe = self.trigger.contains(&Trigger::Pipe).then(|| TriggerPipe::make(root, journal)).transpose()?;
        Ok(Some(Flight { signal, pipe, judged: None, after: self.after, told: None }))
    }
}

impl Flight {
    /// Judges the recording from now on.
    pub(super) fn judge(&mut self, judged: Judged) {
        self.judged = Some(judged);
    }

    /// What else ends it, for people who wait.
    pub(super) fn ends(&self) -> String {
        let breach = self.judged.as_ref().map(|judged| format!("a breach of {}", judged.goals()));
        let signal = self.signal.as_ref().map(|_| format!("SIGUSR1 to process {}", std::process::id()));
        let pipe = self.pipe.as_ref().map(|pipe| format!("a line in {}", pipe.path().display()));
        let all: Vec<String> = breach.into_iter().chain(signal).chain(pipe).collect();
        if all.is_empty() { String::new() } else { format!("; also ended by {}", all.join(", or by ")) }
    }

    /// True once it has gone on for long enough after a breach or a trigger.
    ///
    /// # Errors
    /// If it cannot be judged.
    pub(super) fn is_over(&mut self, now: Instant) -> anyhow::Result<bool> {
        if self.told.is_none() {
            let seen = self.judged.as_mut().map_or(Ok(None), |judged| judged.look(now))?;
            let told = seen.map(|seen| Told::Breach(Box::new(seen))).or_else(|| self.pulled().map(Told::Trigger));
            self.told = told.map(|told| (told, now + self.after));
        }
        Ok(self.told.as_ref().is_some_and(|(_, at)| now >= *at))
    }

    fn pulled(&mut self) -> Option<String> {
        if self.signal.as_ref().is_some_and(|raised| raised.load(Ordering::Relaxed)) {
            return Some("signal SIGUSR1".to_owned());
        }
        let line = self.pipe.as_mut()?.pulled()?;
        Some(if line.is_empty() {
            "an empty line in its pipe".to_owned()
        } else {
            format!("a line in its pipe: {line}")
        })
    }

    /// Why it ended, where `otherwise` is what ended it if nothing told it to; the recording's trace is at `trace`.
    pub(super) fn ended(self, otherwise: EndedBy, trace: &Path) -> anyhow::Result<Ended> {
        let text = match (self.told, otherwise) {
            (Some((Told::Breach(seen), _)), _) => {
                return Ok(Ended { by: EndedBy::Breach, text: format!("a breach: {}", seen.line(trace)?) });
            }
            (Some((Told::Trigger(text), _)), _) => return Ok(Ended { by: EndedBy::Trigger, text }),
            (None, EndedBy::Time) => "its time limit",
            (None, EndedBy::Command) => "the end of its command",
            (None, EndedBy::Signal | EndedBy::Trigger | EndedBy::Breach) => "a signal",
        };
        let judged = self.judged.map_or_else(String::new, |judged| format!("; {}", judged.summary()));
        Ok(Ended { by: otherwise, text: format!("{text}{judged}") })
    }
}

/// What was kept, for stdout.
pub(super) fn summary(ended: &Ended, flown: Duration, output: &Path, meter: &Meter) -> String {
    let kept = meter.kept();
    let (flown, kept) = (flown.max(kept).as_secs_f64(), kept.as_secs_f64());
    let place = output.display();
    format!(
        "ended by {}\nkept the last {kept:.1} s of {flown:.1} s in {place}: {}",
        ended.text,
        super::status::lost(meter)
    )
}

fn room(text: &str) -> Result<u64, String> {
    let kib = buffer_kib(text).ok_or_else(|| "write a size such as 256M or 2G".to_owned())?;
    match kib.checked_mul(1 << 10) {
        Some(bytes) if bytes >= LEAST_ROOM_BYTES => Ok(bytes),
        Some(_) => Err("16M is the minimum".to_owned()),
        None => Err("that is larger than any disk".to_owned()),
    }
}
