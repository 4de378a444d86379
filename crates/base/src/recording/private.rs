//! Directories for their owner alone.
//!
//! A recording holds the kernel's addresses and its log, which the kernel itself keeps from other users.

use super::{Error, draft_beside, remove_abandoned_drafts};
use std::fs::{DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
use tempfile::TempDir;

/// What others may do in the directory of a recording: nothing.
const OWN: u32 = 0o700;

/// Makes a temporary directory of that name and more, which nobody else can look into: what a host's root alone may read is laid there.
/// Those that killed programs left are removed.
///
/// # Errors
/// If the operating system refuses.
pub fn temporary(name: &str) -> io::Result<TempDir> {
    let place = std::env::temp_dir().join(name);
    remove_abandoned_drafts(&place);
    let draft = draft_beside(&place);
    let name = draft.file_name().unwrap_or_default();
    tempfile::Builder::new().prefix(name).rand_bytes(0).permissions(Permissions::from_mode(OWN)).tempdir()
}

/// Makes the directory for its owner alone, and those above it; it must not be there.
///
/// # Errors
/// If it is there, or the operating system refuses.
pub fn make(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    DirBuilder::new().mode(OWN).create(path)
}

/// Makes the directory for its owner alone, where nothing or an empty directory lies: one of another user is replaced by ours.
///
/// # Errors
/// If the operating system refuses, or what lies there is another user's and cannot be replaced.
pub fn take(place: &Path) -> Result<(), Error> {
    let io = |source| Error::Io { path: place.to_owned(), source };
    match make(place) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made.map_err(io),
    }
    match std::fs::remove_dir(place) {
        Ok(()) => make(place).map_err(io),
        // A mount, the working directory, a link to a directory: it stays, and must be ours.
        Err(_) => {
            let probe = draft_beside(&place.join("probe"));
            DirBuilder::new().mode(OWN).create(&probe).map_err(io)?;
            let owners = probe.metadata().and_then(|own| Ok((own.uid(), place.metadata()?.uid())));
            std::fs::remove_dir(&probe).map_err(io)?;
            match owners.map_err(io)? {
                (ours, owner) if ours == owner => {
                    std::fs::set_permissions(place, Permissions::from_mode(OWN)).map_err(io)
                }
                _ => Err(Error::Others { path: place.to_owned() }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_a_killed_program_left_is_removed_by_the_next() {
        let of_nobody = |path: &Path| {
            // Above the largest process id there is (PID_MAX_LIMIT, include/linux/threads.h).
            let name = path.file_name().unwrap().to_str().unwrap();
            path.with_file_name(name.replace(&format!("-{}.", std::process::id()), &format!("-{}.", 1 << 23)))
        };
        let left = of_nobody(temporary("kvmscope-left").unwrap().path());
        make(&left.join("L0")).unwrap();
        let kept = temporary("kvmscope-left").unwrap();
        assert!(!left.exists() && temporary("kvmscope-left").is_ok() && kept.path().exists());
    }

    #[test]
    fn a_temporary_directory_is_its_owner_s_alone() {
        assert_eq!(mode(temporary("kvmscope-test").unwrap().path()), OWN);
    }

    #[test]
    fn a_directory_is_made_for_its_owner_alone_and_an_empty_one_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("above/recording");
        take(&place).unwrap();
        assert_eq!(mode(&place), OWN);
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o777)).unwrap();
        let ours = place.metadata().unwrap().uid();
        if ours == 0 {
            std::os::unix::fs::chown(&place, Some(65_534), None).unwrap();
        } else {
            println!("skipped: a directory of another owner: only root can make one");
        }
        take(&place).unwrap();
        assert_eq!((mode(&place), place.metadata().unwrap().uid()), (OWN, ours));
        // What cannot be removed stays if it is ours.
        std::os::unix::fs::symlink(&place, directory.path().join("link")).unwrap();
        take(&directory.path().join("link")).unwrap();
        assert!(directory.path().join("link").is_symlink());
        if ours == 0 {
            std::os::unix::fs::chown(&place, Some(65_534), None).unwrap();
            assert!(matches!(take(&directory.path().join("link")), Err(Error::Others { .. })));
        }
    }
}
