//! `kvmscope fleet`: one answer over all recordings of a data set.

#[cfg(feature = "full")]
use crate::arguments::Answered;
use crate::arguments::{OutputOptions, ReplaceOptions};
use clap::{Args, Subcommand, ValueHint};
use process::exit::Exit;
use std::path::PathBuf;

/// Report over many recordings of many hosts
#[derive(Args)]
pub(crate) struct Fleet {
    #[command(subcommand)]
    of: Of,
}

#[derive(Subcommand)]
enum Of {
    Report(Report),
}

/// Report what costs most, which hosts stand out, what would help how many hosts, and what drifts
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope export nightly/* --dataset fleet\n  \
    kvmscope fleet report fleet\n  \
    kvmscope fleet report fleet --html fleet.html\n  \
    kvmscope fleet report fleet --json | jq '.sections[].tables.outliers'\n\n\
    DATASET is a directory made by kvmscope export --dataset or by Python's kvmscope.fleet; for other stores, kvmscope.fleet.report\n\
    gives the same answer. docs/use/compare.md describes it.\n\
    Exit status: 0 answered, 1 nothing could be answered, 2 wrong usage, 3 a finding at or above --fail-on.")]
struct Report {
    /// Directory of the data set
    #[arg(value_name = "DATASET", value_hint = ValueHint::DirPath)]
    dataset: PathBuf,
    #[command(flatten)]
    replace: ReplaceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

impl Fleet {
    /// Answers.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        match &self.of {
            Of::Report(report) => report.run(),
        }
    }
}

impl Report {
    #[cfg(feature = "full")]
    fn run(&self) -> anyhow::Result<Exit> {
        use process::exit::WrongUse;
        use process::interrupt::Interrupt;

        self.output.check(1, self.replace.force)?;
        let interrupt = Interrupt::watch()?;
        if let Some(url) = self.dataset.to_str().filter(|text| fleet::is_url(text)) {
            let how = format!(
                "{url}: this program reads directories of this machine; Python reads other stores: kvmscope.fleet.report(\"{url}\")"
            );
            return Err(WrongUse(how).into());
        }
        let fleet = fleet::Local::open(&self.dataset).map_err(|error| WrongUse(error.to_string()))?.fleet()?;
        if fleet.is_empty() && fleet.failed().next().is_some() {
            let failed: Vec<String> =
                fleet.failed().map(|(source, why)| format!("\n  {source}: {}", brief(why))).collect();
            anyhow::bail!("{} has no recordings that can be read:{}", self.dataset.display(), failed.concat());
        }
        if fleet.is_empty() {
            anyhow::bail!(
                "{} has no recordings; add some: kvmscope export RECORDING.. --dataset {}",
                self.dataset.display(),
                self.dataset.display()
            );
        }
        let (recording, answers) = fleet::answer(fleet)?;
        if let Some(error) = answers.failed.into_iter().next() {
            return Err(error.into());
        }
        self.output.end("fleet", &[Answered::of(recording, answers.sections, answers.problems)], &interrupt)
    }

    #[cfg(not(feature = "full"))]
    fn run(&self) -> anyhow::Result<Exit> {
        self.output.check(1, self.replace.force)?;
        let sentence = format!(
            "{}: this is the slim build, without Parquet; `make full` builds the full one",
            self.dataset.display()
        );
        Err(process::exit::WrongUse(sentence).into())
    }
}

/// The beginning of a reason that may be a page.
#[cfg(feature = "full")]
fn brief(why: &str) -> &str {
    base::plain::beginning(why, 200)
}
