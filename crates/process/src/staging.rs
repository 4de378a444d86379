//! Files that appear whole or not at all.
//!
//! ```text
//! check --> a file without a name, or a hidden one beside it, is filled --> it gets its name
//!              on an error, a full disk, Ctrl-C: removed
//! ```
//! What is there already is kept, unless the user said `--force`; directories above it are made.

use crate::exit::WrongUse;
use crate::interrupt::{Interrupt, remove};
use anyhow::anyhow;
use base::recording::{draft_beside, remove_abandoned_drafts};
use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Where files are filled; a signal removes what is not whole and ends the program.
pub struct Staging<'a> {
    interrupt: &'a Interrupt,
}

impl<'a> Staging<'a> {
    /// What a signal ends while it is filled is removed by `interrupt`.
    pub fn new(interrupt: &'a Interrupt) -> Self {
        Self { interrupt }
    }

    /// Refuses a file that is there, unless it may be replaced, and what is there and is no file: a device would be
    /// replaced, too.
    pub fn check_file(target: &Path, force: bool) -> Result<(), WrongUse> {
        match fs::metadata(target) {
            Ok(there) if !there.is_file() => {
                Err(WrongUse(format!("{} is not a regular file; name another", target.display())))
            }
            Ok(_) => check_free(target, force),
            Err(_) => Ok(()),
        }
    }

    /// Refuses a directory that holds something, unless it may be replaced, and what is no directory.
    pub fn check_directory(target: &Path, force: bool) -> Result<(), WrongUse> {
        if target.as_os_str() == "-" {
            return Err(WrongUse("several files cannot go to stdout; name a directory".to_owned()));
        }
        if target.exists() && !target.is_dir() {
            return Err(WrongUse(format!("{} is not a directory; name another", target.display())));
        }
        let holds = fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some());
        if holds { check_free(target, force) } else { Ok(()) }
    }

    /// Fills a file and puts it in its place; returns its length in bytes.
    pub fn file<E: Into<anyhow::Error>>(
        &self,
        target: &Path,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> anyhow::Result<u64> {
        let unwritten = |error| anyhow!("{} cannot be written: {error}", target.display());
        check_named(target)?;
        fs::create_dir_all(parent(target)).map_err(unwritten)?;
        // Whoever may read what others write decides it by the umask.
        let new = self.interrupt.new_file(target, 0o666)?;
        let filled = || -> anyhow::Result<u64> {
            let mut out = BufWriter::new(new.file());
            fill(&mut out).map_err(Into::into)?;
            out.flush()?;
            Ok(new.file().metadata()?.len())
        };
        let bytes =
            filled().map_err(|error| anyhow!("{}: {error}; the partial output was removed", target.display()))?;
        // A signal finds what is filled either here or in its place.
        self.interrupt.whole(|| new.replace()).map_err(unwritten)?;
        Ok(bytes)
    }

    /// Fills a directory and puts it in its place. With `--force` its files replace those of the same name, and others
    /// stay; returns how many there are.
    pub fn directory<E: Into<anyhow::Error>>(
        &self,
        target: &Path,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> anyhow::Result<u64> {
        check_named(target)?;
        remove_abandoned_drafts(target);
        let partial = draft_beside(target);
        let unwritten = |error| anyhow!("{} cannot be written: {error}", target.display());
        let make = || fs::create_dir_all(parent(target)).and_then(|()| fs::create_dir(&partial));
        let left = partial.clone();
        self.interrupt.making(make, |()| move || remove(&left)).map_err(unwritten)?;
        let filled = || -> anyhow::Result<u64> {
            fill(&partial).map_err(Into::into)?;
            Ok(fs::read_dir(&partial)?.count() as u64)
        };
        let filled = filled().map_err(|error| anyhow!("{}: {error}; the partial output was removed", target.display()));
        // A signal finds what is filled either here or in its place.
        let placed = self
            .interrupt
            .whole(|| filled.and_then(|count| place(&partial, target).map_err(unwritten).map(|()| count)));
        if placed.is_err() {
            remove(&partial);
        }
        placed
    }
}

fn place(partial: &Path, target: &Path) -> std::io::Result<()> {
    if fs::rename(partial, target).is_ok() {
        return Ok(());
    }
    for entry in fs::read_dir(partial)? {
        let entry = entry?;
        fs::rename(entry.path(), target.join(entry.file_name()))?;
    }
    fs::remove_dir(partial)
}

fn check_named(target: &Path) -> Result<(), WrongUse> {
    match target.file_name() {
        Some(_) => Ok(()),
        None => Err(WrongUse(format!("{} is not a file name", target.display()))),
    }
}

fn check_free(target: &Path, force: bool) -> Result<(), WrongUse> {
    if force { Ok(()) } else { Err(WrongUse(format!("{} already exists; --force replaces it", target.display()))) }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
