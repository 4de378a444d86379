//! How a command that answers in sections shows them, and how it ends: the same options with the same meaning for all.
//!
//! ```text
//! asked:     check            files that cannot be written are refused before the work is done
//! answered:  end   files      --csv, --html: whole or not at all, even if whoever reads the text goes away
//!                  print      text, or --json; nothing where the page itself goes to stdout
//!                  verdict    --fail-on decides the exit status
//! ```

use super::html::HtmlOptions;
use super::{is_dash, named};
use base::recording::Recording;
use base::{Problem, Section, Severity};
use clap::{Args, ValueHint};
use process::PageOptions;
use process::Staging;
use process::exit::{Exit, WrongUse};
use process::interrupt::Interrupt;
use show::html::Drawing;
use show::text::{Step, render_brief};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Options of every command that answers in sections.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Print one JSON object (schema kvmscope/1) instead of text
    #[arg(long)]
    json: bool,
    /// Also write each table as a CSV file into DIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    csv: Option<PathBuf>,
    #[command(flatten)]
    html: HtmlOptions,
    /// Exit with status 3 if a finding has at least this severity
    #[arg(long, value_name = "SEVERITY", value_parser = named(Severity::ALL, Severity::name))]
    fail_on: Option<Severity>,
    #[command(flatten)]
    page: PageOptions,
}

/// Whether files may be replaced, of commands that make no recording.
#[derive(Args)]
pub(crate) struct ReplaceOptions {
    /// Replace existing files
    #[arg(long, help_heading = "Output")]
    pub force: bool,
}

/// What a recording answered.
pub(crate) struct Answered {
    /// The recording.
    pub recording: Recording,
    /// All recordings of a comparison, those from before the change first; none where nothing is compared.
    pub compared: Vec<Recording>,
    /// The answers.
    pub sections: Vec<Section>,
    /// What was wrong with it.
    pub problems: Vec<Problem>,
    /// Its vCPUs over time, where a page wants them.
    pub drawn: Option<Drawing>,
}

impl OutputOptions {
    /// Whether text is replaced by JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Whether files are wanted besides what is printed, or a page in its place.
    pub(crate) fn writes_files(&self) -> bool {
        self.csv.is_some() || self.wants_page()
    }

    /// Prints what is no section: told whether as JSON, and on which page.
    pub(crate) fn print(
        &self,
        print: impl FnOnce(&mut dyn Write, bool, &show::text::Page) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut out = BufWriter::new(std::io::stdout().lock());
        print(&mut out, self.json, &self.page.page())?;
        Ok(out.flush()?)
    }

    /// Whether a page is wanted.
    pub(crate) fn wants_page(&self) -> bool {
        self.html.path().is_some()
    }

    /// Refuses what cannot be shown of so many recordings, and files that cannot be written: with `force` they may be replaced.
    pub(crate) fn check(&self, recordings: usize, force: bool) -> Result<(), WrongUse> {
        if self.csv.is_some() && recordings > 1 {
            return Err(WrongUse("--csv writes the tables of one recording; name one PATH".to_owned()));
        }
        if self.wants_page() && recordings > 1 {
            return Err(WrongUse("--html writes the page of one recording; name one PATH".to_owned()));
        }
        if self.page_is_printed() && self.json {
            return Err(WrongUse("--json and --html - cannot both go to stdout; name a file for the page".to_owned()));
        }
        self.csv.as_deref().map_or(Ok(()), |directory| Staging::check_directory(directory, force))?;
        let file = self.html.path().filter(|path| !is_dash(path));
        file.map_or(Ok(()), |file| Staging::check_file(file, force))
    }

    /// Shows what `command` found in each recording, and says how it ends.
    pub(crate) fn end(&self, command: &str, answers: &[Answered], interrupt: &Interrupt) -> anyhow::Result<Exit> {
        self.end_with(answers, interrupt, |out| match self.json {
            true => Ok(show::json::write(out, command, &answers.iter().map(Answered::shown).collect::<Vec<_>>())?),
            false => self.text(out, answers),
        })
    }

