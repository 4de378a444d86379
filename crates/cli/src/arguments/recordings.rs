//! Which recordings are meant: directories, bare files, or parts put together on the spot.

use super::brought::reading;
use super::{Stdin, brought, machine_level, opened};
use anyhow::bail;
use base::recording::{Emulator, Error, Named, Recording};
use clap::{Args, ValueEnum, ValueHint};
use process::exit::{Exit, WrongUse, print};
use process::interrupt::Interrupt;
use std::path::PathBuf;

/// Paths and parts.
#[derive(Args)]
pub(crate) struct Recordings {
    /// Recordings (directories or packed), CTF directories, or bare trace files (assumed to be of L0), - for stdin; several are
    /// answered one after the other
    #[arg(value_name = "PATH", required_unless_present = "part", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// A trace or a latency-test result, with its level: combines several machines into one recording, or adds to PATH: --part L0=host.dat --part L1:web=guest.dat
    #[arg(long, value_name = "LEVEL[:NAME]=FILE", value_parser = named)]
    part: Vec<Named>,
    /// Emulator that provided the hardware, if any: counts are then real, times are not
    #[arg(long, value_name = "BY")]
    emulated: Option<Emulated>,
    #[arg(skip)]
    stdin: Stdin,
}

#[derive(Clone, Copy, ValueEnum)]
enum Emulated {
    Tcg,
    Bochs,
    No,
}

/// What the user asked for, before anything is opened.
pub(crate) enum Wanted<'a> {
    Path(&'a PathBuf),
    Parts(&'a [Named]),
}

/// As the user named it.
impl std::fmt::Display for Wanted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wanted::Path(path) => path.display().fmt(f),
            Wanted::Parts(parts) => {
                let named: Vec<String> = parts.iter().map(|part| part.path.display().to_string()).collect();
                f.write_str(&named.join(" "))
            }
        }
    }
}

impl Recordings {
    /// The recordings, in the order in which they were named.
    pub(crate) fn wanted(&self) -> Vec<Wanted<'_>> {
        if self.paths.is_empty() {
            vec![Wanted::Parts(&self.part)]
        } else {
            self.paths.iter().map(Wanted::Path).collect()
        }
    }

    /// Prints which lines of each path go to which reader.
    pub(crate) fn explain(&self, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        for path in &self.paths {
            for sentence in reading(path, &self.stdin, interrupt)? {
                print(&sentence)?;
            }
        }
        Ok(Exit::Answered)
    }

    /// Reads a recording's manifest, or makes one, for each run that was brought; what `--emulated` says wins.
    pub(crate) fn open_all(&self, wanted: &Wanted<'_>, interrupt: &Interrupt) -> anyhow::Result<Vec<Recording>> {
        let mut recordings = match wanted {
            Wanted::Path(path) if self.part.is_empty() => brought(path, &self.stdin, interrupt)?,
            _ => vec![self.open(wanted, interrupt)?],
        };
        recordings.iter_mut().for_each(|recording| self.mark(recording));
        Ok(recordings)
    }

    /// Reads the one recording that is wanted.
    pub(crate) fn open(&self, wanted: &Wanted<'_>, interrupt: &Interrupt) -> anyhow::Result<Recording> {
        let put_together = |made: Result<Recording, Error>| {
            made.map_err(|error| match error {
                Error::Named(sentence) => anyhow::Error::new(WrongUse(sentence)),
                other => other.into(),
            })
        };
        let mut recording = match wanted {
            Wanted::Path(_) if self.paths.len() > 1 && !self.part.is_empty() => {
                bail!(WrongUse("--part adds to one recording; name one PATH".to_owned()));
            }
            Wanted::Path(path) => put_together(opened(path, &self.stdin, interrupt)?.with_files(&self.part))?,
            Wanted::Parts(parts) => put_together(Recording::of_files(parts, None))?,
        };
        self.mark(&mut recording);
        Ok(recording)
    }

    fn mark(&self, recording: &mut Recording) {
        match self.emulated {
            None => {}
            Some(Emulated::No) => recording.emulated = None,
            Some(Emulated::Tcg) => recording.emulated = Some(Emulator::Tcg),
            Some(Emulated::Bochs) => recording.emulated = Some(Emulator::Bochs),
        }
    }
}

/// `L1:web=FILE`. The first `=` ends the machine: a file's name may hold more.
fn named(text: &str) -> Result<Named, String> {
    const HOW: &str = "write LEVEL=FILE or LEVEL:NAME=FILE, such as L0=host.dat or L1:web=guest.dat";
    let (machine, path) = text.split_once('=').ok_or(HOW)?;
    let (level, name) = machine.split_once(':').map_or((machine, None), |(level, name)| (level, Some(name)));
    let level = machine_level(level)?;
    if path.is_empty() || name.is_some_and(str::is_empty) {
        return Err(HOW.to_owned());
    }
    Ok(Named { level, name: name.map(str::to_owned), path: path.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_a_level_a_name_and_a_file() {
        let web = Named { level: 1, name: Some("web".into()), path: "a=b.dat".into() };
        assert_eq!(named("L1:web=a=b.dat"), Ok(web));
        assert_eq!(named("L0=x"), Ok(Named::at_l0("x")));
        for text in ["L0", "L0=", "=x", "L?=x", "L1:=x", "host=x"] {
            assert!(named(text).is_err(), "{text}");
        }
    }
}
