//! A recording being made: beside its place until it is whole, gone if it never becomes so.
//!
//! For what is computed from other files (a cut, a join). A live recorder writes in place instead ([`Live`](super::Live)),
//! so that what it has survives it.

use super::{Destination, Error, Recording, draft_beside, private, remove_abandoned_drafts};
use std::path::{Path, PathBuf};

/// A directory to fill, which [`Draft::finish`] puts in its place.
#[derive(Debug)]
pub struct Draft {
    place: PathBuf,
    replace: bool,
    beside: PathBuf,
}

impl Draft {
    /// Begins a recording that will lie at `place`.
    ///
    /// # Errors
    /// If something lies there that is to stay, or if the operating system refuses.
    pub fn new(place: impl Into<Destination>) -> Result<Self, Error> {
        let destination = place.into();
        destination.check()?;
        let Destination { path: asked, replace } = destination;
        // The hidden name means nothing to anybody: what is refused is the place that was named.
        let io = |source| Error::Io { path: asked.clone(), source };
        let place = std::path::absolute(&asked).map_err(io)?;
        remove_abandoned_drafts(&place);
        let beside = draft_beside(&place);
        private::make(&beside).map_err(io)?;
        Ok(Self { place, replace, beside })
    }

    /// The directory that is filled meanwhile, for recorders that know a recording by its directory.
    pub fn root(&self) -> &Path {
        &self.beside
    }

    /// Where a part of that relative path is to be written; the directories above it are made.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn part(&self, path: &Path) -> Result<PathBuf, Error> {
        let whole = self.beside.join(path);
        let above = whole.parent().unwrap_or(&self.beside);
        std::fs::create_dir_all(above).map_err(|source| Error::Io { path: above.to_owned(), source })?;
        Ok(whole)
    }

    /// Writes the manifest of `recording`, whose parts have been written, and puts the directory in its place.
    ///
    /// # Errors
    /// If the operating system refuses; nothing is left behind then.
    pub fn finish(self, recording: Recording) -> Result<Recording, Error> {
        Recording { root: self.beside.clone(), ..recording.clone() }.write()?;
        Destination { path: self.place.clone(), replace: self.replace }.clear()?;
        std::fs::rename(&self.beside, &self.place).map_err(|source| Error::Io { path: self.place.clone(), source })?;
        Ok(Recording { root: self.place.clone(), ..recording })
    }
}

impl Drop for Draft {
    /// Removes what did not become whole; after [`Draft::finish`] there is nothing.
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Emulator, Named};
    use std::fs;

    fn recording(directory: &Path) -> Recording {
        let file = directory.join("bare.dat");
        fs::write(&file, b"events").unwrap();
        let mut recording = Recording::of_files(&[Named::at_l0(&file)], Some(Emulator::Tcg)).unwrap();
        recording.parts[0].path = "L0/trace.dat".into();
        recording
    }

    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "bare.dat").collect()
    }

    #[test]
    fn a_finished_draft_is_a_recording_in_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("cut");
        fs::create_dir(&place).unwrap();
        let draft = Draft::new(&place).unwrap();
        fs::write(draft.part(Path::new("L0/trace.dat")).unwrap(), b"fewer").unwrap();
        draft.finish(recording(directory.path())).unwrap();
        let opened = Recording::open(&place).unwrap();
        assert_eq!((opened.emulated, opened.parts.len()), (Some(Emulator::Tcg), 1));
        assert_eq!(fs::read(opened.root.join(&opened.parts[0].path)).unwrap(), b"fewer");
        assert_eq!(names(directory.path()), ["cut"]);
    }

    #[test]
    fn an_abandoned_draft_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let draft = Draft::new(&directory.path().join("cut")).unwrap();
        fs::write(draft.part(Path::new("L0/trace.dat")).unwrap(), b"half").unwrap();
        drop(draft);
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn what_is_already_there_is_never_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, b"mine").unwrap();
        for place in [directory.path(), &file] {
            let error = Draft::new(place).unwrap_err().to_string();
            assert!(error.contains("already exists"), "{error}");
        }
        assert_eq!(names(directory.path()), ["file"]);
    }

    #[test]
    fn an_older_recording_is_replaced_at_the_end_and_not_before() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("cut");
        Draft::new(&place).unwrap().finish(recording(directory.path())).unwrap();
        assert!(matches!(Draft::new(&place), Err(Error::Taken { .. })));
        let destination = Destination { path: place.clone(), replace: true };
        drop(Draft::new(&destination).unwrap());
        assert!(Recording::open(&place).is_ok(), "what was given up has replaced nothing");
        let draft = Draft::new(&destination).unwrap();
        fs::write(draft.part(Path::new("L0/trace.dat")).unwrap(), b"newer").unwrap();
        draft.finish(recording(directory.path())).unwrap();
        assert_eq!(fs::read(place.join("L0/trace.dat")).unwrap(), b"newer");
        assert_eq!(names(directory.path()), ["cut"]);
    }
}
