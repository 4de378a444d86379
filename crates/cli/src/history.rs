//! `kvmscope history DIR`: when something changed over a series of recordings, and what was set up differently from then on.

use crate::arguments::{Answered, Narrow, OutputOptions, ReplaceOptions, Stdin, opened};
use analysis::{About, Answers, Case};
use anyhow::{Context, anyhow, bail};
use base::recording::Recording;
use clap::{Args, ValueHint};
use process::Progress;
use process::exit::{Exit, WrongUse, complain, note};
use process::interrupt::Interrupt;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// Report when something changed over a series of recordings
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope history nightly\n  \
    kvmscope history nightly --html history.html\n  \
    kvmscope history nightly/2026-11-* --json | jq '.sections[].tables.changes'\n\n\
    Takes all recordings of a directory, packed ones too, in the order in which they were made, and follows everything that compare\n\
    reads: shares of states, exits per second, chains, benches, rates of datapaths. A change needs three recordings on either side\n\
    and is found over all numbers together; the settings that changed between the two recordings are listed with it.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding at or above --fail-on.")]
pub(crate) struct History {
    /// Directories of recordings, or recordings
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    narrow: Narrow,
    #[command(flatten)]
    replace: ReplaceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// How packed recordings end.
const PACKED: &str = ".kvmscope";

impl History {
    /// Answers.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let mut given = self.narrow.given()?;
        given.history = true;
        let (stdin, interrupt) = (Stdin::default(), Interrupt::watch()?);
        self.output.check(1, self.replace.force)?;
        let mut recordings: Vec<Recording> = Vec::new();
        for path in self.all()? {
            match opened(&path, &stdin, &interrupt) {
                Ok(recording) => recordings.push(recording),
                // One that broke does not cost the others.
                Err(error) => complain(&error),
            }
        }
        // Those without a time keep their place by name, at the beginning.
        recordings.sort_by(|a, b| a.created.cmp(&b.created));
        let progress = Progress::new(true);
        let mut cases = Vec::new();
        for recording in &recordings {
            match analysis::open(recording.clone()) {
                Ok(input) => cases.push(Case::new(input, given.clone()).with_progress(progress.hear())),
                Err(error) => complain(&anyhow!("{}: {error}", recording.title())),
            }
        }
        let mut cases = cases.into_iter();
        let Some(oldest) = cases.next() else {
            bail!(WrongUse("there is no recording in any of them; kvmscope record makes one".to_owned()))
        };
        let case = cases.fold(oldest, Case::recorded_again);
        let Answers { sections, problems, failed } = Answers::about(&case, &[About::Change]);
        progress.finish();
        if let Some(error) = failed.into_iter().next() {
            return Err(error.into());
        }
        let answered = Answered::of(case.input().recording.clone(), sections, problems);
        self.output.end("history", &[Answered { compared: recordings, ..answered }], &interrupt)
    }

    /// The recordings that were named, and those in the directories that were; what else lies there is said.
    fn all(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut all = Vec::new();
        for path in &self.paths {
            if !path.is_dir() || is_recording(path) {
                all.push(path.clone());
                continue;
            }
            let entries = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let entries = entries.with_context(|| path.display().to_string())?;
            let mut inside: Vec<PathBuf> = entries.iter().map(DirEntry::path).collect();
            inside.sort();
            let (recordings, others): (Vec<_>, Vec<_>) = inside.into_iter().partition(|entry| is_recording(entry));
            all.extend(recordings);
            if let [first, rest @ ..] = others.as_slice() {
                let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
                note(&format!("kvmscope: left out, no recording: {}{more}", first.display()));
            }
        }
        Ok(all)
    }
}

fn is_recording(path: &Path) -> bool {
    path.to_string_lossy().ends_with(PACKED) || Recording::is_in(path)
}
