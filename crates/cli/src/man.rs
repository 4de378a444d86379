//! `kvmscope man DIR`: a manual page for each command, out of the same words as `--help`. Packages are made with it.

use anyhow::Context;
use clap::{Args, Command, CommandFactory, ValueHint};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
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

/// An evening with a slow VM, from the first look to the undo: what is done, and the command.
const SESSION: [(&str, &str); 8] = [
    ("A VM is slow. As root on its host, record ten seconds of it:", "kvmscope record --seconds 10 -o slow"),
    ("Read where its time went, and what would give most back:", "kvmscope report slow"),
    ("Read how the host is set up, and what of that stands in the way:", "kvmscope check slow"),
    ("Read one finding whole: why, what it costs, commands, undo:", "kvmscope explain PLC-OVERLAP@web slow"),
    ("Try the change for a minute; it stays only if it helped:", "kvmscope apply PLC-OVERLAP@web --trial"),
    ("Record again, and see what the change did to everything else:", "kvmscope record --seconds 10 -o after"),
    ("", "kvmscope compare slow after"),
    ("Take the change back, exactly:", "kvmscope undo"),
];

/// The session as a section of the program's own page.
fn session(page: &mut Vec<u8>) -> std::io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", ["A SESSION"]);
    for (what, command) in SESSION {
        if !what.is_empty() {
            roff.control("PP", []);
            roff.text([roman(what)]);
        }
        roff.control("RS", ["4"]);
        roff.text([bold(command)]);
        roff.control("RE", []);
    }
    roff.to_writer(page)
}

/// The page of a command, and those of its own commands: `kvmscope-bench-exits.1`.
fn pages(command: &Command, directory: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut page = Vec::new();
    Man::new(command.clone()).title(name.to_uppercase()).render(&mut page)?;
    if command.get_subcommands().any(|command| command.get_name() == "record") {
        session(&mut page)?;
    }
    let file = directory.join(format!("{name}.1"));
    std::fs::write(&file, page).with_context(|| file.display().to_string())?;
    command.get_subcommands().filter(|command| !command.is_hide_set()).try_for_each(|command| pages(command, directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_is_of_commands_that_there_are_and_ends_the_programs_page() {
        for (_, command) in SESSION {
            let parsed = crate::Program::command().try_get_matches_from(command.split_whitespace());
            assert!(parsed.is_ok(), "{command}: {parsed:?}");
        }
        let place = tempfile::tempdir().unwrap();
        Manual { directory: place.path().to_owned() }.run().unwrap();
        let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
        assert!(read("kvmscope.1").contains("A SESSION") && read("kvmscope.1").contains("kvmscope compare slow after"));
        assert!(!read("kvmscope-record.1").contains("A SESSION"));
    }
}
