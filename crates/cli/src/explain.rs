//! `kvmscope explain ID`: all about one finding, or about one rule.
//!
//! ```text
//! RULE@SUBJECT [machines]   that finding of these machines, with the rows that its evidence is about
//! RULE machines             all findings of the rule there
//! RULE                      the rule itself: what it looks at, from where on, why, its source
//! ```

use crate::arguments::{Answered, OutputOptions, ReplaceOptions};
use crate::check::machines::MachineOptions;
use analysis::{Answers, Case};
use anyhow::bail;
use base::nearest::instead;
use base::rule::Words;
use base::{About, Section};
use clap::Args;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use process::Progress;
use process::exit::{Exit, WrongUse, complain};
use process::interrupt::Interrupt;

/// Explain a finding or a rule: why, cost, commands, undo
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope explain PLC-OVERLAP\n  \
    kvmscope explain PLC-PMD@vnf fixtures/hosts-sosreport\n  \
    kvmscope explain PLC-SMT fixtures/seed-vhost\n  \
    kvmscope explain FLW-PREEMPT trace.dat\n  \
    kvmscope explain NST-SHADOW --json | jq .rules\n\n\
    Without a PATH, --root or --paste, the ID of a rule explains the rule; with one, all its findings there.\n\
    Exit status: 0 answered, 1 the rule has no finding there, 2 wrong usage, 3 a finding at or above --fail-on.")]
pub(crate) struct Explain {
    /// A finding, such as PLC-OVERLAP@web, or a rule, such as PLC-OVERLAP
    #[arg(value_name = "ID", value_parser = IdParser, hide_possible_values = true)]
    id: String,
    #[command(flatten)]
    machines: MachineOptions,
    #[command(flatten)]
    replace: ReplaceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Takes any text; shells complete the names of rules.
#[derive(Clone)]
struct IdParser;

impl TypedValueParser for IdParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(analysis::rules().map(|rule| PossibleValue::new(rule.id))))
    }
}

impl Explain {
    /// Explains.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let (rule, is_rule) = self.id.split_once('@').map_or((self.id.as_str(), true), |(rule, _)| (rule, false));
        let words: Vec<Words> = analysis::rules().filter(|words| words.id == rule).collect();
        if words.is_empty() {
            let known: Vec<&str> = analysis::rules().map(|words| words.id).collect();
            bail!(WrongUse(format!("no rule is called {rule}; {}", instead(rule, known))));
        }
        if is_rule && !self.machines.are_named() { self.rules(&words) } else { self.findings() }
    }

    /// What a rule says of itself. Damaged memory has a rule for guests that moved and one for guests that slept in a file.
    fn rules(&self, words: &[Words]) -> anyhow::Result<Exit> {
        if self.output.writes_files() {
            bail!(WrongUse("a rule has no tables: --csv and --html need a PATH, --root or --paste".to_owned()));
        }
        self.output.print(|out, json, page| match json {
            true => Ok(show::json::write_rules(out, "explain", words)?),
            false => {
                let texts: Vec<String> = words.iter().map(|words| show::text::render_rule(words, page)).collect();
                Ok(out.write_all(texts.join("\n").as_bytes())?)
            }
        })?;
        Ok(Exit::Answered)
    }

    fn findings(&self) -> anyhow::Result<Exit> {
        let interrupt = Interrupt::watch()?;
        // Kept until all is printed: facts are read from it as they are asked for.
        let live = interrupt.temporary("kvmscope-explain")?;
        self.output.check(1, self.replace.force)?;
        self.machines.check()?;
        let given = self.machines.given(&interrupt)?;
        let (mut answers, mut ids, mut titles) = (Vec::new(), Vec::new(), Vec::new());
        for recording in self.machines.recordings(live.path(), &interrupt)? {
            titles.push(recording.title());
            let progress = Progress::new(true);
            let case = Case::new(analysis::open(recording)?, given.clone()).with_progress(progress.hear());
            let Answers { mut sections, problems, failed } = Answers::of(&case);
            progress.finish();
            failed.into_iter().for_each(|error| complain(&error.into()));
            ids.extend(sections.iter().flat_map(|section| &section.findings).map(|finding| finding.id()));
            sections.retain_mut(|section| keep(section, &self.id));
            if !sections.is_empty() {
                answers.push(Answered::of(case.input().recording.clone(), sections, problems));
            }
        }
        if answers.is_empty() {
            let title = titles.join(", ");
            let rule = self.id.split_once('@').map_or(self.id.as_str(), |(rule, _)| rule);
            let of_rule = ids.iter().map(String::as_str).filter(|id| id.split_once('@').is_some_and(|id| id.0 == rule));
            let of_rule: Vec<&str> = of_rule.collect();
            match of_rule.is_empty() {
                true => bail!("{title} has no finding of {rule}; `kvmscope explain {rule}` shows what it looks at"),
                false => bail!(WrongUse(format!("{title} has no finding {}; {}", self.id, instead(&self.id, of_rule)))),
            }
        }
        self.output.end("explain", &answers, &interrupt)
    }
}

/// Leaves of a section what is about the wanted findings: them, and the rows that their evidence names. False if it has none.
fn keep(section: &mut Section, wanted: &str) -> bool {
    section.findings.retain(|finding| finding.id() == wanted || finding.rule == wanted);
    let seen: Vec<&About> =
        section.findings.iter().flat_map(|finding| &finding.evidence).flat_map(|evidence| &evidence.about).collect();
    for table in &mut section.tables {
        let spec = table.spec;
        table.rows.retain(|row| seen.iter().any(|about| about.is_row(spec, row)));
    }
    section.tables.retain(|table| !table.rows.is_empty());
    section.figures.clear();
    section.unknown.clear();
    section.summary.clear();
    section.next.clear();
    !section.findings.is_empty()
}
