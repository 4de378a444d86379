//! `kvmscope budget`: the built-in latency budgets as files to begin with, and a look at one's own.

use crate::arguments::read_budget;
use analysis::facts::budget::{BUILT_IN, built_in_text};
use base::number::many;
use clap::{Args, ValueHint};
use process::exit::Exit;
use std::io::Write;
use std::path::PathBuf;

/// Print a built-in latency budget as TOML, or check a budget file
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope budget\n  \
    kvmscope budget kvm4nfv-2015 > mine.toml\n  \
    kvmscope budget mine.toml\n\n\
    docs/read/latency.md describes the file. Exit status: 0 printed, 2 wrong usage or an error in the file.")]
pub(crate) struct Budget {
    /// A built-in budget to print, or a file to check; without it, the built-in ones are listed
    #[arg(value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    budget: Option<PathBuf>,
}

impl Budget {
    /// Prints it.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let mut out = std::io::stdout().lock();
        let goals = |count: usize| many(count as u64, "goal");
        match &self.budget {
            None => {
                let widest = BUILT_IN.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
                for (name, _) in BUILT_IN {
                    let budget = read_budget(name.as_ref())?;
                    writeln!(out, "{name:widest$}  {}", goals(budget.goals.len()))?;
                }
            }
            Some(named) => match named.to_str().and_then(built_in_text) {
                Some(text) => out.write_all(text.as_bytes())?,
                None => {
                    let budget = read_budget(named)?;
                    let name = base::plain::plain(&budget.name);
                    writeln!(out, "{}: budget {name}, {}", named.display(), goals(budget.goals.len()))?;
                }
            },
        }
        Ok(Exit::Answered)
    }
}
