//! What the screen of `top` shows, and the last seconds that it saves.

use super::Source;
use ::top::{Frame, Shown};
use base::Utc;
use lab::flight::{Flight, Flights, LEAST_ROOM_BYTES, News};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Most bytes of events that are kept, by a second of them: some 300,000 events, what a few dozen busy vCPUs make.
const BYTES_PER_S: u64 = 16 << 20;

pub(super) struct OnScreen<'s> {
    source: &'s mut Source,
    flights: Option<Flights>,
    saved: Vec<PathBuf>,
}

impl<'s> OnScreen<'s> {
    /// Shows `source`; keeps the last `keep` of events where asked for, and notes changes of the host in `journal`.
    pub(super) fn new(source: &'s mut Source, keep: Option<Duration>, journal: &Path) -> anyhow::Result<Self> {
        let fly = |keep: Duration| -> anyhow::Result<Flights> {
            let flight = Flight {
                program: std::env::current_exe()?,
                keep,
                most_bytes: keep.as_secs().saturating_mul(BYTES_PER_S).max(LEAST_ROOM_BYTES),
                stop_on: None,
                journal: OsString::from(journal),
                proc: "/proc".into(),
            };
            Ok(Flights::new(flight, || format!("kvmscope-top-{}", Utc::of(SystemTime::now()).name()).into()))
        };
        Ok(Self { source, flights: keep.map(fly).transpose()?, saved: Vec::new() })
    }

    /// What was saved until now.
    pub(super) fn saved(&self) -> &[PathBuf] {
        &self.saved
    }
}

impl Shown for OnScreen<'_> {
    fn observe(&mut self, every: Duration) -> anyhow::Result<Option<(Frame, String)>> {
        Ok(self.source.frame(every)?.map(|frame| (frame, self.source.time())))
    }

    fn freeze(&mut self) -> String {
        match &self.flights {
            None => "nothing is kept: start with --flight 10s to save the last 10 s by this key".to_owned(),
            Some(flights) => match flights.freeze("key f of kvmscope top") {
                Ok(()) => "saving the last seconds ..".to_owned(),
                Err(error) => format!("nothing was saved: {error}"),
            },
        }
    }

    fn news(&mut self) -> Option<String> {
        match self.flights.as_mut()?.look(Instant::now())? {
            News::Saved { place, .. } => {
                let said = format!("saved: kvmscope report {}", place.display());
                self.saved.push(place);
                Some(said)
            }
            News::Failed(said) => Some(said),
        }
    }
}
