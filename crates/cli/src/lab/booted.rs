//! Experiments that boot a machine from Debian's packages: where things lie, what is said meanwhile, what becomes of the recording.

use crate::arguments::{DestinationOptions, OutputOptions};
use crate::exit::{Exit, WrongUse};
use crate::interrupt::Interrupt;
use anyhow::bail;
use base::recording::Recording;
use base::utc::Utc;
use lab::nested::{Places, default_cache};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

/// What the user said of it.
pub(super) struct Booted<'a> {
    /// Names the recording where the user does not.
    pub name: &'a str,
    pub cache: Option<&'a Path>,
    pub destination: &'a DestinationOptions,
    pub output: &'a OutputOptions,
}

impl Booted<'_> {
    /// Runs the experiment, which is told when it began, and reports on its recording.
    pub fn run(
        &self,
        experiment: impl FnOnce(&Places, String, &mut dyn FnMut(&str), &AtomicBool) -> Result<Recording, lab::Error>,
    ) -> anyhow::Result<Exit> {
        let cache = self.cache.map(Path::to_owned).or_else(|| default_cache(|name| std::env::var_os(name)));
        let Some(cache) = cache else {
            bail!(WrongUse("neither $XDG_CACHE_HOME nor $HOME names a directory; use --cache DIR".to_owned()));
        };
        self.output.check(1, self.destination.replaces())?;
        let output = self.destination.of(self.name, Utc::of(SystemTime::now()))?;
        let programs = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
        let places = Places { program: std::env::current_exe()?, cache, programs, output };
        let created = Utc::of(SystemTime::now()).stamp();
        let interrupt = Interrupt::watch()?;
        let stop = interrupt.hold();
        let began = Instant::now();
        let mut say = |line: &str| {
            // If stderr is closed nobody wants to know.
            let _ = writeln!(std::io::stderr(), "lab: {:3} s  {line}", began.elapsed().as_secs());
        };
        let recording = match experiment(&places, created, &mut say, &stop) {
            Err(_) if stop.load(Ordering::Relaxed) => return Ok(Exit::Interrupted),
            recorded => recorded?,
        };
        let place = self.destination.finished(&recording, &interrupt)?;
        say(&format!("the recording is {}", place.display()));
        crate::report::of(&place, "lab", self.output, &interrupt)
    }
}
