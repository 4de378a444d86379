//! What has been changed on this host, and how does it come back?
//!
//! Every change is written down before it is made, so that a program that was killed leaves a host that can be put back.
//! ```text
//! begin ---> intend(step) ---> the change itself ---> intend(step) ---> ... ---> finish
//!            file + directory                                                    steps undone, last first;
//!            made durable                                                        entry removed
//! kill -9 anywhere  ...........................................................  `kvmscope undo` does the same
//! ```
//! In: a directory (`/var/lib/kvmscope/journal`), one file of JSON per entry. Out: entries whose owner (pid and start
//! time) still runs are left alone, all others can be reverted. What a file says is never executed: a step is one of the
//! types of [`Step`], and each type knows the one thing that reverts it. A new kind of change is a variant there.

mod entry;
pub mod network;
mod owner;
pub mod pin;
pub mod polling;
mod step;
pub mod thread;

pub use entry::Entry;
pub use owner::Owner;
pub use step::{Reverted, Step};

use crate::Error;
use std::path::{Path, PathBuf};

/// Where the journal lies unless the user says otherwise.
pub const DEFAULT_DIRECTORY: &str = "/var/lib/kvmscope/journal";

/// Entries of a host's journal.
#[derive(Debug, Clone)]
pub struct Journal {
    directory: PathBuf,
    /// Where `/proc` is.
    proc: PathBuf,
}

impl Journal {
    /// The journal in `directory`, which is made with its first entry; `proc` tells which owners live.
    pub fn new(directory: impl Into<PathBuf>, proc: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), proc: proc.into() }
    }

    /// Begins an entry of this process for `command`.
    ///
    /// # Errors
    /// If the directory cannot be made or written.
    pub fn begin(&self, command: &str) -> Result<Entry, Error> {
        let owner = Owner::this(&self.proc)?;
        std::fs::create_dir_all(&self.directory).map_err(|error| {
            Error::Unable(format!(
                "{}: {error}; the journal that undoes changes must be writable: run as root, or name another place with \
                 --journal DIR",
                self.directory.display()
            ))
        })?;
        Entry::create(&self.directory, command, owner)
    }

    /// All entries, oldest first. What cannot be understood is an error of its own, beside those that can.
    ///
    /// # Errors
    /// If the directory is there and cannot be read.
    pub fn entries(&self) -> Result<Vec<Result<Entry, Error>>, Error> {
        let listing = match std::fs::read_dir(&self.directory) {
            Ok(listing) => listing,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io(&self.directory, error)),
        };
        let mut paths: Vec<PathBuf> = listing.filter_map(|file| Some(file.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        // By when they were last written: pids begin again, and so do start times after a boot.
        let written = |path: &PathBuf| path.metadata().and_then(|about| about.modified()).ok();
        paths.sort_by_cached_key(|path| (written(path), path.clone()));
        Ok(paths.iter().map(|path| Entry::read(path)).collect())
    }

    /// True if the process that made `entry` still runs.
    pub fn is_owned(&self, entry: &Entry) -> bool {
        entry.owner.is_alive(&self.proc)
    }

    /// Where `/proc` is.
    pub fn proc(&self) -> &Path {
        &self.proc
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn journal(directory: &Path) -> Journal {
        Journal::new(directory.join("journal"), "/proc")
    }

    /// As another process would find it: the entry was dropped without being finished.
    fn left_behind(directory: &Path, step: Step) -> Entry {
        let mut entry = journal(directory).begin("record").unwrap();
        entry.intend(step).unwrap();
        drop(entry);
        journal(directory).entries().unwrap().remove(0).unwrap()
    }

    #[test]
    fn an_unfinished_entry_is_found_again_and_reverted_from_last_to_first() {
        let directory = tempfile::tempdir().unwrap();
        let knob = directory.path().join("knob");
        fs::write(&knob, "3\n").unwrap();
        let mut entry = journal(directory.path()).begin("apply").unwrap();
        for (old, new) in [("1", "2"), ("2", "3")] {
            entry.intend(Step::SysfsWrite { path: knob.clone(), old: old.into(), new: new.into() }).unwrap();
        }
        drop(entry);
        let found = journal(directory.path()).entries().unwrap().remove(0).unwrap();
        assert!(journal(directory.path()).is_owned(&found), "this process still runs");
        assert!(found.finish(Path::new("/proc")).unwrap().iter().all(|(_, done)| *done == Reverted::Done));
        assert_eq!(fs::read_to_string(&knob).unwrap(), "1");
        assert!(journal(directory.path()).entries().unwrap().is_empty());
    }

    #[test]
    fn a_value_that_somebody_else_changed_meanwhile_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let knob = directory.path().join("knob");
        fs::write(&knob, "9\n").unwrap();
        let step = Step::SysfsWrite { path: knob.clone(), old: "1".into(), new: "2".into() };
        let outcome = left_behind(directory.path(), step).finish(Path::new("/proc")).unwrap();
        assert!(matches!(&outcome[0].1, Reverted::LeftAlone(why) if why.contains('9')), "{outcome:?}");
        assert_eq!(fs::read_to_string(&knob).unwrap(), "9\n");
    }

    #[test]
    fn an_owner_with_another_start_time_is_dead() {
        let this = Owner::this(Path::new("/proc")).unwrap();
        assert!(this.is_alive(Path::new("/proc")));
        assert!(!Owner { start_ticks: this.start_ticks + 1, ..this }.is_alive(Path::new("/proc")));
    }

    #[test]
    fn a_process_is_ended_only_if_it_is_the_one_that_was_started() {
        let directory = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let owner = Owner::of(Path::new("/proc"), child.id()).unwrap();
        let other = Owner { start_ticks: owner.start_ticks + 1, ..owner };
        let outcome = left_behind(directory.path(), Step::Process(other)).finish(Path::new("/proc")).unwrap();
        assert_eq!(outcome[0].1, Reverted::Done);
        assert!(child.try_wait().unwrap().is_none(), "a process of the same number was spared");
        left_behind(directory.path(), Step::Process(owner)).finish(Path::new("/proc")).unwrap();
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn what_is_no_entry_is_said_and_does_not_hide_the_others() {
        let directory = tempfile::tempdir().unwrap();
        left_behind(directory.path(), Step::File { path: directory.path().join("gone") });
        let foreign = directory.path().join("journal/0.json");
        fs::write(&foreign, r#"{"id":"0","command":"x","owner":{"pid":1,"start_ticks":1},"steps":[{"run":"rm"}]}"#)
            .unwrap();
        let entries = journal(directory.path()).entries().unwrap();
        assert_eq!(entries.iter().filter(|entry| entry.is_err()).count(), 1);
        assert!(entries.iter().any(|entry| entry.as_ref().is_ok_and(|entry| entry.command == "record")));
    }
}
