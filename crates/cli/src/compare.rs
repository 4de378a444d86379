//! `kvmscope compare A B`: what changed between two recordings of the same load.

use crate::arguments::{Answered, Narrow, OutputOptions, ReplaceOptions, Stdin, opened};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report::JudgeOptions;
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
    kvmscope compare off-1 on-1 --before off-2 --before off-3 --after on-2 --after on-3\n  \
    kvmscope compare --budget vnf.toml before after\n  \
    kvmscope compare --json before after | jq '.sections[].tables.change'\n\n\
    Compares what both sides have: shares of states, exits per second, chains, benches, rates of datapaths (lab ovs).\n\
    One recording a side shows what differs between these two runs, not whether the configuration is the cause:\n\
    runs of one configuration differ as well. Record each side several times for that; 3 and 3 are a good start.\n\
    Benches need at least 4 launches on each side, datapaths 3 repeats; a warning is printed if their machines differ.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding of at least the severity of --fail-on,\n\
    or a goal of a budget that is FAIL after the change.")]
pub struct Compare {
    /// The recording before the change
    #[arg(value_name = "A", value_hint = ValueHint::AnyPath)]
    before: PathBuf,
    /// The recording after it
    #[arg(value_name = "B", value_hint = ValueHint::AnyPath)]
    after: PathBuf,
    /// Another recording from before the change, of the same configuration (repeatable)
    #[arg(long = "before", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    more_before: Vec<PathBuf>,
    /// Another recording from after it (repeatable)
    #[arg(long = "after", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    more_after: Vec<PathBuf>,
    #[command(flatten)]
    narrow: Narrow,
    #[command(flatten)]
    judge: JudgeOptions,
    #[command(flatten)]
    replace: ReplaceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

impl Compare {
    /// Compares, and prints.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let mut given = self.narrow.given()?;
        let (stdin, interrupt) = (Stdin::default(), Interrupt::watch()?);
        self.output.check(1, self.replace.force)?;
        given.budget = self.judge.budget(self.replace.force)?;
        let open = |first: &PathBuf, more: &[PathBuf]| -> anyhow::Result<Vec<Recording>> {
            std::iter::once(first).chain(more).map(|path| opened(path, &stdin, &interrupt)).collect()
        };
        let (before, after) = (open(&self.before, &self.more_before)?, open(&self.after, &self.more_after)?);
        let progress = Progress::new(true);
        let case = |recording: &Recording| -> anyhow::Result<Case> {
            Ok(Case::new(Input::open(recording.clone())?, given.clone()).with_progress(progress.hear()))
        };
        let earlier = before.iter().map(case).collect::<anyhow::Result<Vec<Case>>>()?;
        let mut compared = earlier.into_iter().fold(case(&after[0])?, Case::compared_with);
        for recording in &after[1..] {
            compared = compared.recorded_again(case(recording)?);
        }
        let Answers { sections, problems, failed } = Answers::about(&compared, &[About::Change]);
        progress.finish();
        if let Some(error) = failed.into_iter().next() {
            return Err(error.into());
        }
        // What was broken before the change is what it was made for.
        let suites: Vec<_> =
            std::iter::once(&compared).chain(compared.again()).filter_map(|case| self.judge.suite(case)).collect();
        let answered = Answered::of(after[0].clone(), sections, problems);
        let all = before.into_iter().chain(after).collect();
        let exit = self.output.end("compare", &[Answered { compared: all, ..answered }], &interrupt)?;
        self.judge.end(&suites, exit, &interrupt)
    }
}
