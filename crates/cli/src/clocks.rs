//! `kvmscope clocks`: what the clocks of this machine show now.

use base::recording::{Machine, Moment};
use clap::Args;
use process::exit::Exit;
use std::io::Write;

/// Print the current values of this machine's clocks and TSC
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvmscope clocks >> clocks.txt\n\n\
    In a guest, before and after a latency test: with --part L1=clocks.txt next to the result, `kvmscope report` finds\n\
    its samples in the recording of the host, without a trace of the guest. docs/read/latency.md describes the file.\n\
    Exit status: 0 printed, 2 wrong usage.")]
pub(crate) struct Clocks {}

impl Clocks {
    /// Prints it.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let pair = lab::clocks::pair(Machine::RECORDED, Moment::Begin);
        std::io::stdout().lock().write_all(pair.as_file().as_bytes())?;
        Ok(Exit::Answered)
    }
}
