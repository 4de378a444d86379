//! `kvmscope completions`: tab completion for a shell.

use crate::exit::Exit;
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;
use std::io::Write;

/// Print tab completions for a shell
#[derive(Args)]
#[command(after_help = "Example:\n  \
    kvmscope completions bash > ~/.local/share/bash-completion/completions/kvmscope")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Known,
}

#[derive(Clone, Copy, ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    /// Prints them.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let shell = match self.shell {
            Known::Bash => Shell::Bash,
            Known::Zsh => Shell::Zsh,
            Known::Fish => Shell::Fish,
        };
        // Into memory first: clap_complete panics where its writer fails, and stdout may be a closed pipe.
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut crate::Program::command(), "kvmscope", &mut script);
        std::io::stdout().write_all(&script)?;
        Ok(Exit::Answered)
    }
}
