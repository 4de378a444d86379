//! One entry: who changes what, on disk before it is changed.

use super::owner::Owner;
use super::step::{Reverted, Step};
use crate::Error;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What one run of a command has changed or was about to change.
///
/// Dropping it keeps the file: what was changed is then still there, and `kvmscope undo` reverts it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its name, and the name of its file.
    pub id: String,
    /// The command that made it.
    pub command: String,
    /// The process that made it.
    pub owner: Owner,
    /// The changes, in the order in which they were made.
    pub steps: Vec<Step>,
    #[serde(skip)]
    path: PathBuf,
}

impl Entry {
    pub(super) fn create(directory: &Path, command: &str, owner: Owner) -> Result<Self, Error> {
        // Several entries of one process get a number each; no other process has our pid.
        let names = (0..).map(|number: u32| format!("{command}-{}-{number}", owner.pid));
        let free = |id: &String| !directory.join(format!("{id}.json")).exists();
        let id = names.into_iter().find(free).unwrap_or_else(|| format!("{command}-{}", owner.pid));
        let path = directory.join(format!("{id}.json"));
        let entry = Self { id, command: command.to_owned(), owner, steps: Vec::new(), path };
        entry.write()?;
        Ok(entry)
    }

    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
        let entry: Self = serde_json::from_slice(&bytes).map_err(|error| {
            let path = path.display();
            Error::Unable(format!(
                "{path} is no journal entry of this version ({error}); look what it names, put that back and remove it"
            ))
        })?;
        Ok(Self { path: path.to_owned(), ..entry })
    }

    /// Notes a change that is about to be made; on return it survives a crash.
    ///
    /// # Errors
    /// If the entry cannot be written: then the change must not be made.
    pub fn intend(&mut self, step: Step) -> Result<(), Error> {
        self.steps.push(step);
        self.write()
    }

    /// Reverts all steps, last first, and removes the entry if none of them failed.
    ///
    /// # Errors
    /// If the entry's file cannot be written or removed. Steps that could not be reverted stay in it, and are told in
    /// the result.
    pub fn finish(mut self, proc: &Path) -> Result<Vec<(Step, Reverted)>, Error> {
        let mut outcomes = Vec::new();
        let mut failed = Vec::new();
        while let Some(step) = self.steps.pop() {
            let reverted = step.revert(proc);
            if matches!(reverted, Reverted::Failed(_)) {
                failed.push(step.clone());
            }
            outcomes.push((step, reverted));
        }
        if failed.is_empty() {
            // One that was killed while it wrote has left this, too.
            let _ = std::fs::remove_file(self.beside());
            std::fs::remove_file(&self.path).map_err(|error| Error::io(&self.path, error))?;
            sync_directory(&self.path)?;
        } else {
            failed.reverse();
            self.steps = failed;
            self.write()?;
        }
        Ok(outcomes)
    }

    /// Writes beside, makes durable, renames, makes the name durable: whole or not at all.
    fn write(&self) -> Result<(), Error> {
        let beside = self.beside();
        let written = self.write_beside(&beside);
        if written.is_err() {
            // On a full disk what is there of it takes the place that the next try needs.
            let _ = std::fs::remove_file(&beside);
        }
        written
    }

    fn beside(&self) -> PathBuf {
        self.path.with_extension("new")
    }

    fn write_beside(&self, beside: &Path) -> Result<(), Error> {
        let io = |error| Error::io(&self.path, error);
        let text = serde_json::to_string_pretty(self).map_err(|error| io(error.into()))?;
        let mut file = File::create(beside).map_err(io)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
        std::fs::rename(beside, &self.path).map_err(io)?;
        sync_directory(&self.path)
    }
}

fn sync_directory(path: &Path) -> Result<(), Error> {
    let directory = path.parent().unwrap_or(path);
    File::open(directory).and_then(|open| open.sync_all()).map_err(|error| Error::io(directory, error))
}
