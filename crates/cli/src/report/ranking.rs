//! `--sort`, `--top`, `--by`: what people see first in the tables, as users of `perf kvm stat` know them.

use crate::arguments::named;
use analysis::facts::ranking::{By, Ranking, Sort};
use clap::Args;
use std::num::NonZeroUsize;

/// Options that rank tables for people; JSON and CSV keep all rows in their own order.
#[derive(Args)]
#[command(next_help_heading = "Rank the tables (text and --html)")]
pub(super) struct RankingOptions {
    /// Sort key: most time, most exits, or the highest 99th percentile
    #[arg(long, value_name = "KEY", default_value = "time", value_parser = named(Sort::ALL, Sort::name))]
    sort: Sort,
    /// Rows to show of each ranked table
    #[arg(long, value_name = "N")]
    top: Option<NonZeroUsize>,
    /// Overview table to show, for any number of vCPUs
    #[arg(long, value_name = "WHAT", value_parser = named(By::ALL, By::name))]
    by: Option<By>,
}

impl RankingOptions {
    /// The same as the questions take it.
    pub(super) fn ranking(&self) -> Ranking {
        Ranking { sort: self.sort, top: self.top.map(NonZeroUsize::get), by: self.by }
    }
}
