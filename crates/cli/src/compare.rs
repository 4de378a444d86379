//! `kvmscope compare A B`: what changed between two recordings of the same load.

use crate::arguments::{Answered, Narrow, OutputOptions, ReplaceOptions, Stdin, opened};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use analysis::{About, Answers, Case, Input};
use base::recording::Recording;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Report what changed between two recordings of the same load, and what is only noise
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope compare fixtures/vmx-linux-shadow-off fixtures/vmx-linux-shadow-on\n  \
    kvmscope compare fixtures/bench-vmx-shadow-off fixtures/bench-vmx-shadow-on\n  \
    kvmscope compare before after\n  \
    kvmscope compare --json before after | jq '.sections[].tables.change'\n\n\
    Compares what both recordings have: shares of states, exits per second, chains, benches.\n\
    Benches need at least 4 launches on each side; a warning is printed if their machines differ.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding of at least the severity of --fail-on.")]
pub struct Compare {
    /// The recording before the change
    #[arg(value_name = "A", value_hint = ValueHint::AnyPath)]
    before: PathBuf,
    /// The recording after it
    #[arg(value_name = "B", value_hint = ValueHint::AnyPath)]
    after: PathBuf,
    #[command(flatten)]
    narrow: Narrow,
    #[command(flatten)]
    replace: ReplaceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

impl Compare {
    /// Compares, and prints.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let given = self.narrow.given()?;
        let (stdin, interrupt) = (Stdin::default(), Interrupt::watch()?);
        self.output.check(1, self.replace.force)?;
        let [before, after] = [&self.before, &self.after].map(|path| opened(path, &stdin, &interrupt));
        let (before, after) = (before?, after?);
        let progress = Progress::new(true);
        let case = |recording: &Recording| -> anyhow::Result<Case> {
            Ok(Case::new(Input::open(recording.clone())?, given.clone()).with_progress(progress.hear()))
        };
        let before_change = case(&before)?;
        let case = case(&after)?.compared_with(before_change);
        let Answers { sections, problems, failed } = Answers::about(&case, &[About::Change]);
        progress.finish();
        if let Some(error) = failed.into_iter().next() {
            return Err(error.into());
        }
        let answered = Answered::of(after, sections, problems);
        self.output.end("compare", &[Answered { before: Some(before), ..answered }], &interrupt)
    }
}
