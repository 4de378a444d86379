//! A file that appears under its name when it is whole.
//!
//! ```text
//! no name (O_TMPFILE)                 --linkat--> NAME     a killed program leaves nothing
//! .NAME.<processes>-<pid>.<random>.new --rename--> NAME    where the file system knows no files without a name
//! ```

use super::{draft_beside, remove_abandoned_drafts};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};
use std::fs::{File, OpenOptions, hard_link, remove_file, rename};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What is to be the file at a place; dropped before it has that name, it is gone.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    place: PathBuf,
    /// Its name until it is whole, if it has one.
    name: Option<PathBuf>,
}

impl NewFile {
    /// Begins the file that will lie at `place`, whose directory is there; `mode` is what the umask is taken from. Drafts that killed
    /// programs left in that directory are removed.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn new(place: &Path, mode: u32) -> io::Result<Self> {
        remove_abandoned_drafts(place);
        Self::unnamed(place, mode).map_or_else(|| Self::named(place, mode), Ok)
    }

    /// One without a name, where the file system has such files and `/proc` is there, by which it gets one.
    fn unnamed(place: &Path, mode: u32) -> Option<Self> {
        let directory = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(openat(CWD, directory, flags, Mode::from_raw_mode(mode)).ok()?);
        path_of(&file).exists().then(|| Self { file, place: place.to_owned(), name: None })
    }

    fn named(place: &Path, mode: u32) -> io::Result<Self> {
        let name = draft_beside(place);
        // A link that somebody put there is not followed: the file must not be there yet.
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(&name)?;
        Ok(Self { file, place: place.to_owned(), name: Some(name) })
    }

    /// What is filled.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The name that it has meanwhile, for whoever removes it on a signal.
    pub fn name(&self) -> Option<&Path> {
        self.name.as_deref()
    }

    /// It is whole, and new at its place.
    ///
    /// # Errors
    /// If something is there, or if the operating system refuses.
    pub fn finish(self) -> io::Result<()> {
        let Some(name) = &self.name else { return link(&self.file, &self.place) };
        // A second name is refused where something is; a file system without them has to rename.
        match hard_link(name, &self.place) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists && self.place.symlink_metadata().is_err() => {
                rename(name, &self.place)
            }
            linked => linked,
        }
    }

    /// It is whole, in place of what is there.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn replace(mut self) -> io::Result<()> {
        let name = self.name.take().map_or_else(
            || {
                // No call gives a name that is taken.
                let name = draft_beside(&self.place);
                link(&self.file, &name).map(|()| name)
            },
            Ok,
        )?;
        let placed = rename(&name, &self.place);
        if placed.is_err() {
            self.name = Some(name);
        }
        placed
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // Gone already, if it was renamed.
        self.name.iter().for_each(|name| drop(remove_file(name)));
    }
}

fn link(file: &File, place: &Path) -> io::Result<()> {
    Ok(linkat(CWD, path_of(file), CWD, place, AtFlags::SYMLINK_FOLLOW)?)
}

/// By which a file without a name can be given one (open(2), `O_TMPFILE`).
fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    type Begin = fn(&Path) -> NewFile;

    fn names(directory: &Path) -> Vec<String> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Both ways, as far as the file system of temporary files has both.
    fn ways() -> Vec<Begin> {
        let directory = tempfile::tempdir().unwrap();
        let unnamed: Begin = |place| NewFile::unnamed(place, 0o600).unwrap();
        let named: Begin = |place| NewFile::named(place, 0o600).unwrap();
        let has_both = NewFile::unnamed(&directory.path().join("web"), 0o600).is_some();
        if has_both { vec![unnamed, named] } else { vec![named] }
    }

    #[test]
    fn a_file_is_under_its_name_when_it_is_whole_and_not_before() {
        for begin in ways() {
            let directory = tempfile::tempdir().unwrap();
            let place = directory.path().join("web");
            let new = begin(&place);
            new.file().write_all(b"whole").unwrap();
            let meanwhile = names(directory.path());
            assert_eq!(meanwhile.len(), usize::from(new.name().is_some()), "{meanwhile:?}");
            assert!(meanwhile.iter().all(|name| name.starts_with(".web.") && name.ends_with(".new")));
            new.finish().unwrap();
            assert_eq!(names(directory.path()), ["web"]);
            assert_eq!(fs::read(&place).unwrap(), b"whole");
            assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn what_is_there_stays_unless_it_is_to_be_replaced() {
        for begin in ways() {
            let directory = tempfile::tempdir().unwrap();
            let place = directory.path().join("web");
            fs::write(&place, b"old").unwrap();
            assert_eq!(begin(&place).finish().unwrap_err().kind(), ErrorKind::AlreadyExists);
            drop(begin(&place));
            assert_eq!((fs::read(&place).unwrap(), names(directory.path()).len()), (b"old".to_vec(), 1));
            let new = begin(&place);
            new.file().write_all(b"new").unwrap();
            new.replace().unwrap();
            assert_eq!((fs::read(&place).unwrap(), names(directory.path()).len()), (b"new".to_vec(), 1));
            fs::remove_file(&place).unwrap();
            fs::create_dir(&place).unwrap();
            assert!(begin(&place).replace().is_err());
            assert_eq!(names(directory.path()), ["web"]);
        }
    }
}
