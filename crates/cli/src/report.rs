//! `kvmscope report`: what happened and what to change.
//!
//! Each PATH is a recording of its own and is answered by itself, in turn: text puts a heading between them, JSON is
//! one object whose sections say whose they are. Traces of several machines that belong together are one recording
//! directory, or are put together by `--part`.

mod html;
mod ranking;

use crate::arguments::{FailOn, FileOptions, Narrow, Recordings, SymbolFiles};
use crate::exit::{Exit, WrongUse, complain, is_wrong_use};
use crate::interrupt::Interrupt;
use crate::page::PageOptions;
use crate::progress::Progress;
use analysis::{Answers, Input, Options};
use anyhow::{anyhow, bail};
use base::recording::Recording;
use base::{Problem, Section};
use clap::{Args, Parser};
use html::HtmlOptions;
use ranking::RankingOptions;
use show::html::Drawing;
use std::ffi::OsStr;
use std::io::{BufWriter, Write};
use std::path::Path;

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
    kvmscope report --fail-on high trace.dat\n\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding of at least the severity of --fail-on.")]
pub struct Report {
    #[command(flatten)]
    recordings: Recordings,
    /// Print one JSON object (schema kvmscope/1) instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: FileOptions,
    #[command(flatten)]
    html: HtmlOptions,
    /// Exit with status 3 if a finding has at least this severity
    #[arg(long, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// No progress bar on stderr
    #[arg(long)]
    no_progress: bool,
    #[command(flatten)]
    narrow: Narrow,
    #[command(flatten)]
    ranking: RankingOptions,
    #[command(flatten)]
    symbols: SymbolFiles,
    #[command(flatten)]
    page: PageOptions,
}

/// The report by itself, as if it were the whole program.
#[derive(Parser)]
struct Alone {
    #[command(flatten)]
    report: Report,
}

/// What `kvmscope report PATH` does.
pub fn of(path: &Path) -> anyhow::Result<Exit> {
    Alone::try_parse_from([OsStr::new("report"), OsStr::new("--"), path.as_os_str()])?.report.run()
}

/// A recording's answers.
struct Answered {
    recording: Recording,
    sections: Vec<Section>,
    problems: Vec<Problem>,
    /// Its vCPUs over time, where a page wants them.
    drawn: Option<Drawing>,
}

