//! Files that appear whole or not at all.
//!
//! ```text
//! check --> .NAME.partial-PID is filled --> renamed to NAME
//!              on an error, a full disk, Ctrl-C: removed
//! ```
//! What is there already is kept, unless the user said `--force`.

use crate::exit::WrongUse;
use crate::interrupt::{Interrupt, remove};
use anyhow::{anyhow, bail};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where files are filled; a signal removes what is not whole and ends the program.
pub struct Staging {
    interrupt: Interrupt,
    force: bool,
}

impl Staging {
    /// From now on a signal ends the program with status 130 and leaves nothing half-written.
    pub fn new(force: bool) -> anyhow::Result<Self> {
        Ok(Self { interrupt: Interrupt::watch()?, force })
    }

    /// Refuses a file that cannot be: what is there and is no file would be replaced, a device too.
    pub fn check_place(target: &Path) -> Result<(), WrongUse> {
        if fs::metadata(target).is_ok_and(|there| !there.is_file()) {
            return Err(WrongUse(format!("{} is no regular file; name another", target.display())));
        }
        check_parent(target)
    }

    /// Refuses a file that is there, and one that cannot be.
    pub fn check_file(&self, target: &Path) -> Result<(), WrongUse> {
        self.check_free(target, target.is_file())?;
        Self::check_place(target)
    }

    /// Refuses a directory that holds something, and one that cannot be.
    pub fn check_directory(&self, target: &Path) -> Result<(), WrongUse> {
        let holds = fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some());
        if target.exists() && !target.is_dir() {
            return Err(WrongUse(format!("{} is no directory; name another", target.display())));
        }
        self.check_free(target, holds)?;
        check_parent(target)
    }

    fn check_free(&self, target: &Path, there: bool) -> Result<(), WrongUse> {
        if there && !self.force {
            return Err(WrongUse(format!("{} is there already; --force replaces it", target.display())));
        }
        Ok(())
    }

    /// Fills a file and puts it in its place; returns its length in bytes.
    pub fn file<E: Into<anyhow::Error>>(
        &self,
        target: &Path,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> anyhow::Result<u64> {
        let partial = self.begin(target, |path| File::create(path).map(drop))?;
        let filled = || -> anyhow::Result<u64> {
            let mut out = BufWriter::new(File::create(&partial)?);
            fill(&mut out).map_err(Into::into)?;
            out.flush()?;
            Ok(out.get_ref().metadata()?.len())
        };
        let filled = filled().map_err(|error| anyhow!("{}: {error}; nothing is left of it", target.display()));
        self.end(&partial, filled, |partial| fs::rename(partial, target))
    }

    /// Fills a directory and puts it in its place. With `--force` its files replace those of the same name, and others
    /// stay; returns how many there are.
    pub fn directory<E: Into<anyhow::Error>>(
        &self,
        target: &Path,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> anyhow::Result<u64> {
        let partial = self.begin(target, |path| fs::create_dir(path))?;
        let filled = || -> anyhow::Result<u64> {
            fill(&partial).map_err(Into::into)?;
            Ok(fs::read_dir(&partial)?.count() as u64)
        };
        let filled = filled().map_err(|error| anyhow!("{}: {error}; nothing is left of it", target.display()));
        self.end(&partial, filled, |partial| {
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

    fn begin(&self, target: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) -> anyhow::Result<PathBuf> {
        let Some(name) = target.file_name() else { bail!(WrongUse(format!("{} names no file", target.display()))) };
        let partial = parent(target).join(format!(".{}.partial-{}", name.to_string_lossy(), std::process::id()));
        let left = partial.clone();
        self.interrupt
            .making(|| make(&partial), |()| move || remove(&left))
            .map_err(|error| anyhow!("{} cannot be made: {error}", partial.display()))?;
        Ok(partial)
    }

    fn end<T>(
        &self,
        partial: &Path,
        filled: anyhow::Result<T>,
        place: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> anyhow::Result<T> {
        // A signal finds what is filled either here or in its place.
        let placed = self.interrupt.whole(|| {
            filled.and_then(|filled| {
                place(partial).map_err(|error| anyhow!("{} cannot be renamed: {error}", partial.display()))?;
                Ok(filled)
            })
        });
        if placed.is_err() {
            remove(partial);
        }
        placed
    }
}

fn check_parent(target: &Path) -> Result<(), WrongUse> {
    let parent = parent(target);
    if parent.is_dir() {
        return Ok(());
    }
    let parent = parent.display();
    Err(WrongUse(format!("{parent} is no directory; make it first: mkdir -p {parent}")))
}

/// The directory a path lies in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
