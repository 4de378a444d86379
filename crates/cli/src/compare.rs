//! `kvmscope compare A B`: what changed between two recordings of the same load.

use crate::arguments::{Answered, Narrow, OutputOptions, ReplaceOptions, Stdin, brought, opened};
use crate::plan::numbers::share;
use crate::report::JudgeOptions;
use analysis::{About, Answers, Case};
use anyhow::{Context, bail};
use base::recording::Recording;
use base::{Problem, Section};
use clap::{Args, ValueHint};
use process::Progress;
use process::exit::{Exit, WrongUse};
use process::interrupt::Interrupt;
use std::path::{Path, PathBuf};

/// Report what changed between two recordings, and what is noise
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope compare fixtures/vmx-linux-shadow-off fixtures/vmx-linux-shadow-on\n  \
    kvmscope compare fixtures/bench-vmx-shadow-off fixtures/bench-vmx-shadow-on\n  \
    kvmscope compare before after\n  \
    kvmscope compare paste.txt\n  \
    kvmscope compare off-1 off-2 off-3 -- on-1 on-2 on-3\n  \
    kvmscope compare --fail-on-regression 5% release-* -- candidate-*\n  \
    kvmscope compare --budget vnf.toml before after\n  \
    kvmscope compare --json before after | jq '.sections[].tables.change'\n\n\
    Shows what was set up differently, by the snapshots of both sides; then where the CPU time went, and why.\n\
    Compares what both sides have: shares of states, exits per second, chains, benches, rates of datapaths (lab ovs).\n\
    With one recording per side a difference need not come from the configuration: two runs of one configuration\n\
    differ as well. Record each side several times; 3 and 3 are a good start.\n\
    Benches need at least 4 launches on each side, datapaths 3 repeats; a warning is printed if their machines differ.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding at or above --fail-on,\n\
    a FAIL in the budget after the change, or a regression above --fail-on-regression.")]
pub(crate) struct Compare {
    /// The recordings before and after the change, or one text with two runs; with `--`, all recordings before the change
    #[arg(value_name = "A", required = true, value_hint = ValueHint::AnyPath)]
    first: Vec<PathBuf>,
    /// All recordings after the change: `compare A1 A2 A3 -- B1 B2 B3`
    #[arg(value_name = "B", last = true, value_hint = ValueHint::AnyPath)]
    last: Vec<PathBuf>,
    /// Another recording from before the change, of the same configuration (repeatable)
    #[arg(long = "before", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    more_before: Vec<PathBuf>,
    /// Another recording from after it (repeatable)
    #[arg(long = "after", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    more_after: Vec<PathBuf>,
    /// Exit with status 3 if a time, cost or rate got worse by more than this and by more than noise; 1 if there are too few runs to decide
    #[arg(long, value_name = "SHARE", value_parser = share)]
    fail_on_regression: Option<f64>,
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
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let mut given = self.narrow.given()?;
        let (stdin, interrupt) = (Stdin::default(), Interrupt::watch()?);
        self.output.check(1, self.replace.force)?;
        given.budget = self.judge.budget(self.replace.force)?;
        given.accepted_regression = self.fail_on_regression;
        let (before, after) = match (&self.first[..], &self.last[..], self.more_before.len() + self.more_after.len()) {
            ([text], [], 0) => of_text(text, &stdin, &interrupt)?,
            _ => {
                let open = |side: Vec<&PathBuf>| -> anyhow::Result<Vec<Recording>> {
                    side.into_iter().map(|path| opened(path, &stdin, &interrupt)).collect()
                };
                let (before, after) = self.sides()?;
                (open(before)?, open(after)?)
            }
        };
        let progress = Progress::new(true);
        let case = |recording: &Recording| -> anyhow::Result<Case> {
            Ok(Case::new(analysis::open(recording.clone())?, given.clone()).with_progress(progress.hear()))
        };
        let cases = |side: &[Recording]| side.iter().map(case).collect::<anyhow::Result<Vec<Case>>>();
        let compared =
            Case::of_sides(cases(&before)?, cases(&after)?).context("nothing was recorded after the change")?;
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
        let worse = self.fail_on_regression.and_then(|_| regressed(&answered.sections));
        let exit = self.output.end("compare", &[Answered { compared: all, ..answered }], &interrupt)?;
        let exit = worse.filter(|_| exit == Exit::Answered).unwrap_or(exit);
        self.judge.end(&suites, exit, &interrupt)
    }

    /// The recordings of before and of after.
    fn sides(&self) -> anyhow::Result<(Vec<&PathBuf>, Vec<&PathBuf>)> {
        let (before, after) = match (&self.first[..], &self.last[..]) {
            ([before, after], []) => (std::slice::from_ref(before), std::slice::from_ref(after)),
            (_, []) => bail!(WrongUse(
                "name one recording of before and one of after the change, or several of each: compare A1 A2 -- B1 B2"
                    .to_owned()
            )),
            (before, after) => (before, after),
        };
        Ok((before.iter().chain(&self.more_before).collect(), after.iter().chain(&self.more_after).collect()))
    }
}

/// The first two runs that are in one text.
fn of_text(text: &Path, stdin: &Stdin, interrupt: &Interrupt) -> anyhow::Result<(Vec<Recording>, Vec<Recording>)> {
    let mut runs = brought(text, stdin, interrupt)?.into_iter();
    match (runs.next(), runs.next(), runs.len()) {
        (Some(mut before), Some(after), more) => {
            if more > 0 {
                let (name, count) = (text.display().to_string(), more + 2);
                let told = format!("{name}: it has {count} runs; the first two are compared. Save others as separate files");
                before.problems.push(Problem::remark(name, "two runs", "more", told));
            }
            Ok((vec![before], vec![after]))
        }
        _ => bail!(WrongUse(
            "name one recording of before and one of after the change, or several of each: compare A1 A2 -- B1 B2; or one text \
             that has two runs"
                .to_owned()
        )),
    }
}

/// How a comparison ends that is to fail on what got worse; `None` if nothing did.
fn regressed(sections: &[Section]) -> Option<Exit> {
    let mut findings = sections.iter().flat_map(|section| &section.findings);
    if findings.any(|finding| finding.rule == analysis::compare::REGRESSION) {
        return Some(Exit::FailOn);
    }
    let mut unknown = sections.iter().flat_map(|section| &section.unknown);
    unknown.any(|unknown| unknown.what == analysis::compare::UNTOLD).then_some(Exit::NoAnswer)
}
