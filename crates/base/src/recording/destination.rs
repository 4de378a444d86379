//! Where a new recording goes, and what becomes of what lies there.

use super::{Error, MANIFEST};
use std::path::{Path, PathBuf};

/// The directory of a new recording.
///
/// An empty directory is taken. A recording that is there stays, unless it may be replaced; anything else always stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The directory.
    pub path: PathBuf,
    /// Whether a recording that is there may be replaced.
    pub replace: bool,
}

impl From<&Path> for Destination {
    fn from(path: &Path) -> Self {
        Self { path: path.to_owned(), replace: false }
    }
}

impl From<&PathBuf> for Destination {
    fn from(path: &PathBuf) -> Self {
        Self::from(path.as_path())
    }
}

impl From<&Destination> for Destination {
    fn from(destination: &Destination) -> Self {
        destination.clone()
    }
}

impl Destination {
    /// Refuses a place that cannot be taken.
    ///
    /// # Errors
    /// If something lies there that is to stay, or if the operating system refuses.
    pub fn check(&self) -> Result<(), Error> {
        use std::io::ErrorKind;
        match std::fs::read_dir(&self.path).map(|mut entries| entries.next().is_some()) {
            Ok(false) => Ok(()),
            Ok(true) if !self.path.join(MANIFEST).exists() => Err(Error::Foreign { path: self.path.clone() }),
            Ok(true) if self.replace => Ok(()),
            Ok(true) => Err(Error::Taken { path: self.path.clone() }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotADirectory => Err(Error::Foreign { path: self.path.clone() }),
            Err(source) => Err(Error::Io { path: self.path.clone(), source }),
        }
    }

    /// Removes the recording that is to be replaced, if there is one.
    pub(super) fn clear(&self) -> Result<(), Error> {
        self.check()?;
        if !self.path.join(MANIFEST).exists() {
            return Ok(());
        }
        std::fs::remove_dir_all(&self.path).map_err(|source| Error::Io { path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_a_recording_is_ever_replaced_and_only_where_that_is_wanted() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str, replace| Destination { path: directory.path().join(name), replace };
        fs::create_dir_all(directory.path().join("recording/L0")).unwrap();
        fs::write(directory.path().join("recording").join(MANIFEST), "{}").unwrap();
        fs::create_dir(directory.path().join("empty")).unwrap();
        fs::create_dir_all(directory.path().join("home/letters")).unwrap();
        fs::write(directory.path().join("file"), "mine").unwrap();
        for replace in [false, true] {
            assert!(at("new", replace).check().is_ok() && at("empty", replace).check().is_ok());
            for taken in ["home", "file"] {
                let error = at(taken, replace).clear().unwrap_err();
                assert!(matches!(error, Error::Foreign { .. }), "{error}");
            }
        }
        assert!(matches!(at("recording", false).clear(), Err(Error::Taken { .. })));
        at("recording", true).clear().unwrap();
        assert!(!directory.path().join("recording").exists());
        assert!(directory.path().join("home/letters").exists() && directory.path().join("file").exists());
    }
}
