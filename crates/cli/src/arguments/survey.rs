//! How closely the memory of a VM that runs is looked at: `bench memory` takes options for it, `plan migration --vm` their defaults.

use super::duration;
use anyhow::bail;
use base::{Bench, Measured};
use clap::Args;
use lab::environment::{self, How};
use lab::memory::dirty_rate::dirty_rate;
use lab::memory::{Plan, Target, survey};
use process::exit::WrongUse;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How closely a VM's memory is looked at.
#[derive(Args)]
pub(crate) struct SurveyOptions {
    /// Times after the first read at which the sample is read again; any number
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = duration, default_value = "100ms,200ms,500ms,1s,2s,4s")]
    windows: Vec<Duration>,
    /// Data pages to read per GiB; 16,384 in total at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=16_384), default_value = "2048")]
    pages_per_gib: u64,
    /// Seed of the sample: the same seed picks the same pages
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// QMP socket, to ask QEMU for its dirty rate as well (windows of whole seconds; never where memory is shared and has holes, which
    /// QEMU's sampling would fill)
    #[arg(long, value_name = "SOCKET")]
    qmp: Option<PathBuf>,
}

/// A window that is longer is no part of a migration that anybody waits for.
const LONGEST: Duration = Duration::from_secs(3_600);

/// As the command has them by default.
const WINDOWS_MS: [u64; 6] = [100, 200, 500, 1_000, 2_000, 4_000];

impl Default for SurveyOptions {
    fn default() -> Self {
        Self { windows: WINDOWS_MS.map(Duration::from_millis).to_vec(), pages_per_gib: 2_048, seed: 1, qmp: None }
    }
}

impl SurveyOptions {
    /// Looks at the guest of `vm`; without `windows` not at what it dirties.
    pub(crate) fn look(
        &self,
        vm: &str,
        windows: bool,
        say: &mut dyn FnMut(&str),
        stop: &AtomicBool,
    ) -> anyhow::Result<Bench> {
        if let Some(wrong) = self.windows.iter().find(|window| window.is_zero() || **window > LONGEST) {
            bail!(WrongUse(format!(
                "a window of {} s is out of range: use more than 0 and at most 1h",
                wrong.as_secs()
            )));
        }
        let target = Target::find(vm)?;
        let windows = if windows { self.windows.clone() } else { Vec::new() };
        let plan = Plan { pages_per_gib: self.pages_per_gib, seed: self.seed, windows };
        let mut bench = Bench::new("memory", environment::here(How::default()));
        bench.environment.insert(base::bench::VM.to_owned(), target.name.clone());
        bench.environment.insert("pid".to_owned(), target.pid.to_string());
        bench.environment.insert("seed".to_owned(), self.seed.to_string());
        bench.results = survey(&target, &plan, say, stop)?;
        if let Some(socket) = self.qmp.as_ref().filter(|_| !plan.windows.is_empty()) {
            if has_shared_holes(&bench) {
                bench.notes.push(FILLS_HOLES.to_owned());
            } else {
                bench.results.extend(dirty_rate(socket, &plan.windows, say, stop)?);
            }
        }
        Ok(bench)
    }
}

/// Seen with QEMU 7.2 and a file of 256 MB of which a quarter was there: 12 MB more were, after five questions.
const FILLS_HOLES: &str =
    "QEMU's dirty rate was not measured: its sampling reads holes of shared memory, which fills them.";

fn has_shared_holes(bench: &Bench) -> bool {
    let is_shared = |one: &&Measured| one.params.memory.as_deref().is_some_and(|kind| kind != base::bench::ANONYMOUS);
    bench.results.iter().filter(is_shared).any(|one| one.counters.get("holes").is_some_and(|holes| *holes > 0))
}
