//! Files that appear whole or not at all.
//!
//! ```text
//! check --> .NAME.RANDOM.new is filled --> renamed to NAME
//!              on an error, a full disk, Ctrl-C: removed
//! ```
//! What is there already is kept, unless the user said `--force`; directories above it are made.

use crate::arguments::is_dash;
use crate::exit::WrongUse;
use crate::interrupt::{Interrupt, remove};
use anyhow::{anyhow, bail};
use base::recording::{draft_beside, remove_abandoned_drafts};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where files are filled; a signal removes what is not whole and ends the program.
pub(crate) struct Staging<'a> {
    interrupt: &'a Interrupt,
}

impl<'a> Staging<'a> {
    /// What a signal ends while it is filled is removed by `interrupt`.
    pub(crate) fn new(interrupt: &'a Interrupt) -> Self {
        Self { interrupt }
    }

    /// Refuses a file that is there, unless it may be replaced, and what is there and is no file: a device would be
    /// replaced, too.
    pub(crate) fn check_file(target: &Path, force: bool) -> Result<(), WrongUse> {
        match fs::metadata(target) {
            Ok(there) if !there.is_file() => {
                Err(WrongUse(format!("{} is not a regular file; name another", target.display())))
            }
            Ok(_) => check_free(target, force),
            Err(_) => Ok(()),
        }
    }

    /// Refuses a directory that holds something, unless it may be replaced, and what is no directory.
    pub(crate) fn check_directory(target: &Path, force: bool) -> Result<(), WrongUse> {
        if is_dash(target) {
            return Err(WrongUse("several files cannot go to stdout; name a directory".to_owned()));
        }
        if target.exists() && !target.is_dir() {
            return Err(WrongUse(format!("{} is not a directory; name another", target.display())));
        }
        let holds = fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some());
        if holds { check_free(target, force) } else { Ok(()) }
    }

    /// Fills a file and puts it in its place; returns its length in bytes.
    pub(crate) fn file<E: Into<anyhow::Error>>(
        &self,
        target: &Path,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> anyhow::Result<u64> {
        // A link that somebody put there is not followed: the file must not be there yet.
        let (partial, file) = self.begin(target, |path| File::create_new(path))?;
        let filled = || -> anyhow::Result<u64> {
            let mut out = BufWriter::new(file);
            fill(&mut out).map_err(Into::into)?;
            out.flush()?;
            Ok(out.get_ref().metadata()?.len())
        };
        let filled = filled().map_err(|error| anyhow!("{}: {error}; the partial output was removed", target.display()));
        self.end(&partial, target, filled, |partial| fs::rename(partial, target))
    }

    /// Fills a directory and puts it in its place. With `--force` its files replace those of the same name, and others
    /// stay; returns how many there are.
    pub(crate) fn directory<E: Into<anyhow::Error>>(
        &self,
        target: &Path,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> anyhow::Result<u64> {
        let (partial, ()) = self.begin(target, |path| fs::create_dir(path))?;
        let filled = || -> anyhow::Result<u64> {
            fill(&partial).map_err(Into::into)?;
            Ok(fs::read_dir(&partial)?.count() as u64)
        };
        let filled = filled().map_err(|error| anyhow!("{}: {error}; the partial output was removed", target.display()));
        self.end(&partial, target, filled, |partial| {
            if fs::rename(partial, target).is_ok() {
                return Ok(());
            }
            for entry in fs::read_dir(partial)? {
                let entry = entry?;
                fs::rename(entry.path(), target.join(entry.file_name()))?;
            }
            fs::remove_dir(partial)
        })
    }

    /// Makes what is filled meanwhile.
    fn begin<T>(&self, target: &Path, make: impl FnOnce(&Path) -> std::io::Result<T>) -> anyhow::Result<(PathBuf, T)> {
        if target.file_name().is_none() {
            bail!(WrongUse(format!("{} is not a file name", target.display())));
        }
        remove_abandoned_drafts(target);
        let partial = draft_beside(target);
        let left = partial.clone();
        // The hidden name means nothing to anybody: what is refused is the target.
        let make = || fs::create_dir_all(parent(target)).and_then(|()| make(&partial));
        let made = self.interrupt.making(make, |_| move || remove(&left));
        let made = made.map_err(|error| anyhow!("{} cannot be written: {error}", target.display()))?;
        Ok((partial, made))
    }

    fn end<T>(
        &self,
        partial: &Path,
        target: &Path,
        filled: anyhow::Result<T>,
        place: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> anyhow::Result<T> {
        // A signal finds what is filled either here or in its place.
        let placed = self.interrupt.whole(|| {
            filled.and_then(|filled| {
                place(partial).map_err(|error| anyhow!("{} cannot be written: {error}", target.display()))?;
                Ok(filled)
            })
        });
        if placed.is_err() {
            remove(partial);
        }
        placed
    }
}

fn check_free(target: &Path, force: bool) -> Result<(), WrongUse> {
    if force { Ok(()) } else { Err(WrongUse(format!("{} already exists; --force replaces it", target.display()))) }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
