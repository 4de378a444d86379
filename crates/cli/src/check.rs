//! `kvmscope check`: how machines are set up, and what to change.
//!
//! In: the live host, which is a snapshot taken a moment ago; trees that hold copies of `/proc` and `/sys`; or recordings.
//! Out: an answer to each question about setup, all of one set of machines.
//! ```text
//! (nothing)             snapshot of / into a temporary directory --\
//! --root L0=DIR ...     copied trees                             ----> one recording --> questions with `setup`
//! PATH                  a recording with its snapshots           --/
//! --paste FILE...       what people put in tickets               --/
//! ```

mod definitions;
pub(crate) mod machines;
pub(crate) mod places;
mod probe;
mod wishes;

use crate::arguments::{Answered, JournalPlace, OutputOptions, ReplaceOptions};
use analysis::{About, Answers, Case, Given};
use anyhow::bail;
use base::in_order;
use base::recording::{PartKind, Recording};
use base::shell::quoted;
use base::{Problem, Section};
use clap::Args;
use machines::MachineOptions;
use process::Progress;
use process::exit::{Exit, complain, is_wrong_use};
use process::interrupt::Interrupt;
use show::text::Step;

/// Report how a host is set up, and what to change
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope check\n  \
    kvmscope check --all\n  \
    kvmscope check --probe\n  \
    kvmscope check --root sosreport-host1.tar.xz\n  \
    kvmscope check --root L0=host --root L1=guest\n  \
    kvmscope check fixtures/hosts-intel\n  \
    kvmscope check --paste ticket.txt top.txt\n  \
    kvmscope check --goal latency --keep web --reserve 0-1\n  \
    kvmscope check --keep eth0 --keep pmd\n  \
    kvmscope check --pmd-cores 4\n  \
    kvmscope check recording --plan chain.toml\n  \
    kvmscope check recording --budget vnf.toml\n  \
    kvmscope check --paste ticket.txt --xml > pins.xml\n  \
    kvmscope check --json > report.json && kvmscope apply PLC-PROPOSAL@2 --from report.json --dry-run\n  \
    kvmscope check --json | jq '.sections[].tables.features'\n  \
    kvmscope check --fail-on high\n\n\
    Prints the first ten lines of findings; `kvmscope explain ID` shows one in full, --all everything.\n\
    Works without root, but reads more as root; changes nothing. --probe traces for a moment and needs root.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding at or above --fail-on.")]
pub(crate) struct Check {
    #[command(flatten)]
    machines: MachineOptions,
    /// Run a tiny test guest on this host, in a separate tracing instance, to see which events fire
    #[arg(long, conflicts_with_all = ["path", "root", "paste"], help_heading = None::<&'static str>)]
    probe: bool,
    #[command(flatten)]
    journal: JournalPlace,
    /// Print everything: all findings with their evidence, tables, figures; JSON, CSV and HTML are always complete
    #[arg(long, help_heading = None::<&'static str>)]
    all: bool,
    /// Print only the libvirt XML elements of each domain for the first placement, or for the placement of this rank
    #[arg(long, value_name = "RANK", num_args = 0..=1, default_missing_value = "1", value_parser = rank, help_heading = None::<&'static str>, conflicts_with_all = ["json", "csv", "html"])]
    xml: Option<u64>,
    #[command(flatten)]
    replace: ReplaceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// A number; a path behind an option that may have none is taken for it.
fn rank(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        format!("--xml takes a rank, which is a number; a path goes before it: kvmscope check {} --xml", quoted(text))
    })
}

