//! One entry: who changes what, on disk before it is changed.

use super::boot::boot_id;
use super::directory::Directory;
use super::earlier::Written;
use super::owner::Owner;
use super::reach::Reach;
use super::revert::Reverted;
use super::step::Step;
use crate::Error;
use crate::setting::Host;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// What one run of a command has changed or was about to change.
///
/// Dropping it keeps the file: what was changed is then still there, and `kvmscope undo` reverts it.
#[derive(Debug)]
pub struct Entry {
    /// Its name, and the name of its file.
    pub id: String,
    pub command: String,
    pub owner: Owner,
    /// The changes, in the order in which they were made.
    pub steps: Vec<Step>,
    boot_id: Option<String>,
    directory: Arc<Directory>,
    reach: Reach,
}

#[derive(Serialize, Deserialize)]
struct Noted<Step> {
    id: String,
    command: String,
    /// Entries of earlier versions have none.
    #[serde(default)]
    boot_id: Option<String>,
    owner: Owner,
    steps: Vec<Step>,
}

impl Noted<Step> {
    /// What the bytes of entry `id` say, as far as they stay within reach.
    fn of(bytes: &[u8], id: &str, reach: &Reach) -> Result<Self, Error> {
        let refuse = |why: String| {
            Error::Malformed(format!(
                "journal entry {id} is not of this version ({why}): nothing in it was undone; restore by hand what it names, then remove the file"
            ))
        };
        let noted: Noted<Written> = serde_json::from_slice(bytes).map_err(|error| refuse(error.to_string()))?;
        if noted.id != id {
            return Err(refuse("it has another name".to_owned()));
        }
        let Noted { id, command, boot_id, owner, steps } = noted;
        let steps: Result<Vec<Step>, String> = steps.into_iter().map(|written| written.step(&reach.root)).collect();
        let steps = steps.map_err(refuse)?;
        steps.iter().try_for_each(|step| reach.allow(&id, step)).map_err(|error| refuse(error.to_string()))?;
        Ok(Self { id, command, boot_id, owner, steps })
    }
}

/// The steps that the bytes of entry `id` would undo on the host below `root`: each one within the places that commands of
/// this program change.
///
/// # Errors
/// If they are no entry, or name anything else.
pub fn steps_in(bytes: &[u8], id: &str, root: &Path) -> Result<Vec<Step>, Error> {
    Ok(Noted::of(bytes, id, &Reach { root: root.to_owned() })?.steps)
}

impl Entry {
    pub(super) fn create(
        directory: Arc<Directory>,
        reach: Reach,
        command: &str,
        owner: Owner,
        proc: &Path,
    ) -> Result<Self, Error> {
        // Several entries of one process get a number each; no other process has our pid.
        let names = (0..).map(|number: u32| format!("{command}-{}-{number}", owner.pid));
        let free = |id: &String| !directory.has(&file_name(id));
        let id = names.into_iter().find(free).unwrap_or_else(|| format!("{command}-{}", owner.pid));
        let command = command.to_owned();
        let entry = Self { id, command, owner, steps: Vec::new(), boot_id: boot_id(proc), directory, reach };
        entry.write()?;
        Ok(entry)
    }

    /// The entry in the file `name`.
    pub(super) fn read(directory: Arc<Directory>, reach: Reach, name: &str) -> Result<Self, Error> {
        let id = name.trim_end_matches(FILE_NAME_END);
        let bytes = directory.read(name)?;
        let noted = Noted::of(&bytes, id, &reach)?;
        Ok(Self {
            id: id.to_owned(),
            command: noted.command,
            owner: noted.owner,
            steps: noted.steps,
            boot_id: noted.boot_id,
            directory,
            reach,
        })
    }

    /// Notes a change that is about to be made; on return it survives a crash.
    ///
    /// # Errors
    /// If the entry cannot be written, or could not be undone: then the change must not be made.
    pub fn intend(&mut self, step: Step) -> Result<(), Error> {
        self.reach.allow(&self.id, &step)?;
        self.steps.push(step);
        self.write()
    }

    /// True if it was made in the present boot; `None` if it does not say, or the kernel does not.
    pub(super) fn is_of_this_boot(&self, proc: &Path) -> Option<bool> {
        Some(self.boot_id.as_ref()? == &boot_id(proc)?)
    }

    /// True if the process that made it still runs.
    pub(super) fn is_owned(&self, proc: &Path) -> bool {
        self.is_of_this_boot(proc) != Some(false) && self.owner.is_alive(proc)
    }

