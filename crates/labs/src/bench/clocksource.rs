//! Another clocksource for the kernel, on request, and the old one back.
//!
//! ```text
//! Switch::begin --> to("hpet") --> to("tsc") --> .. --> back
//!                   noted in the journal, then written    last first; after kill -9 `kvmscope undo` does it
//! ```
//! Source: Documentation/ABI/testing/sysfs-devices-system-clocksource (Linux 6.12).

use super::clock::{CLOCKSOURCE, clocksources};
use base::Setting;
use lab::Error;
use lab::journal::{Entry, Journal, Step};
use lab::setting::{Altered, Host};
use std::path::{Path, PathBuf};

/// A kernel whose clocksource is being switched.
pub struct Switch {
    root: PathBuf,
    proc: PathBuf,
    entry: Entry,
}

impl Switch {
    /// Begins; nothing is switched yet.
    ///
    /// # Errors
    /// If the journal cannot be written: then nothing may be changed.
    pub fn begin(journal: &Journal, root: &Path) -> Result<Self, Error> {
        let entry = journal.begin("bench")?;
        Ok(Self { root: root.to_owned(), proc: journal.proc().to_owned(), entry })
    }

    /// Lets the kernel use `source`.
    ///
    /// # Errors
    /// If it refuses; the sentence has the commands that would do it.
    pub fn to(&mut self, source: &str) -> Result<(), Error> {
        let path = self.root.join(CLOCKSOURCE).join("current_clocksource");
        let (current, _) = clocksources(&self.root);
        let old = current.ok_or_else(|| Error::Absent(format!("{} cannot be read", path.display())))?;
        if old == source {
            return Ok(());
        }
        let below = format!("{}/current_clocksource", CLOCKSOURCE.trim_start_matches("sys/"));
        let setting = Setting::SysfsWrite { path: below };
        let altered = Altered { setting, old, new: source.to_owned(), was_unset: false };
        self.entry.intend(Step::Setting(altered.clone()))?;
        let refused = |why: Error| {
            let (what, path) = (format!("the clocksource cannot be set to {source}"), path.display());
            Error::refused(
                what,
                format_args!(
                    "{why}; run as root, or switch by hand and run without --each-clocksource: echo {source} | sudo tee {path}"
                ),
            )
        };
        altered.make(&Host::at(&self.root)).map_err(refused)
    }

    /// Puts the first one back.
    ///
    /// # Errors
    /// If that fails; the journal keeps what is left to undo.
    pub fn back(self) -> Result<(), Error> {
        self.entry.put_back(&self.proc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with three clocksources, and its journal.
    fn tree() -> (tempfile::TempDir, PathBuf, Journal) {
        let tree = tempfile::tempdir().unwrap();
        let directory = tree.path().join(CLOCKSOURCE);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("available_clocksource"), "tsc hpet acpi_pm\n").unwrap();
        let current = directory.join("current_clocksource");
        std::fs::write(&current, "tsc\n").unwrap();
        let journal = Journal::new(tree.path().join("journal"), "/proc").of_host(tree.path());
        (tree, current, journal)
    }

    #[test]
    fn the_old_clocksource_comes_back_and_the_journal_is_empty() {
        let (tree, current, journal) = tree();
        let now = || std::fs::read_to_string(&current).unwrap().trim().to_owned();
        let mut switch = Switch::begin(&journal, tree.path()).unwrap();
        switch.to("hpet").unwrap();
        switch.to("hpet").unwrap();
        switch.to("acpi_pm").unwrap();
        assert_eq!((now().as_str(), journal.entries().unwrap().len()), ("acpi_pm", 1));
        switch.back().unwrap();
        assert_eq!((now().as_str(), journal.entries().unwrap().len()), ("tsc", 0));
    }

    #[test]
    fn what_was_killed_is_undone_out_of_the_journal() {
        let (tree, current, journal) = tree();
        let mut switch = Switch::begin(&journal, tree.path()).unwrap();
        switch.to("acpi_pm").unwrap();
        drop(switch); // as kill -9 would: nothing is reverted
        let entry = journal.entries().unwrap().remove(0).unwrap();
        entry.finish(Path::new("/proc")).unwrap();
        assert_eq!(std::fs::read_to_string(&current).unwrap().trim(), "tsc");
    }

    #[test]
    fn a_refusal_has_the_command() {
        let (tree, current, journal) = tree();
        std::fs::remove_file(&current).unwrap();
        std::fs::create_dir(&current).unwrap();
        let error = Switch::begin(&journal, tree.path()).unwrap().to("hpet").unwrap_err().to_string();
        assert!(error.contains("current_clocksource"), "{error}");
    }
}
