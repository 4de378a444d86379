//! `--include-hlt`: what counts as lost time.

use analysis::LossOptions;
use clap::Args;

/// Options about time that the host took from vCPUs.
#[derive(Args)]
#[command(next_help_heading = "Lost time")]
pub(super) struct LossArguments {
    /// Also count the time from exit to entry while the guest was halted
    #[arg(long)]
    include_hlt: bool,
}

impl LossArguments {
    /// The same as the question takes it.
    pub(super) fn options(&self) -> LossOptions {
        LossOptions { include_halts: self.include_hlt }
    }
}
