//! Where the files go, and how they are called for each of several recordings.

use crate::arguments::is_dash;
use base::recording::Recording;
use clap::{Args, ValueHint};
use process::Staging;
use process::exit::WrongUse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Stands for the recording's name.
const NAME: &str = "{}";

/// Files and directories, one for each format that is wanted.
#[derive(Args, Clone)]
pub(super) struct Targets {
    /// Timeline of every vCPU, level and exit, for ui.perfetto.dev; - is stdout
    #[arg(long, value_name = "FILE", group = "format", value_hint = ValueHint::FilePath)]
    pub perfetto: Option<PathBuf>,
    /// Stacks of VM, vCPU, level, state and reason, for flamegraph.pl, inferno and speedscope; - is stdout
    #[arg(long, value_name = "FILE", group = "format", value_hint = ValueHint::FilePath)]
    pub folded: Option<PathBuf>,
    /// Every vCPU in time order, and totals, for speedscope; - is stdout
    #[arg(long, value_name = "FILE", group = "format", value_hint = ValueHint::FilePath)]
    pub speedscope: Option<PathBuf>,
    /// Every table as a CSV file in DIR, and findings.csv
    #[arg(long, value_name = "DIR", group = "format", value_hint = ValueHint::DirPath)]
    pub csv: Option<PathBuf>,
    /// Every table as a Parquet file in DIR, and findings.parquet (full build)
    #[arg(long, value_name = "DIR", group = "format", value_hint = ValueHint::DirPath)]
    pub parquet: Option<PathBuf>,
    /// Every table as an Arrow IPC file in DIR, and findings.arrow (full build)
    #[arg(long, value_name = "DIR", group = "format", value_hint = ValueHint::DirPath)]
    pub arrow: Option<PathBuf>,
    /// Add every table to the partitioned Parquet data set in DIR, of many recordings, for kvmscope fleet report (full build); recordings
    /// already in it are left unchanged
    #[arg(long, value_name = "DIR", group = "format", value_hint = ValueHint::DirPath)]
    pub dataset: Option<PathBuf>,
}

impl Targets {
    /// Files that are drawn.
    pub(super) fn pictured(&self) -> Vec<&Path> {
        [&self.perfetto, &self.folded, &self.speedscope].into_iter().flatten().map(PathBuf::as_path).collect()
    }

    /// Directories of tables.
    pub(super) fn tabled(&self) -> Vec<&Path> {
        [&self.csv, &self.parquet, &self.arrow].into_iter().flatten().map(PathBuf::as_path).collect()
    }

    /// Refuses two formats on stdout, and one name for the files of several recordings.
    pub(super) fn check(&self, several: bool) -> Result<(), WrongUse> {
        if self.pictured().into_iter().filter(|file| is_dash(file)).count() > 1 {
            return Err(WrongUse("only one format can go to stdout; name files for the others".to_owned()));
        }
        let all = self.pictured().into_iter().chain(self.tabled());
        match all.into_iter().find(|target| several && !target.to_string_lossy().contains(NAME)) {
            Some(target) => Err(WrongUse(format!(
                "several recordings cannot all be written to {}; use {NAME} as a placeholder for the name of each, \
                 as in --perfetto '{NAME}.pftrace', or combine traces of several machines with --part",
                target.display()
            ))),
            None => Ok(()),
        }
    }

    /// Refuses what is there already.
    pub(super) fn check_vacant(&self, force: bool) -> Result<(), WrongUse> {
        let files = self.pictured();
        files.into_iter().filter(|file| !is_dash(file)).try_for_each(|file| Staging::check_file(file, force))?;
        self.tabled().into_iter().try_for_each(|directory| Staging::check_directory(directory, force))
    }

    /// Those of the recording called `name`.
    pub(super) fn of(&self, name: &str) -> Self {
        let named = |target: &Option<PathBuf>| {
            let target = target.as_ref()?;
            // A path that is no text has no place for a name.
            Some(target.to_str().map_or_else(|| target.clone(), |text| text.replace(NAME, name).into()))
        };
        Self {
            perfetto: named(&self.perfetto),
            folded: named(&self.folded),
            speedscope: named(&self.speedscope),
            csv: named(&self.csv),
            parquet: named(&self.parquet),
            arrow: named(&self.arrow),
            // All recordings go into one.
            dataset: self.dataset.clone(),
        }
    }
}

/// Names for recordings that differ: of two with one title the second is `title-2`.
#[derive(Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// The name of the next one.
    pub(super) fn of(&mut self, recording: &Recording) -> String {
        let title = recording.title();
        let numbered = (2_u64..).map(|number| format!("{title}-{number}"));
        let mut free = std::iter::once(title.clone()).chain(numbered).filter(|name| !self.0.contains(name));
        let name = free.next().unwrap_or_default();
        self.0.insert(name.clone());
        name
    }
}