impl Check {
    /// Answers all questions about setup.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let interrupt = Interrupt::watch()?;
        // Kept until all is printed: facts are read from it as they are asked for.
        let live = interrupt.temporary("kvmscope-check")?;
        self.output.check(1, self.replace.force)?;
        self.machines.check()?;
        let mut recordings = self.machines.recordings(live.path(), &interrupt)?;
        self.output.check(recordings.len(), self.replace.force)?;
        if self.probe
            && let [recording] = recordings.as_mut_slice()
        {
            let tree = &recording.parts[recording.parts.len() - 1].path;
            recording.problems.extend(probe::fire(&self.journal.journal(), tree, &interrupt));
        }
        let given = self.machines.given(&interrupt)?;
        let (mut answers, mut first, mut why) = (Vec::new(), None, None);
        for recording in recordings {
            match answer(recording, &given) {
                Ok((case, answered)) => {
                    first.get_or_insert(case);
                    answers.push(answered);
                }
                Err(error) if is_wrong_use(&error) => return Err(error),
                Err(error) => why = why.or(Some(error)),
            }
        }
        match (why, first) {
            (Some(error), None) => Err(error),
            (why, Some(case)) => {
                why.iter().for_each(complain);
                self.print(&answers, &case, &interrupt)
            }
            (None, None) => bail!("there is no input"),
        }
    }

    fn print(&self, answers: &[Answered], case: &Case, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        match self.xml {
            None if self.all => self.output.end("check", answers, interrupt),
            None => self.output.end_briefly("check", answers, &self.rest(&answers[0].sections), interrupt),
            Some(rank) => self.output.end_with(answers, interrupt, |out| definitions::print(out, case, rank)),
        }
    }

    /// The commands that show what the first page does not.
    fn rest(&self, sections: &[Section]) -> Vec<Step<'static>> {
        let machines = self.machines.words();
        let findings = in_order(sections.iter().flat_map(|section| &section.findings).collect::<Vec<_>>());
        // What was piped in is gone once it was read.
        let (explained, listed) = match self.machines.are_piped() {
            true => (
                "why, evidence, cost, commands, undo; pipe the same in again",
                "all findings, tables and figures; pipe the same in again",
            ),
            false => ("why, evidence, cost, commands, undo", "all findings, tables and figures"),
        };
        let one = findings.first().map(|finding| Step {
            command: format!("kvmscope explain {}{machines}", quoted(&finding.id())),
            shows: explained,
        });
        let all = Step { command: format!("kvmscope check --all{machines}"), shows: listed };
        one.into_iter().chain([all]).collect()
    }
}

/// How the machines of a recording are set up, and behind it what happened on them, if anything was recorded.
fn answer(recording: Recording, given: &Given) -> anyhow::Result<(Case, Answered)> {
    let title = recording.title();
    let progress = Progress::new(true);
    let case = Case::new(analysis::open(recording)?, given.clone()).with_progress(progress.hear());
    // Where there are traces, they tell what the findings cost.
    let mut answers = Answers::about(&case, &[About::Setup]);
    let planned = case.input().plan.as_ref().map(|_| About::Plan);
    let happened = case.input().recording.parts.iter().any(|part| happened(part.kind)).then_some(About::Happened);
    let more: Vec<About> = happened.into_iter().chain(planned).collect();
    if !more.is_empty() {
        let Answers { sections, problems, failed } = Answers::about(&case, &more);
        answers.sections.extend(sections);
        let is_new = |problem: &Problem| !answers.problems.contains(problem);
        let new: Vec<Problem> = problems.into_iter().filter(is_new).collect();
        answers.problems.extend(new);
        answers.failed.extend(failed);
    }
    progress.finish();
    let Answers { sections, problems, failed } = answers;
    let (asked, failed): (Vec<_>, Vec<_>) = failed.into_iter().partition(analysis::Error::is_of_what_was_asked);
    if let Some(error) = asked.into_iter().next() {
        return Err(error.into());
    }
    if sections.is_empty() {
        let is_text = case.input().recording.parts.iter().all(|part| part.kind == PartKind::Notes);
        match is_text {
            true => bail!("{title} {}", intake::nothing_known()),
            false => {
                bail!("{title} has no snapshot of a machine and no trace; take one there with `kvmscope snapshot`")
            }
        }
    }
    failed.into_iter().for_each(|error| complain(&error.into()));
    let answered = Answered::of(case.input().recording.clone(), sections, problems);
    Ok((case, answered))
}

/// Whether a part says what happened, not how a machine is set up.
fn happened(kind: PartKind) -> bool {
    !matches!(kind, PartKind::Host | PartKind::Notes | PartKind::Budget | PartKind::Plan | PartKind::Prediction)
}
