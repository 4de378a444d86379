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
pub mod places;
mod probe;
mod wishes;

use crate::arguments::{Answered, JournalPlace, OutputOptions, ReplaceOptions, Stdin, opened, span};
use crate::exit::{Exit, WrongUse, complain};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use analysis::{About, Answers, Case, Input, Options};
use anyhow::bail;
use base::recording::Recording;
use clap::{Args, ValueHint};
use places::Root;
use std::path::PathBuf;
use std::time::Duration;
use wishes::WishOptions;

/// Report how this host, or a snapshot of another, is set up for virtualization, and what to change
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope check\n  \
    kvmscope check --probe\n  \
    kvmscope check --root sosreport-host1.tar.xz\n  \
    kvmscope check --root L0=host --root L1=guest\n  \
    kvmscope check fixtures/hosts-intel\n  \
    kvmscope check --paste ticket.txt top.txt\n  \
    kvmscope check --goal latency --keep web --reserve 0-1\n  \
    kvmscope check --keep eth0 --keep pmd\n  \
    kvmscope check --paste ticket.txt --xml > pins.xml\n  \
    kvmscope check --json > report.json && kvmscope apply PLC-PROPOSAL@2 --from report.json --dry-run\n  \
    kvmscope check --json | jq '.sections[].tables.features'\n  \
    kvmscope check --fail-on high\n\n\
    Works without root, but reads more as root; changes nothing. --probe traces for a moment and needs root.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding of at least the severity of --fail-on.")]
pub struct Check {
    /// A recording with snapshots, or a directory that has proc and sys [default: this host, now]
    #[arg(value_name = "PATH", conflicts_with = "root", value_hint = ValueHint::AnyPath)]
    path: Option<PathBuf>,
    /// A directory with proc and sys of a machine, or an archive of one, and its level; may be repeated to
    /// compare levels
    #[arg(long, value_name = "[LEVEL=]DIR", value_parser = places::root, value_hint = ValueHint::DirPath)]
    root: Vec<Root>,
    /// Run a tiny test guest on this host, in a tracing instance of its own, to find out which events fire
    #[arg(long, conflicts_with_all = ["path", "root", "paste"])]
    probe: bool,
    #[command(flatten)]
    journal: JournalPlace,
    /// Pasted text, such as the output of top, lscpu and virsh, in any mix, - for stdin; files are assumed to be
    /// in chronological order
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["path", "root"], value_hint = ValueHint::FilePath)]
    paste: Vec<PathBuf>,
    #[command(flatten)]
    wishes: WishOptions,
    /// Seconds between two samples of this host, from which CPU shares and waiting are computed; 0: a single sample
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds, conflicts_with_all = ["path", "paste"])]
    span: Duration,
    /// Print only the libvirt XML elements of each domain for the first placement, or for the one of this rank
    #[arg(long, value_name = "RANK", num_args = 0..=1, default_missing_value = "1", conflicts_with_all = ["json", "csv", "html"])]
    xml: Option<u64>,
    #[arg(skip)]
    stdin: Stdin,
    #[command(flatten)]
    replace: ReplaceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let span = Duration::from_nanos(span(text)?);
    let sensible = span.is_zero() || (0.6..=600.0).contains(&span.as_secs_f64());
    if sensible { Ok(span) } else { Err("write 0.6 to 600 seconds, or 0 for a single sample".to_owned()) }
}

impl Check {
    /// Answers all questions about setup.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let interrupt = Interrupt::watch()?;
        // Kept until all is printed: facts are read from it as they are asked for.
        let live = interrupt.temporary("kvmscope-check-")?;
        self.output.check(1, self.replace.force)?;
        if self.root.iter().any(|root| !root.is_this_host()) && self.span != places::SPAN {
            bail!(WrongUse("--span works only for this host: files of another host do not change".to_owned()));
        }
        let recording = match (&self.path, self.root.as_slice()) {
            _ if !self.paste.is_empty() => places::pasted(&self.paste, &self.stdin)?,
            (Some(path), _) if places::is_tree(path) => places::trees(&[Root::at(path)])?,
            (Some(path), _) => opened(path, &self.stdin, &interrupt)?,
            (None, []) => {
                let recording = places::this_host(live.path(), None, self.span)?;
                let tree = &recording.parts[recording.parts.len() - 1].path;
                let failed = self.probe.then(|| probe::fire(&self.journal.journal(), tree, &interrupt)).flatten();
                Recording { problems: failed.into_iter().collect(), ..recording }
            }
            (None, [root]) if root.is_this_host() => places::this_host(live.path(), Some(root), self.span)?,
            (None, roots) => {
                let tree = |root| places::unpacked(root, &self.stdin, &interrupt);
                places::trees(&roots.iter().map(tree).collect::<Result<Vec<_>, _>>()?)?
            }
        };
        let title = recording.title();
        let options = Options { all_features: true, placement: self.wishes.wishes(), ..Options::default() };
        let progress = Progress::new(true);
        let case = Case::new(Input::open(recording)?, options).with_progress(progress.hear());
        // Where there are traces, they tell what the findings cost.
        let Answers { sections, problems, failed } = Answers::about(&case, &[About::Setup]);
        progress.finish();
        let (asked, failed): (Vec<_>, Vec<_>) = failed.into_iter().partition(analysis::Error::is_of_what_was_asked);
        if let Some(error) = asked.into_iter().next() {
            return Err(error.into());
        }
        failed.into_iter().for_each(|error| complain(&error.into()));
        if sections.is_empty() {
            match self.paste.is_empty() {
                true => bail!("{title} has no snapshot of a machine; take one there with `kvmscope snapshot`"),
                false => bail!("no line of {title} was understood; --paste reads {}", host::paste::RECOGNIZED),
            }
        }
        let answers = [Answered::of(case.input().recording.clone(), sections, problems)];
        match self.xml {
            None => self.output.end("check", &answers, &interrupt),
            Some(rank) => self.output.end_with(&answers, &interrupt, |out| definitions::print(out, &case, rank)),
        }
    }
}
