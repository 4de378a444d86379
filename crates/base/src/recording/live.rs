//! A recording in progress: readable from its first moment, in its place.
//!
//! ```text
//! begin   recording.json, no part yet          killed here: a recording of nothing, and it says so
//! with    recording.json, parts being recorded killed here: partial parts, read as far as they go
//! finish  recording.json, whole parts
//! ```

use super::{ClockPair, Destination, Ended, Error, Part, Recording, private};
use std::path::{Path, PathBuf};

/// A recording that grows where it will stay. Dropping it leaves on disk what there is.
#[derive(Debug)]
pub struct Live {
    recording: Recording,
}

impl Live {
    /// Makes the directory `place` and the manifest in it, with the machines of `recording` and no parts.
    ///
    /// # Errors
    /// If something lies there that is to stay, or if the operating system refuses.
    pub fn begin(place: impl Into<Destination>, recording: Recording) -> Result<Self, Error> {
        let destination = place.into();
        destination.clear()?;
        let place = destination.path.as_path();
        let io = |path: &Path, source| Error::Io { path: path.to_owned(), source };
        private::take(place)?;
        let mut live = Self { recording: Recording { root: place.to_owned(), parts: Vec::new(), ..recording } };
        for machine in &live.recording.machines {
            let own = place.join(&machine.id);
            std::fs::create_dir_all(&own).map_err(|error| io(&own, error))?;
        }
        live.with(Vec::new())?;
        Ok(live)
    }

    /// Adds parts, most of them partial, and writes the manifest.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn with(&mut self, parts: Vec<Part>) -> Result<(), Error> {
        self.recording.parts.extend(parts);
        self.recording.write()
    }

    /// Notes what the clocks of a machine showed; the manifest has it when it is written next.
    pub fn note_clocks(&mut self, pair: ClockPair) {
        self.recording.clock_pairs.push(pair);
    }

    /// What they showed.
    pub fn clock_pairs(&self) -> &[ClockPair] {
        &self.recording.clock_pairs
    }

    /// Notes why a flight recorder stopped; the manifest has it when it is written next.
    pub fn note_end(&mut self, ended: Ended) {
        self.recording.ended = Some(ended);
    }

    /// The recording's directory.
    pub fn root(&self) -> &Path {
        &self.recording.root
    }

    /// Where a part of that relative path goes.
    pub fn path(&self, part: &Path) -> PathBuf {
        self.recording.root.join(part)
    }

    /// Writes the manifest of what has become whole: `parts` take the place of all that was named before.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn finish(self, parts: Vec<Part>) -> Result<Recording, Error> {
        let recording = Recording { parts, ..self.recording };
        recording.write()?;
        Ok(recording)
    }

    /// Takes back a recording that never began: what was made is removed.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn abandon(self) -> Result<(), Error> {
        let root = self.recording.root;
        std::fs::remove_dir_all(&root).map_err(|source| Error::Io { path: root, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Identity, Machine, PartKind, PartState};

    fn recording() -> Recording {
        let machine = Machine { id: "L1".into(), level: 1, parent: None, name: None, identity: Identity::default() };
        Recording {
            root: PathBuf::new(),
            created: None,
            tool: None,
            emulated: None,
            machines: vec![machine],
            parts: Vec::new(),
            problems: Vec::new(),
            clock_pairs: Vec::new(),
            ended: None,
            shown: Vec::new(),
        }
    }

    fn part(name: &str, state: PartState) -> Part {
        let path = Path::new("L1").join(name);
        Part { path, machine: "L1".into(), kind: PartKind::TraceDat, clock: None, state }
    }

    #[test]
    fn it_opens_at_every_moment() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("new");
        let mut live = Live::begin(&place, recording()).unwrap();
        assert!(Recording::open(&place).unwrap().parts.is_empty());
        std::fs::create_dir(live.path(Path::new("L1/trace.partial"))).unwrap();
        live.with(vec![part("trace.partial", PartState::Partial)]).unwrap();
        assert_eq!(Recording::open(&place).unwrap().parts[0].state, PartState::Partial);
        live.finish(vec![part("trace.dat", PartState::Complete)]).unwrap();
        let parts = Recording::open(&place).unwrap().parts;
        assert_eq!((parts.len(), parts[0].kind), (1, PartKind::TraceDat));
    }

    #[test]
    fn nothing_is_written_over_and_an_abandoned_one_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("new");
        let live = Live::begin(&place, recording()).unwrap();
        assert!(matches!(Live::begin(&place, recording()), Err(Error::Taken { .. })));
        live.abandon().unwrap();
        assert!(!place.exists());
    }
}
