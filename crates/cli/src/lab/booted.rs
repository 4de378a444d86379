//! Experiments that boot a machine from Debian's packages: where things lie.

use crate::arguments::{DestinationOptions, OutputOptions};
use anyhow::bail;
use base::recording::Recording;
use base::utc::Utc;
use labs::machine::{Places, default_cache};
use process::exit::{Exit, WrongUse};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

pub(super) struct Booted<'a> {
    /// Names the recording where the user does not.
    pub name: &'a str,
    pub cache: Option<&'a Path>,
    pub destination: &'a DestinationOptions,
    pub output: &'a OutputOptions,
}

impl Booted<'_> {
    /// Runs the experiment, which is told when it began, and reports on its recording.
    pub(super) fn run(
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
        super::course::run(self.destination, self.output, |created, say, stop| experiment(&places, created, say, stop))
    }
}
