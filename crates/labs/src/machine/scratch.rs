//! A directory for files that nobody needs once the lab has ended.
//!
//! It carries the id of its process in its name; one whose process is gone was left by a lab that was killed, and goes
//! when the next lab begins.

use lab::Error;
use std::path::{Path, PathBuf};

/// The directory; dropping it removes it.
pub struct Scratch(PathBuf);

const PREFIX: &str = "scratch-";

impl Scratch {
    /// A new one in `cache`; those of processes that are gone are removed.
    pub fn new(cache: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(cache).map_err(|error| Error::io(cache, error))?;
        sweep(cache, |name| name.strip_prefix(PREFIX)?.parse().ok())?;
        let place = cache.join(format!("{PREFIX}{}", std::process::id()));
        // Of a process that had this number once.
        let _ = std::fs::remove_dir_all(&place);
        base::recording::make_private(&place).map_err(|error| Error::io(&place, error))?;
        Ok(Self(place))
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Removes the directories in `cache` whose owner, a process id out of their name, no longer runs.
pub fn sweep(cache: &Path, owner: impl Fn(&str) -> Option<i32>) -> Result<(), Error> {
    let io = |error| Error::io(cache, error);
    for entry in std::fs::read_dir(cache).map_err(io)? {
        let entry = entry.map_err(io)?;
        let gone = |owner| rustix::process::test_kill_process(owner) == Err(rustix::io::Errno::SRCH);
        let owner = entry.file_name().to_str().and_then(&owner).and_then(rustix::process::Pid::from_raw);
        if owner.is_some_and(gone) {
            // Another lab that begins now may remove it first.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_lab_left_goes_and_what_a_living_one_has_stays() {
        let cache = tempfile::tempdir().unwrap();
        let (dead, alive, other) = ("scratch-2147483646", "scratch-1", "linux-image-6.1");
        for name in [dead, alive, other] {
            std::fs::create_dir(cache.path().join(name)).unwrap();
        }
        let scratch = Scratch::new(cache.path()).unwrap();
        std::fs::write(scratch.join("disk"), b"x").unwrap();
        drop(scratch);
        let there = |name: &str| cache.path().join(name).exists();
        assert_eq!((there(dead), there(alive), there(other)), (false, true, true));
        assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 2);
    }
}