    /// True if a program that still runs has noted the same step: what it takes away, that one needs.
    fn is_needed(&self, step: &Step, proc: &Path) -> bool {
        let others =
            self.directory.entries().unwrap_or_default().into_iter().filter(|name| *name != file_name(&self.id));
        let read = |name: String| Self::read(Arc::clone(&self.directory), self.reach.clone(), &name).ok();
        others.filter_map(read).any(|other| other.steps.contains(step) && other.is_owned(proc))
    }

    /// Reverts all steps, last first, and removes the entry if none of them failed. What several programs share, the last
    /// of them takes away.
    ///
    /// # Errors
    /// If the entry's file cannot be written or removed. Steps that could not be reverted stay in it, and are told in
    /// the result.
    pub fn finish(mut self, proc: &Path) -> Result<Vec<(Step, Reverted)>, Error> {
        let host = Host { proc: proc.to_owned(), ..Host::at(&self.reach.root) };
        let mut outcomes = Vec::new();
        let (mut failed, mut shared) = (Vec::new(), Vec::new());
        let of_this_boot = self.is_of_this_boot(proc);
        while let Some(step) = self.steps.pop() {
            let reverted = match of_this_boot {
                Some(false) if !step.outlives_boot(&host) => {
                    Reverted::LeftAlone("the host has been rebooted since, which ended it".to_owned())
                }
                None if step.names_process() => Reverted::LeftAlone(
                    "the entry does not record the boot of its process id, so it may be another process".to_owned(),
                ),
                _ if step.is_shared() && self.is_needed(&step, proc) => {
                    shared.push(step.clone());
                    Reverted::LeftAlone("another running recording uses it".to_owned())
                }
                _ => step.revert(&host),
            };
            if matches!(reverted, Reverted::Failed(_)) {
                failed.push(step.clone());
            }
            outcomes.push((step, reverted));
        }
        if failed.is_empty() {
            self.directory.remove(&file_name(&self.id))?;
            // The others may have ended at the same moment and left it to us.
            shared.iter().filter(|step| !self.is_needed(step, proc)).for_each(|step| {
                step.revert(&host);
            });
        } else {
            failed.reverse();
            self.steps = failed;
            self.write()?;
        }
        Ok(outcomes)
    }

    /// Reverts all steps, as [`Entry::finish`] does, for who has nothing to say but that the host is as it was.
    ///
    /// # Errors
    /// [`Error::LeftBehind`] if it is not, other than for what running programs share: the sentence says what stays, why, and
    /// the command that tries again where that may help.
    pub fn put_back(self, proc: &Path) -> Result<(), Error> {
        let id = self.id.clone();
        let (mut stays, mut may_help) = (Vec::new(), false);
        for (step, outcome) in self.finish(proc)? {
            match outcome {
                Reverted::Failed(why) => {
                    stays.push(format!("{step} could not be put back: {why}"));
                    may_help = true;
                }
                Reverted::LeftAlone(why) if !step.is_shared() => stays.push(format!("{step} was left as it is: {why}")),
                Reverted::LeftAlone(_) | Reverted::Done => {}
            }
        }
        if stays.is_empty() {
            return Ok(());
        }
        let again = if may_help { format!("; run `kvmscope undo {id}`") } else { String::new() };
        Err(Error::LeftBehind(format!("{}{again}", stays.join("; "))))
    }

    /// What came of the work that made the changes, once they are reverted as [`Entry::put_back`] does it. What stays behind is said
    /// also if the work itself failed.
    ///
    /// # Errors
    /// The work's own, those of [`Entry::put_back`], or both in one [`Error::LeftBehind`].
    pub fn put_back_after<T>(self, done: Result<T, Error>, proc: &Path) -> Result<T, Error> {
        match (done, self.put_back(proc)) {
            (done, Ok(())) => done,
            (Ok(_), Err(left)) => Err(left),
            (Err(error), Err(left)) => Err(Error::LeftBehind(format!("{error}; and {left}"))),
        }
    }

    fn write(&self) -> Result<(), Error> {
        let noted = Noted {
            id: self.id.clone(),
            command: self.command.clone(),
            boot_id: self.boot_id.clone(),
            owner: self.owner,
            steps: self.steps.clone(),
        };
        let text = serde_json::to_vec_pretty(&noted).map_err(|error| Error::Malformed(format!("journal: {error}")))?;
        self.directory.write(&file_name(&self.id), &text)
    }
}

/// How the names of entries' files end.
const FILE_NAME_END: &str = ".json";

fn file_name(id: &str) -> String {
    format!("{id}{FILE_NAME_END}")
}
