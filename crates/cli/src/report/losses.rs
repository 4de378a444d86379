//! `--include-hlt`, `--compat`: what counts as lost time, and which other program's numbers stand beside.

use analysis::LossOptions;
use clap::{Args, ValueEnum};

/// Options about time that the host took from vCPUs.
#[derive(Args)]
#[command(next_help_heading = "Lost time")]
pub struct LossArguments {
    /// Count the time from exit to entry also while the guest had halted
    #[arg(long)]
    include_hlt: bool,
    /// Also print what this program would print of the recording
    #[arg(long, value_name = "PROGRAM")]
    compat: Option<Program>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Program {
    /// vm-trace of OPNFV's KVM4NFV
    VmTrace,
}

impl LossArguments {
    /// The same as the question takes it.
    pub fn options(&self) -> LossOptions {
        let vm_trace = match self.compat {
            Some(Program::VmTrace) => true,
            None => false,
        };
        LossOptions { include_halts: self.include_hlt, vm_trace }
    }
}
