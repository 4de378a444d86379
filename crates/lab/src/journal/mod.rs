//! What has been changed on this host, and how does it come back?
//!
//! Every change is written down before it is made, so that a program that was killed leaves a host that can be put back.
//! ```text
//! begin ---> intend(step) ---> the change itself ---> intend(step) ---> ... ---> finish
//!            file + directory                                                    steps undone, last first;
//!            made durable                                                        entry removed
//! kill -9 anywhere  ...........................................................  `kvmscope undo` does the same
//! ```
//! In: a directory (`/var/lib/kvmscope/journal`), one file of JSON per entry. Out: entries whose owner (pid, start time and
//! boot) still runs are left alone, all others can be reverted. What a file says is never executed: a step is one of the
//! types of [`Step`], and each type knows the one thing that reverts it: settings are altered (`setting/`), other things are
//! made. `reach.rs` holds steps to what this program changes. Root obeys what stands here, so a directory or a file that
//! somebody else may write is not read (`directory.rs`).

mod boot;
mod directory;
mod earlier;
mod entry;
pub mod network;
mod owner;
mod reach;
mod revert;
mod step;

pub use directory::Lock;
pub use entry::{Entry, steps_in};
pub use owner::Owner;
pub use revert::Reverted;
pub use step::Step;

use crate::Error;
use directory::Directory;
use reach::Reach;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where the journal lies unless the user says otherwise.
pub const DEFAULT_DIRECTORY: &str = "/var/lib/kvmscope/journal";

/// Entries of a host's journal.
#[derive(Debug, Clone)]
pub struct Journal {
    directory: PathBuf,
    /// Where `/proc` is.
    proc: PathBuf,
    reach: Reach,
}

impl Journal {
    /// The journal in `directory`, which is made with its first entry; `proc` tells which owners live.
    pub fn new(directory: impl Into<PathBuf>, proc: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), proc: proc.into(), reach: Reach { root: PathBuf::from("/") } }
    }

    /// The same for a host whose `/sys` and `/proc` lie below `root`.
    #[must_use]
    pub fn of_host(self, root: &Path) -> Self {
        Self { reach: Reach { root: root.to_owned() }, ..self }
    }

    /// Begins an entry of this process for `command`.
    ///
    /// # Errors
    /// If the directory cannot be made or written, or if others may write into it.
    pub fn begin(&self, command: &str) -> Result<Entry, Error> {
        let owner = Owner::this(&self.proc)?;
        let directory = Arc::new(Directory::make(&self.directory)?);
        Entry::create(directory, self.reach.clone(), command, owner, &self.proc)
    }

    /// Waits until no other program that holds the lock changes the host, and keeps others waiting until it is dropped.
    /// `None`: `stop` was set meanwhile.
    ///
    /// # Errors
    /// If the directory cannot be made, or if others may write into it.
    pub fn lock(&self, stop: &AtomicBool) -> Result<Option<Lock>, Error> {
        Directory::make(&self.directory)?.lock(stop)
    }

    /// True if nothing is noted, and nothing was left by a killed writer.
    ///
    /// # Errors
    /// If the directory is there and cannot be read, or if others may write into it.
    pub fn is_empty(&self) -> Result<bool, Error> {
        let Some(directory) = Directory::open(&self.directory)? else { return Ok(true) };
        Ok(directory.entries()?.is_empty() && directory.unfinished()?.is_empty())
    }

    /// All entries, oldest first. What cannot be understood is an error of its own, beside those that can.
    ///
    /// # Errors
    /// If the directory is there and cannot be read, or if others may write into it.
    pub fn entries(&self) -> Result<Vec<Result<Entry, Error>>, Error> {
        let Some(directory) = Directory::open(&self.directory)?.map(Arc::new) else { return Ok(Vec::new()) };
        let read = |name: String| Entry::read(Arc::clone(&directory), self.reach.clone(), &name);
        Ok(directory.entries()?.into_iter().map(read).collect())
    }

    /// Removes what programs left that were killed while they wrote an entry, and returns the names of these files. A change
    /// is made only once its entry is whole, so they name nothing that was done.
    ///
    /// # Errors
    /// If the directory is there and cannot be read, or if others may write into it.
    pub fn sweep(&self) -> Result<Vec<String>, Error> {
        let Some(directory) = Directory::open(&self.directory)? else { return Ok(Vec::new()) };
        let mut unfinished = directory.unfinished()?;
        let works = |pid: u32| self.proc.join(pid.to_string()).exists();
        unfinished.retain(|(_, pid)| !pid.is_some_and(works));
        unfinished.into_iter().map(|(name, _)| directory.remove(&name).map(|()| name)).collect()
    }

    /// Puts back what earlier runs of `command` left that were killed. What others have changed since, or a reboot has ended,
    /// is nothing that stays.
    ///
    /// # Errors
    /// If the journal cannot be read, or something cannot be put back.
    pub fn clear(&self, command: &str) -> Result<(), Error> {
        for entry in self.entries()?.into_iter().flatten() {
            if entry.command != command || self.is_owned(&entry) {
                continue;
            }
            let id = entry.id.clone();
            for (step, outcome) in entry.finish(&self.proc)? {
                if let Reverted::Failed(why) = outcome {
                    return Err(Error::LeftBehind(format!(
                        "an earlier `kvmscope lab` was killed, and {step} could not be put back: {why}; run `kvmscope undo {id}`"
                    )));
                }
            }
        }
        Ok(())
    }

    /// True if the process that made `entry` still runs.
    pub fn is_owned(&self, entry: &Entry) -> bool {
        entry.is_owned(&self.proc)
    }

    /// True if a program that still runs has noted this step. Who cannot read the journal does not share it.
    pub(crate) fn is_noted(&self, step: &Step) -> bool {
        let entries = self.entries().unwrap_or_default();
        entries.into_iter().flatten().any(|entry| entry.steps.contains(step) && self.is_owned(&entry))
    }

    /// Where `/proc` is.
    pub fn proc(&self) -> &Path {
        &self.proc
    }
}

#[cfg(test)]
mod tests;
