//! `--budget NAME|FILE`: a built-in budget, or one in a file.

use super::named;
use crate::completed::budgets;
use analysis::facts::budget::{self, Budget, Workload};
use clap::Args;
use process::exit::WrongUse;
use std::path::{Path, PathBuf};

/// Which budget judges.
#[derive(Args)]
#[command(next_help_heading = "Judge by a latency budget")]
pub(crate) struct BudgetOption {
    /// Judge the goals of this budget: kvm4nfv-2015, kvm4nfv-future, or a file (docs/read/latency.md)
    #[arg(long, value_name = "NAME|FILE", add = budgets())]
    budget: Option<PathBuf>,
}

impl BudgetOption {
    /// What the user named.
    pub(crate) fn name(&self) -> Option<&Path> {
        self.budget.as_deref()
    }

    /// The budget, read.
    pub(crate) fn read(&self) -> anyhow::Result<Option<Budget>> {
        self.budget.as_deref().map(read_budget).transpose()
    }
}

/// What a migrated guest is busy with.
#[derive(Args)]
pub(crate) struct WorkloadOption {
    /// Workload of the migrated guest; some goals of a budget apply to one workload only
    #[arg(long, value_parser = named(Workload::ALL, Workload::name), value_name = "WORKLOAD", help_heading = "Judge by a latency budget")]
    workload: Option<Workload>,
}

impl WorkloadOption {
    /// The one that the user states.
    pub(crate) fn workload(&self) -> Option<Workload> {
        self.workload
    }
}

/// The budget that a user names.
pub(crate) fn read_budget(name: &Path) -> anyhow::Result<Budget> {
    Ok(read_budget_text(name)?.0)
}

/// The budget that a user names, with its text.
pub(crate) fn read_budget_text(name: &Path) -> anyhow::Result<(Budget, String)> {
    Ok(budget::named(name).map_err(WrongUse)?)
}
