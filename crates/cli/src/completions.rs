//! `kvmscope completions`: tab completion for a shell, which asks the program what comes next.

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use process::exit::Exit;
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

/// What asks the program to complete a line, in the scripts that are printed here.
const ASKED: &str = "KVMSCOPE_COMPLETE";

impl Completions {
    /// Prints what a shell runs to be completed by the program itself.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let shell: &dyn EnvCompleter = match self.shell {
            Known::Bash => &Bash,
            Known::Zsh => &Zsh,
            Known::Fish => &Fish,
        };
        // Into memory first: stdout may be a closed pipe.
        let mut script = Vec::new();
        shell.write_registration(ASKED, "kvmscope", "kvmscope", "kvmscope", &mut script)?;
        if matches!(self.shell, Known::Zsh) {
            // A file below $fpath is called for the first completion, and has to answer it.
            script.extend(b"[ \"$funcstack[1]\" != _kvmscope ] || _clap_dynamic_completer_kvmscope \"$@\"\n");
        }
        std::io::stdout().write_all(&script)?;
        Ok(Exit::Answered)
    }
}

/// Completes a line and ends, where a shell asks for it.
pub(crate) fn answer() {
    CompleteEnv::with_factory(crate::Program::command).var(ASKED).completer("kvmscope").complete();
}
