//! `kvmscope man DIR`: a manual page for each command, out of the same words as `--help`. Packages are made with it.

use anyhow::Context;
use clap::{Args, Command, CommandFactory, ValueHint};
use clap_mangen::Man;
use process::exit::Exit;
use std::path::{Path, PathBuf};

/// Write a manual page for each command into a directory
#[derive(Args)]
#[command(after_help = "Example:\n  \
    kvmscope man man1")]
pub(crate) struct Manual {
    /// The directory; it is created if needed
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,
}

impl Manual {
    /// Writes them.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        std::fs::create_dir_all(&self.directory).with_context(|| self.directory.display().to_string())?;
        let mut program = crate::Program::command().disable_help_subcommand(true);
        program.build();
        pages(&program, &self.directory)?;
        Ok(Exit::Answered)
    }
}

/// The page of a command, and those of its own commands: `kvmscope-bench-exits.1`.
fn pages(command: &Command, directory: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut page = Vec::new();
    Man::new(command.clone()).title(name.to_uppercase()).render(&mut page)?;
    let file = directory.join(format!("{name}.1"));
    std::fs::write(&file, page).with_context(|| file.display().to_string())?;
    command.get_subcommands().filter(|command| !command.is_hide_set()).try_for_each(|command| pages(command, directory))
}
