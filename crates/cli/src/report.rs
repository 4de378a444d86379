//! `kvmscope report`: what happened and what to change.
//!
//! Each PATH is a recording of its own and is answered by itself, in turn: text puts a heading between them, JSON is
//! one object whose sections say whose they are. Traces of several machines that belong together are one recording
//! directory, or are put together by `--part`.

mod drawn;
mod judging;
mod losses;
mod ranking;
#[cfg(feature = "labs")]
pub(crate) mod recorded;

use crate::arguments::{Answered, Narrow, OutputOptions, Recordings, ReplaceOptions, SymbolFiles, WorkloadOption};
use analysis::{Answers, Case, Given};
use anyhow::anyhow;
use base::recording::Recording;
use base::{Problem, Section};
use clap::Args;
pub(crate) use judging::JudgeOptions;
use losses::LossArguments;
use process::Progress;
use process::exit::{Exit, complain, is_wrong_use};
use process::interrupt::Interrupt;
use ranking::RankingOptions;
use show::junit::Suite;

/// Report what happened in a recording and what to change
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope report trace.dat\n  \
    kvmscope report --part L0=host.dat --part L1:web=guest.dat\n  \
    kvmscope report --json trace.dat | jq '.sections[].tables.exits'\n  \
    kvmscope report --part L0=host.dat --part L1=guest.dat --symbols L1=System.map\n  \
    kvmscope report --from 1.5 --to 2 --vm web --vcpu 0 trace.dat\n  \
    kvmscope report --by reason --sort p99 --top 10 trace.dat\n  \
    kvmscope report --html out.html trace.dat\n  \
    kvmscope report --all trace.dat\n  \
    kvmscope report --explain-reading ticket.txt\n  \
    kvmscope report --fail-on high trace.dat\n  \
    kvmscope report --budget kvm4nfv-2015 --junit verdicts.xml trace.dat\n\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding at or above --fail-on, or a FAIL in the budget (--budget, or \
    the recording's own).")]
pub(crate) struct Report {
    #[command(flatten)]
    recordings: Recordings,
    #[command(flatten)]
    replace: ReplaceOptions,
    /// No progress bar on stderr
    #[arg(long)]
    no_progress: bool,
    #[command(flatten)]
    narrow: Narrow,
    /// Print all tables and figures, as --html does
    #[arg(long)]
    all: bool,
    /// Instead of an answer, print which reader takes which lines of each PATH, and which lines none takes
    #[arg(long, conflicts_with = "part")]
    explain_reading: bool,
    #[command(flatten)]
    ranking: RankingOptions,
    #[command(flatten)]
    losses: LossArguments,
    #[command(flatten)]
    symbols: SymbolFiles,
    #[command(flatten)]
    judge: JudgeOptions,
    #[command(flatten)]
    workload: WorkloadOption,
    #[command(flatten)]
    output: OutputOptions,
}

impl Report {
    /// Answers all questions about all recordings.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let mut given = self.narrow.given()?;
        given.traces.symbols = self.symbols.read()?;
        given.listing.ranking = self.ranking.ranking();
        given.latency = self.losses.options();
        let interrupt = Interrupt::watch()?;
        if self.explain_reading {
            return self.recordings.explain(&interrupt);
        }
        let wanted = self.recordings.wanted();
        self.output.check(wanted.len(), self.replace.force)?;
        given.budget = self.judge.budget(self.replace.force)?;
        given.workload = self.workload.workload();
        let (mut answers, mut suites) = (Vec::new(), Vec::new());
        for wanted in &wanted {
            let opened = self.recordings.open_all(wanted, &interrupt);
            let each = match opened {
                Ok(recordings) => recordings.into_iter().map(|one| self.one(one, &given)).collect(),
                Err(error) => vec![Err(error)],
            };
            for one in each {
                match one {
                    Ok((answered, suite)) => {
                        answers.push(answered);
                        suites.extend(suite);
                    }
                    Err(error) if is_wrong_use(&error) => return Err(error),
                    Err(error) => complain(&error),
                }
            }
        }
        if answers.is_empty() {
            return Ok(Exit::NoAnswer);
        }
        // A text may have several runs.
        self.output.check(answers.len(), self.replace.force)?;
        let exit = self.output.end("report", &answers, &interrupt)?;
        self.judge.end(&suites, exit, &interrupt)
    }

    /// The answers about one recording, and the verdicts of the budget.
    fn one(&self, recording: Recording, given: &Given) -> anyhow::Result<(Answered, Option<Suite>)> {
        let progress = Progress::new(!self.no_progress);
        let case = Case::new(analysis::open(recording)?, given.clone()).with_progress(progress.hear());
        let mut answered = answer(&case, &self.output, progress)?;
        if self.all {
            answered.sections.iter_mut().for_each(show_all);
        }
        Ok((answered, self.judge.suite(&case)))
    }
}

/// A terminal shows what else only pages do.
fn show_all(section: &mut Section) {
    section.figures.iter_mut().for_each(|figure| figure.in_terminals = true);
    let shown = section.tables.iter_mut().filter_map(|table| table.shown.as_mut());
    shown.for_each(|shown| shown.in_terminals = true);
}

/// Asks every question; one that fails is said on stderr and does not cost the others.
fn answer(case: &Case, output: &OutputOptions, progress: Progress) -> anyhow::Result<Answered> {
    if output.wants_page() {
        // Out of the reading that fills the ledger: the page then takes one more.
        case.chain_ranks();
    }
    let Answers { mut sections, problems, failed } = Answers::of(case);
    sections.retain(says_something);
    let drawn = (output.wants_page() && !sections.is_empty()).then(|| drawn::draw(case));
    progress.finish();
    let (asked, failed): (Vec<_>, Vec<_>) = failed.into_iter().partition(analysis::Error::is_of_what_was_asked);
    if let Some(error) = asked.into_iter().next() {
        return Err(error.into());
    }
    if sections.is_empty() {
        return Err(failed.into_iter().next().map_or_else(|| nothing(case, &problems), Into::into));
    }
    failed.into_iter().for_each(|error| complain(&error.into()));
    Ok(Answered { drawn, ..Answered::of(case.input().recording.clone(), sections, problems) })
}

/// Whether a section tells anything: what was recognized and has no line of a result does not.
fn says_something(section: &Section) -> bool {
    let said = [&section.summary].into_iter().chain(&section.about).any(|text| !text.is_empty());
    said || !section.findings.is_empty() || section.tables.iter().any(|table| !table.rows.is_empty())
}

/// Why there is no answer: what is missing in what was brought.
fn nothing(case: &Case, problems: &[Problem]) -> anyhow::Error {
    let title = case.input().recording.title();
    match problems.first() {
        Some(problem) if problem.text.starts_with(&problem.file) => anyhow!("{}", problem.text),
        Some(problem) => anyhow!("{title}: {}", problem.text),
        None => {
            anyhow!("{title} has no events that a question can use; record some with `kvmscope record --seconds 10`")
        }
    }
}
