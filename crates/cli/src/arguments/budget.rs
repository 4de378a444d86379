//! `--budget NAME|FILE`: a built-in budget, or one in a file.

use crate::exit::WrongUse;
use analysis::facts::budget::{BUILT_IN, Budget, MOST_BYTES, Workload, built_in, built_in_text};
use anyhow::bail;
use base::nearest::instead;
use clap::{Args, ValueEnum, ValueHint};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Which budget judges.
#[derive(Args)]
#[command(next_help_heading = "Judge by a latency budget")]
pub struct BudgetOption {
    /// Judge the goals of this budget: kvm4nfv-2015, kvm4nfv-future, or a file (docs/budgets.md)
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    budget: Option<PathBuf>,
}

impl BudgetOption {
    /// What the user named.
    pub fn name(&self) -> Option<&Path> {
        self.budget.as_deref()
    }

    /// The budget, read.
    pub fn read(&self) -> anyhow::Result<Option<Budget>> {
        self.budget.as_deref().map(read_budget).transpose()
    }
}

/// What a migrated guest is busy with.
#[derive(Args)]
pub struct WorkloadOption {
    /// What the migrated guest is busy with: goals of a budget may be of one workload alone
    #[arg(long, value_enum, value_name = "WORKLOAD", help_heading = "Judge by a latency budget")]
    workload: Option<WorkloadName>,
}

#[derive(Clone, Copy, ValueEnum)]
enum WorkloadName {
    Io,
    Memory,
}

impl WorkloadOption {
    /// The one that the user states.
    pub fn workload(&self) -> Option<Workload> {
        self.workload.map(|name| match name {
            WorkloadName::Io => Workload::Io,
            WorkloadName::Memory => Workload::Memory,
        })
    }
}

/// The budget that a user names.
pub fn read_budget(name: &Path) -> anyhow::Result<Budget> {
    Ok(read_budget_text(name)?.0)
}

/// The budget that a user names, with its text. A built-in one goes before a file of its name, which `./NAME` means.
pub fn read_budget_text(name: &Path) -> anyhow::Result<(Budget, String)> {
    let known = name.to_str().and_then(|name| built_in(name).zip(built_in_text(name)));
    if let Some((budget, text)) = known {
        return Ok((budget, text.to_owned()));
    }
    let shown = name.display().to_string();
    let mut text = String::new();
    // One byte more than is read, so that a longer file is refused and not cut.
    let read = File::open(name).and_then(|file| file.take(MOST_BYTES as u64 + 1).read_to_string(&mut text));
    match read {
        Ok(_) => Ok((Budget::read(&shown, &text).map_err(|error| WrongUse(error.to_string()))?, text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let instead = instead(&shown, BUILT_IN.iter().map(|(name, _)| *name));
            bail!(WrongUse(format!("{shown} is neither a built-in budget nor a file; {instead}")))
        }
        Err(error) => bail!(WrongUse(format!("{shown}: {error}"))),
    }
}
