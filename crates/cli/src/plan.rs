//! `kvmscope plan`: what would happen if.

mod chain;
mod migration;
mod nested;
pub(crate) mod numbers;
pub(crate) mod quantities;

pub(crate) use chain::read_plan;

use clap::{Args, Subcommand};
use process::exit::Exit;

/// Predict what a change would save
#[derive(Args)]
pub(crate) struct Plan {
    #[command(subcommand)]
    of: Of,
}

#[derive(Subcommand)]
enum Of {
    Chain(Box<chain::ChainOptions>),
    Migration(Box<migration::Migration>),
    Nested(Box<nested::Nested>),
}

impl Plan {
    /// Predicts.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        match &self.of {
            Of::Chain(chain) => chain.run(),
            Of::Migration(migration) => migration.run(),
            Of::Nested(nested) => nested.run(),
        }
    }
}
