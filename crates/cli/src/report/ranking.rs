//! `--sort`, `--top`, `--by`: what people see first in the tables, as users of `perf kvm stat` know them.

use analysis::facts::ranking::{By, Ranking, Sort};
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;

/// Options that rank tables for people; JSON and CSV keep all rows in their own order.
#[derive(Args)]
#[command(next_help_heading = "Rank the tables (text and --html)")]
pub(super) struct RankingOptions {
    /// Sort key: most time, most exits, or the highest 99th percentile
    #[arg(long, value_name = "KEY", default_value = "time")]
    sort: SortKey,
    /// Rows to show of each ranked table
    #[arg(long, value_name = "N")]
    top: Option<NonZeroUsize>,
    /// Overview table to show, for any number of vCPUs
    #[arg(long, value_name = "WHAT")]
    by: Option<Overview>,
}

#[derive(Clone, Copy, ValueEnum)]
enum SortKey {
    Time,
    Count,
    P99,
}

#[derive(Clone, Copy, ValueEnum)]
enum Overview {
    Vm,
    Vcpu,
    Reason,
}

impl RankingOptions {
    /// The same as the questions take it.
    pub(super) fn ranking(&self) -> Ranking {
        Ranking {
            sort: match self.sort {
                SortKey::Time => Sort::Time,
                SortKey::Count => Sort::Count,
                SortKey::P99 => Sort::P99,
            },
            top: self.top.map(NonZeroUsize::get),
            by: self.by.map(|by| match by {
                Overview::Vm => By::Vm,
                Overview::Vcpu => By::Vcpu,
                Overview::Reason => By::Reason,
            }),
        }
    }
}