    /// The same, and text is no more than the first page; `rest` are commands that show more.
    pub(crate) fn end_briefly(
        &self,
        command: &str,
        answers: &[Answered],
        rest: &[Step<'_>],
        interrupt: &Interrupt,
    ) -> anyhow::Result<Exit> {
        if self.json {
            return self.end(command, answers, interrupt);
        }
        let page = self.page.page();
        self.end_with(answers, interrupt, |out| {
            for (index, one) in answers.iter().enumerate() {
                heading(out, index, answers)?;
                // What more there is to see is said once, below all.
                let rest = if index + 1 == answers.len() { rest } else { &[] };
                out.write_all(render_brief(&one.sections, &one.problems, rest, &page).as_bytes())?;
            }
            Ok(())
        })
    }

    /// The same where something else than the sections is printed.
    pub(crate) fn end_with(
        &self,
        answers: &[Answered],
        interrupt: &Interrupt,
        print: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<Exit> {
        if let [answered] = answers {
            if let Some(directory) = &self.csv {
                let fill = |partial: &std::path::Path| show::csv::write_csv(&answered.sections, None, partial);
                Staging::new(interrupt).directory(directory, fill)?;
            }
            self.html.write(answered.shown(), answered.drawn.as_ref(), interrupt)?;
        }
        if !self.page_is_printed() {
            let mut out = BufWriter::new(std::io::stdout().lock());
            print(&mut out)?;
            out.flush()?;
        }
        Ok(self.verdict(answers))
    }

    /// Whether stdout is for the page.
    pub(crate) fn page_is_printed(&self) -> bool {
        self.html.path().is_some_and(is_dash)
    }

    fn text(&self, out: &mut dyn Write, answers: &[Answered]) -> anyhow::Result<()> {
        let page = self.page.page();
        for (index, answered) in answers.iter().enumerate() {
            heading(out, index, answers)?;
            out.write_all(show::text::render(&answered.sections, &answered.problems, &page).as_bytes())?;
        }
        Ok(())
    }

    fn verdict(&self, answers: &[Answered]) -> Exit {
        let mut findings = answers.iter().flat_map(|answered| &answered.sections).flat_map(|section| &section.findings);
        let is_bad = self.fail_on.is_some_and(|limit| findings.any(|finding| finding.severity >= limit));
        if is_bad { Exit::FailOn } else { Exit::Answered }
    }
}

/// Says whose answer follows, where there are several.
fn heading(out: &mut dyn Write, index: usize, answers: &[Answered]) -> std::io::Result<()> {
    if answers.len() < 2 {
        return Ok(());
    }
    let gap = if index > 0 { "\n" } else { "" };
    writeln!(out, "{gap}== {} ==\n", answers[index].recording.title())
}

impl Answered {
    /// What one recording answered.
    pub(crate) fn of(recording: Recording, sections: Vec<Section>, problems: Vec<Problem>) -> Self {
        Self { recording, compared: Vec::new(), sections, problems, drawn: None }
    }

    /// The same as JSON is written from it.
    pub(crate) fn shown(&self) -> show::json::Answered<'_> {
        let Self { recording, compared, sections, problems, .. } = self;
        show::json::Answered { recording, compared, sections, problems }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::recording::Named;
    use base::{Cost, Evidence, Finding, Level, Needs, Severity};
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        output: OutputOptions,
    }

    fn answered_with(severity: Severity) -> Answered {
        let mut section = Section::new("flow", "?");
        section.findings.push(Finding {
            rule: "FLW-X",
            subject: "web".into(),
            per: "VM",
            severity,
            level: Level::L0,
            title: "x".into(),
            evidence: vec![Evidence::new("seen", "here")],
            cost: Cost::none(),
            gives_back: None,
            explains: Vec::new(),
            why: String::new(),
            changes: Vec::new(),
            fix: Vec::new(),
            undo: Vec::new(),
            needs: Needs::Nothing,
            source: "",
        });
        let here = Named::at_l0(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        Answered::of(Recording::of_files(&[here], None).unwrap(), vec![section], Vec::new())
    }

    #[test]
    fn a_finding_at_or_above_the_limit_decides_the_exit_status() {
        let output = |arguments: &[&str]| Alone::parse_from([&["kvmscope"], arguments].concat()).output;
        let low = [answered_with(Severity::Info), answered_with(Severity::Low)];
        assert_eq!(output(&[]).verdict(&low), Exit::Answered);
        assert_eq!(output(&["--fail-on", "medium"]).verdict(&low), Exit::Answered);
        assert_eq!(output(&["--fail-on", "low"]).verdict(&low), Exit::FailOn);
        assert_eq!(output(&["--fail-on", "info"]).verdict(&low), Exit::FailOn);
        assert_eq!(output(&["--fail-on", "info"]).verdict(&[]), Exit::Answered);
    }
}
