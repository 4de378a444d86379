//! Which recordings are meant: directories, bare files, or parts put together on the spot.

use super::{Stdin, machine_level};
use crate::check::places::{self, Root};
use crate::exit::{WrongUse, as_named};
use crate::interrupt::Interrupt;
use anyhow::{anyhow, bail};
use archive::{Links, Unpacked};
use base::recording::{Emulator, Error, MANIFEST, Named, Recording, Shown};
use clap::{Args, ValueEnum, ValueHint};
use std::path::{Path, PathBuf};

/// Paths and parts.
#[derive(Args)]
pub(crate) struct Recordings {
    /// Recordings (directories or packed), CTF directories, or bare trace files (assumed to be of L0), - for stdin; several are
    /// answered one after the other
    #[arg(value_name = "PATH", required_unless_present = "part", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// A trace, or the result of a latency test, and the level it was recorded at, to put several machines into one recording,
    /// or to add to the one that PATH is: --part L0=host.dat --part L1:web=guest.dat
    #[arg(long, value_name = "LEVEL[:NAME]=FILE", value_parser = named)]
    part: Vec<Named>,
    /// What emulated the hardware, if anything: counts are real then, but times are not
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

    /// Reads a recording's manifest, or makes one; what `--emulated` says wins.
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
        match self.emulated {
            None => {}
            Some(Emulated::No) => recording.emulated = None,
            Some(Emulated::Tcg) => recording.emulated = Some(Emulator::Tcg),
            Some(Emulated::Bochs) => recording.emulated = Some(Emulator::Bochs),
        }
        Ok(recording)
    }
}

/// Opens what `path` names, or stdin: a recording, a packed one, an archive of a machine's files. A tree of a host's
/// files is refused with the command that reads it.
pub(crate) fn opened(path: &Path, stdin: &Stdin, interrupt: &Interrupt) -> anyhow::Result<Recording> {
    let asked = path;
    let path = stdin.path(asked)?;
    let copy = (path != *asked).then(|| Shown { place: path.clone(), name: asked.to_owned() });
    let mut recording = of_path(&path, stdin, interrupt).map_err(|error| as_named(error, copy.as_slice()))?;
    recording.shown.extend(copy);
    Ok(recording)
}

fn of_path(path: &Path, stdin: &Stdin, interrupt: &Interrupt) -> anyhow::Result<Recording> {
    if archive::format_of(path).is_some() {
        // A packed recording has no links; whatever it is called, its manifest comes first.
        let links = if archive::is_recording(path) { Links::Never } else { Links::Inside };
        return stdin.unpacked(path, links, interrupt, |unpacked| {
            unpacked_recording(path, unpacked).map_err(|error| as_named(error, &[unpacked.shown()]))
        });
    }
    match Recording::open(path) {
        Err(Error::Empty { path }) if !host::snapshot::trees_in(&path).is_empty() => {
            let path = path.display();
            Err(anyhow!(
                "{path} has files of a host but no trace; to check that host's setup: kvmscope check --root {path}"
            ))
        }
        opened => Ok(opened?),
    }
}

/// What was in an archive: a recording, the trees of machines, or one directory that is a recording.
fn unpacked_recording(path: &Path, unpacked: &Unpacked) -> anyhow::Result<Recording> {
    let root = unpacked.root();
    let shown = vec![unpacked.shown()];
    if root.join(MANIFEST).is_file() {
        return Ok(unpacked.recording()?);
    }
    let problems = unpacked.problems.clone();
    if places::is_tree(&root) {
        return Ok(Recording { problems, shown, ..places::trees(&[Root::at(&root)])? });
    }
    let mut tops = std::fs::read_dir(&root)?.flatten().map(|entry| entry.path());
    match (tops.next(), tops.next()) {
        (Some(only), None) if only.is_dir() => Ok(Recording { shown, ..Recording::open(&only)? }),
        _ => Err(anyhow!("{} has neither a recording nor files of a machine", path.display())),
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
