//! `kvmscope lab` and `kvmscope bench` where they are not built in: the slim program takes any arguments of theirs, and says how to get them.

use anyhow::bail;
use clap::Args;
use process::exit::Exit;
use std::ffi::OsString;

/// Run an experiment and record it (full build)
#[derive(Args)]
pub(crate) struct Lab {
    /// The experiment and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Measure what an exit, a clock read or a program costs here (full build)
#[derive(Args)]
pub(crate) struct Bench {
    /// The bench and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl Lab {
    /// Says that this program has no experiments.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        absent("lab", &self.arguments)
    }
}

impl Bench {
    /// Says that this program has no benches.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        absent("bench", &self.arguments)
    }
}

fn absent(command: &str, arguments: &[OsString]) -> anyhow::Result<Exit> {
    let what = arguments.first().map_or(String::new(), |what| format!(" {}", what.to_string_lossy()));
    bail!("this is the slim build, without `{command}{what}`; `make full` builds the full one")
}
