//! Which recordings stay: the latest ones, as many and as large as allowed.

use anyhow::Context;
use std::path::{Path, PathBuf};

/// How the name of a recording of the agent begins; nothing else in its directory is ever removed.
pub(super) const PREFIX: &str = "kvmscope-agent-";

pub(super) struct Keep {
    pub directory: PathBuf,
    pub most: usize,
    pub most_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub recordings: usize,
    pub bytes: u64,
}

impl Keep {
    /// Removes the oldest ones until those that stay, and `coming_bytes` more, are within the limits. The last one stays, whatever its size.
    ///
    /// # Errors
    /// If the directory cannot be read, or one of them not be removed.
    pub(super) fn prune(&self, coming_bytes: u64) -> anyhow::Result<Kept> {
        let mut all = self.all()?;
        let sum = |all: &[(PathBuf, u64)]| all.iter().map(|(_, bytes)| bytes).sum::<u64>();
        // Names have the time, so the oldest is the first.
        while all.len() > 1 && (all.len() > self.most || sum(&all).saturating_add(coming_bytes) > self.most_bytes) {
            let (oldest, _) = all.remove(0);
            remove(&oldest)?;
        }
        Ok(Kept { recordings: all.len(), bytes: sum(&all) })
    }

    /// Removes the oldest one, where a disk is full; `false` if there is none.
    ///
    /// # Errors
    /// As those of [`Keep::prune`].
    pub(super) fn make_room(&self) -> anyhow::Result<bool> {
        match self.all()?.first() {
            Some((oldest, _)) => remove(oldest).map(|()| true),
            None => Ok(false),
        }
    }

    /// Bytes of the largest one, which the next one may be as well.
    pub(super) fn largest_bytes(&self) -> u64 {
        self.all().map(|all| all.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0)).unwrap_or(0)
    }

    /// All of them with their sizes, the oldest first.
    fn all(&self) -> anyhow::Result<Vec<(PathBuf, u64)>> {
        let entries = std::fs::read_dir(&self.directory).with_context(|| self.directory.display().to_string())?;
        let is_own = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
        };
        let mut all: Vec<(PathBuf, u64)> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(is_own)
            .map(|path| {
                let bytes = bytes_of(&path);
                (path, bytes)
            })
            .collect();
        all.sort();
        Ok(all)
    }
}

fn remove(recording: &Path) -> anyhow::Result<()> {
    let removed = if recording.is_dir() { std::fs::remove_dir_all(recording) } else { std::fs::remove_file(recording) };
    removed.with_context(|| format!("{} cannot be removed", recording.display()))
}

/// Of a file, or of all files below a directory; links count as nothing and are not followed.
fn bytes_of(path: &Path) -> u64 {
    let Ok(about) = path.symlink_metadata() else { return 0 };
    if !about.is_dir() {
        return if about.is_file() { about.len() } else { 0 };
    }
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    entries.flatten().map(|entry| bytes_of(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(directory: &Path, name: &str, bytes: usize) {
        let place = directory.join(name).join("L0");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("trace.dat"), vec![0; bytes]).unwrap();
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_go_first_and_what_is_not_the_agents_never() {
        let place = tempfile::tempdir().unwrap();
        for (name, bytes) in [
            ("a-recording-of-somebody", 900),
            ("kvmscope-agent-1", 100),
            ("kvmscope-agent-2", 100),
            ("kvmscope-agent-3", 100),
        ] {
            made(place.path(), name, bytes);
        }
        let keep = |most, most_bytes| Keep { directory: place.path().to_owned(), most, most_bytes };
        assert_eq!(keep(3, 1_000).prune(0).unwrap(), Kept { recordings: 3, bytes: 300 });
        assert_eq!(keep(3, 1_000).largest_bytes(), 100);
        assert_eq!(keep(2, 1_000).prune(0).unwrap(), Kept { recordings: 2, bytes: 200 });
        assert_eq!(names(place.path()), ["a-recording-of-somebody", "kvmscope-agent-2", "kvmscope-agent-3"]);
        assert_eq!(keep(9, 250).prune(100).unwrap(), Kept { recordings: 1, bytes: 100 });
        assert_eq!(keep(9, 10).prune(0).unwrap(), Kept { recordings: 1, bytes: 100 }, "the last one stays");
        assert!(keep(9, 10).make_room().unwrap() && !keep(9, 10).make_room().unwrap());
        assert_eq!(names(place.path()), ["a-recording-of-somebody"]);
    }
}
