//! A recorder that flies along: it keeps the last stretch alone, until somebody pulls its trigger.
//!
//! ```text
//! pages --> ring of the last --keep --> a trigger, a signal, the time --(--after)--> the last --keep become the recording
//! ```

use crate::arguments::duration;
use base::recording::{Ended, EndedBy};
use clap::{Args, ValueEnum};
use lab::journal::Journal;
use lab::tracefs::{Keep, Meter, buffer_kib};
use lab::trigger::TriggerPipe;
use signal_hook::consts::SIGUSR1;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Less than pages may be late on a busy host, and nothing of what led to a trigger might be there.
const LEAST_KEEP: Duration = Duration::from_secs(1);

/// Room for some pages of each of a few hundred CPUs.
const LEAST_ROOM_KIB: u64 = 16 << 10;

/// Options of a flight recorder.
#[derive(Args)]
#[command(next_help_heading = "Flight recorder")]
pub struct FlightOptions {
    /// Record without end, and keep only what happened last
    #[arg(long, conflicts_with_all = ["perf", "lttng"])]
    flight: bool,
    /// How much is kept of what happened before the end
    #[arg(long, value_name = "TIME", value_parser = kept, default_value = "10s", requires = "flight")]
    keep: Duration,
    /// Most that kept events may take on disk; where they need more, less time is kept
    #[arg(long, value_name = "SIZE", value_parser = room, default_value = "1G", requires = "flight")]
    keep_size: u64,
    /// End on signal SIGUSR1, or at a line written into the named pipe DIR/trigger; may be repeated
    #[arg(long, value_enum, value_name = "SIGUSR1|fifo", hide_possible_values = true, requires = "flight")]
    trigger: Vec<Trigger>,
    /// How long to go on after a trigger
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
pub struct Flight {
    signal: Option<Arc<AtomicBool>>,
    pipe: Option<TriggerPipe>,
    after: Duration,
    /// Why it ends, and when.
    told: Option<(Ended, Instant)>,
}

impl FlightOptions {
    /// What is kept, if not all is.
    pub fn keep(&self) -> Option<Keep> {
        self.flight.then_some(Keep { length: self.keep, most_bytes: self.keep_size })
    }

    /// Makes the triggers of a recording in `root`, where this is a flight recorder.
    pub fn start(&self, root: &Path, journal: &Journal) -> anyhow::Result<Option<Flight>> {
        if !self.flight {
            return Ok(None);
        }
        let signal = self.trigger.contains(&Trigger::Signal).then(Arc::<AtomicBool>::default);
        if let Some(raised) = &signal {
            signal_hook::flag::register(SIGUSR1, Arc::clone(raised))?;
        }
        let pipe = self.trigger.contains(&Trigger::Pipe).then(|| TriggerPipe::make(root, journal)).transpose()?;
        Ok(Some(Flight { signal, pipe, after: self.after, told: None }))
    }
}

impl Flight {
    /// What else ends it, for people who wait.
    pub fn ends(&self) -> String {
        let signal = self.signal.as_ref().map(|_| format!("SIGUSR1 to process {}", std::process::id()));
        let pipe = self.pipe.as_ref().map(|pipe| format!("a line in {}", pipe.path().display()));
        let all: Vec<String> = signal.into_iter().chain(pipe).collect();
        if all.is_empty() { String::new() } else { format!(", so does {}", all.join(", or ")) }
    }

    /// True once it has gone on for long enough after a trigger.
    pub fn is_over(&mut self, now: Instant) -> bool {
        if self.told.is_none() {
            self.told = self.pulled().map(|text| (Ended { by: EndedBy::Trigger, text }, now + self.after));
        }
        self.told.as_ref().is_some_and(|(_, at)| now >= *at)
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

    /// Why it ended, where `otherwise` is what ended it if no trigger was pulled.
    pub fn ended(self, otherwise: EndedBy) -> Ended {
        let text = match otherwise {
            EndedBy::Time => "the end of its time",
            EndedBy::Command => "the end of its command",
            EndedBy::Signal | EndedBy::Trigger => "a signal",
        };
        self.told.map_or_else(|| Ended { by: otherwise, text: text.to_owned() }, |(ended, _)| ended)
    }
}

/// What was kept, for stdout.
pub fn summary(ended: &Ended, flown: Duration, output: &Path, meter: &Meter) -> String {
    let kept = meter.kept();
    let (flown, kept) = (flown.max(kept).as_secs_f64(), kept.as_secs_f64());
    let place = output.display();
    format!(
        "ended by {}\nkept the last {kept:.1} s of {flown:.1} s in {place}: {}",
        ended.text,
        super::status::lost(meter)
    )
}

fn kept(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length < LEAST_KEEP { Err("1s is the minimum".to_owned()) } else { Ok(length) }
}

fn room(text: &str) -> Result<u64, String> {
    let kib = buffer_kib(text).ok_or_else(|| "write a size such as 256M or 2G".to_owned())?;
    match kib.checked_mul(1 << 10) {
        Some(bytes) if kib >= LEAST_ROOM_KIB => Ok(bytes),
        Some(_) => Err("16M is the minimum".to_owned()),
        None => Err("that is more than any disk has".to_owned()),
    }
}