impl Report {
    /// Answers all questions about all recordings.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let ranking = self.ranking.ranking();
        let options = Options { symbols: self.symbols.read()?, ranking, ..self.narrow.options()? };
        let interrupt = Interrupt::watch()?;
        let wanted = self.recordings.wanted();
        if self.files.wants_tables() && wanted.len() > 1 {
            bail!(WrongUse("--csv writes the tables of one recording; name one PATH".to_owned()));
        }
        if self.html.wanted() && wanted.len() > 1 {
            bail!(WrongUse("--html writes the page of one recording; name one PATH".to_owned()));
        }
        if self.html.is_stdout() && self.json {
            bail!(WrongUse("--json and --html - cannot both go to stdout; name a file for the page".to_owned()));
        }
        self.files.check()?;
        self.html.check(&self.files)?;
        let mut answers = Vec::new();
        for wanted in &wanted {
            let answered =
                self.recordings.open(wanted, &interrupt).and_then(|recording| self.answer(recording, &options));
            match answered {
                Ok(answered) => answers.push(answered),
                Err(error) if is_wrong_use(&error) => return Err(error),
                Err(error) => complain(&error),
            }
        }
        if answers.is_empty() {
            return Ok(Exit::NoAnswer);
        }
        // Files first: they are wanted whole even if whoever reads the text goes away.
        if let [answered] = answers.as_slice() {
            self.files.write_tables(&answered.sections, &interrupt)?;
            self.html.write(answered.for_programs(), answered.drawn.as_ref(), &interrupt)?;
        }
        if !self.html.is_stdout() {
            self.print(&answers)?;
        }
        Ok(self.verdict(&answers))
    }

    /// Asks every question; one that fails is said on stderr and does not cost the others.
    fn answer(&self, recording: Recording, options: &Options) -> anyhow::Result<Answered> {
        let title = recording.title();
        let input = Input::open(recording)?;
        let mut progress = Progress::new(!self.no_progress);
        let Answers { sections, problems, failed } =
            Answers::of(&input, options, &mut |done, all| progress.at(done, all));
        let drawn = if self.html.wanted() && !sections.is_empty() {
            html::draw(&input, options, &mut |done, all| progress.at(done, all))
        } else {
            None
        };
        drop(progress);
        let (asked, failed): (Vec<_>, Vec<_>) = failed.into_iter().partition(analysis::Error::is_of_what_was_asked);
        if let Some(error) = asked.into_iter().next() {
            return Err(error.into());
        }
        if sections.is_empty() {
            return Err(failed.into_iter().next().map_or_else(
                || {
                    anyhow!(
                        "{title} has no events that a question can use; record some with `kvmscope record --seconds 10`"
                    )
                },
                Into::into,
            ));
        }
        failed.into_iter().for_each(|error| complain(&error.into()));
        Ok(Answered { recording: input.recording, sections, problems, drawn })
    }

    fn print(&self, answers: &[Answered]) -> anyhow::Result<()> {
        let mut out = BufWriter::new(std::io::stdout().lock());
        if self.json {
            let shown: Vec<_> = answers.iter().map(Answered::for_programs).collect();
            show::json::write(&mut out, "report", &shown)?;
        } else {
            let page = self.page.page();
            for (index, answered) in answers.iter().enumerate() {
                if answers.len() > 1 {
                    let gap = if index > 0 { "\n" } else { "" };
                    writeln!(out, "{gap}== {} ==\n", answered.recording.title())?;
                }
                out.write_all(show::text::render(&answered.sections, &answered.problems, &page).as_bytes())?;
            }
        }
        Ok(out.flush()?)
    }

    fn verdict(&self, answers: &[Answered]) -> Exit {
        FailOn::verdict(self.fail_on, answers.iter().flat_map(|answered| &answered.sections))
    }
}

impl Answered {
    fn for_programs(&self) -> show::json::Answered<'_> {
        show::json::Answered { recording: &self.recording, sections: &self.sections, problems: &self.problems }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::recording::Named;
    use base::{Cost, Evidence, Finding, Level, Needs, Severity};

    fn answered_with(severity: Severity) -> Answered {
        let mut section = Section::new("flow", "?");
        section.findings.push(Finding {
            rule: "FLW-X",
            subject: "web".into(),
            severity,
            level: Level::L0,
            title: "x".into(),
            evidence: vec![Evidence { what: "seen".into(), place: "here".into() }],
            cost: Cost::none(),
            why: String::new(),
            changes: Vec::new(),
            fix: Vec::new(),
            undo: Vec::new(),
            needs: Needs::Nothing,
            source: "",
        });
        let here = Named::at_l0(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let recording = Recording::of_files(&[here], None).unwrap();
        Answered { recording, sections: vec![section], problems: Vec::new(), drawn: None }
    }

    #[test]
    fn a_finding_at_or_above_the_limit_decides_the_exit_status() {
        let report = |arguments: &[&str]| Alone::parse_from([&["report", "x"], arguments].concat()).report;
        let low = [answered_with(Severity::Info), answered_with(Severity::Low)];
        assert_eq!(report(&[]).verdict(&low), Exit::Answered);
        assert_eq!(report(&["--fail-on", "medium"]).verdict(&low), Exit::Answered);
        assert_eq!(report(&["--fail-on", "low"]).verdict(&low), Exit::FailOn);
        assert_eq!(report(&["--fail-on", "info"]).verdict(&low), Exit::FailOn);
        assert_eq!(report(&["--fail-on", "info"]).verdict(&[]), Exit::Answered);
    }
}
