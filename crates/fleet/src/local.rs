//! A data set in a directory.

use crate::{Added, Error, MANIFEST, SCHEMA, decoded, failure_path, layout, manifest, recordings_path, stored_paths};
use analysis::fleet::{FAILURES, Fleet, Id, RECORDINGS};
use base::recording::{NewFile, take_private};
use base::{files, parallel};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A manifest is a line of JSON.
const MOST_MANIFEST_BYTES: u64 = 1 << 20;

/// A part is a table of one recording: thousands of rows, where a host has hundreds of vCPUs.
const MOST_PART_BYTES: u64 = 64 << 20;

/// A data set in a directory.
pub struct Local {
    root: PathBuf,
}

/// What adding a recording did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was not there before.
    Added,
    /// It was, and was written once more.
    Replaced,
}

impl Local {
    /// The data set in `root`, which is made where nothing is; what is there and is none of ours is refused.
    ///
    /// # Errors
    /// If the operating system refuses, or something else is there.
    pub fn create(root: &Path) -> Result<Self, Error> {
        let io = |source| Error::Io { path: root.to_owned(), source };
        let is_empty = !root.exists() || fs::read_dir(root).map_err(io)?.next().is_none();
        if is_empty {
            // What a finding tells of a host is as private as the recording that it was found in.
            take_private(root)?;
            put(&root.join(MANIFEST), manifest().as_bytes())?;
        }
        Self::open(root)
    }

    /// The data set in `root`.
    ///
    /// # Errors
    /// If there is none, or one of another version.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let place = root.join(MANIFEST);
        let refuse = |why: String| Error::NoDataset(format!("{} {why}", root.display()));
        let text = files::read(&place, MOST_MANIFEST_BYTES).map_err(|source| match source.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                refuse(format!("is no data set: it has no {MANIFEST}; kvmscope export RECORDING.. --dataset DIR makes one in a new directory"))
            }
            _ => Error::Io { path: place.clone(), source },
        })?;
        let about: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        match about["schema"].as_str() {
            Some(SCHEMA) => Ok(Self { root: root.to_owned() }),
            Some(other) => Err(refuse(format!("is a data set of schema {other}; this version reads {SCHEMA}"))),
            None => Err(refuse(format!("has a damaged {MANIFEST}"))),
        }
    }

    /// Whether a recording is there, whole.
    pub fn has(&self, id: &Id) -> bool {
        self.root.join(recordings_path(id)).is_file()
    }

    /// Writes all files of a recording, its row last; an earlier failure of `source` is forgotten.
    ///
    /// # Errors
    /// If the operating system refuses: then the recording is not there.
    pub fn add(&self, added: &Added, source: &str) -> Result<Outcome, Error> {
        let outcome = if self.has(&added.id) { Outcome::Replaced } else { Outcome::Added };
        if outcome == Outcome::Replaced {
            // While files are replaced the recording is not whole.
            let place = self.root.join(recordings_path(&added.id));
            fs::remove_file(&place).map_err(|source| Error::Io { path: place, source })?;
        }
        for (path, bytes) in &added.files {
            put(&self.root.join(path), bytes)?;
        }
        // Where there was none, nothing is removed.
        let _ = fs::remove_file(self.root.join(failure_path(source)));
        Ok(outcome)
    }

    /// Writes that the recording at `source` could not be added.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn fail(&self, source: &str, error: &str) -> Result<(), Error> {
        let (path, bytes) = crate::failure(source, error)?;
        put(&self.root.join(path), &bytes)
    }

    /// Every recording that is there, by host.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn recordings(&self) -> Result<Vec<Id>, Error> {
        self.ids(&RECORDINGS.address())
    }

    /// The files that say which recordings there are: each is written anew when its recording is.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn rows(&self) -> Result<Vec<PathBuf>, Error> {
        let of = |table: &str| -> Result<Vec<PathBuf>, Error> {
            let ids = self.ids(table)?;
            Ok(ids.into_iter().map(|id| self.root.join(layout::path(table, &id))).collect())
        };
        Ok([of(&RECORDINGS.address())?, of(&FAILURES.address())?].concat())
    }

    fn ids(&self, table: &str) -> Result<Vec<Id>, Error> {
        Ok(self.found(table)?.0)
    }

    /// The recordings with a file of that table, and the places of files whose folders bear other names than [`layout::encoded`]
    /// gives: nothing else of such a recording would be found.
    fn found(&self, table: &str) -> Result<(Vec<Id>, Vec<PathBuf>), Error> {
        let (mut ids, mut misnamed) = (Vec::new(), Vec::new());
        for (host, place) in values(&self.root.join(table), "host=")? {
            for (recording, place) in values(&place, "recording=")? {
                let (id, file) = (Id { host: host.clone(), recording }, place.join(layout::FILE));
                if !file.is_file() {
                    continue;
                }
                match self.root.join(layout::path(table, &id)) == file {
                    true => ids.push(id),
                    false => misnamed.push(file),
                }
            }
        }
        ids.sort();
        misnamed.sort();
        Ok((ids, misnamed))
    }

    /// All recordings, read and merged on all CPUs. One that is damaged is among those that could not be added.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn fleet(&self) -> Result<Fleet, Error> {
        /// Recordings that are merged before their tables are all in memory.
        const TOGETHER: usize = 64;
        let (ids, misnamed) = self.found(&RECORDINGS.address())?;
        let parts: Vec<&[Id]> = ids.chunks(TOGETHER).collect();
        let merged = parallel::map(parts.len(), |place| {
            let mut fleet = Fleet::default();
            for id in parts[place] {
                if let Err(error) = self.read(&mut fleet, id) {
                    fleet.leave_out(format!("recording {} of host {}", id.recording, id.host), error.to_string());
                }
            }
            fleet
        });
        let mut fleet = Fleet::default();
        merged.into_iter().for_each(|part| fleet.merge(part));
        for file in misnamed {
            fleet
                .leave_out(file.display().to_string(), "its folder was renamed; export the recording again".to_owned());
        }
        for id in self.ids(&FAILURES.address())? {
            let path = layout::path(&FAILURES.address(), &id);
            let read = self.bytes(&path).and_then(|bytes| crate::read(&mut fleet, &id, vec![(path.clone(), bytes)]));
            if let Err(error) = read {
                fleet.leave_out(path, error.to_string());
            }
        }
        Ok(fleet)
    }

    fn read(&self, fleet: &mut Fleet, id: &Id) -> Result<(), Error> {
        let files = stored_paths(id).into_iter().map(|(path, _)| Ok((path.clone(), self.bytes(&path)?)));
        crate::read(fleet, id, files.collect::<Result<_, Error>>()?)
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>, Error> {
        let place = self.root.join(path);
        files::read(&place, MOST_PART_BYTES).map_err(|source| Error::Io { path: place, source })
    }
}

/// The folders called `<prefix><value>`, with their values.
fn values(place: &Path, prefix: &str) -> Result<Vec<(String, PathBuf)>, Error> {
    let entries = match fs::read_dir(place) {
        Ok(entries) => entries,
        // Nothing was added yet.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::Io { path: place.to_owned(), source }),
    };
    let value = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        Some((decoded(name.strip_prefix(prefix)?), entry.path()))
    };
    Ok(entries.flatten().filter_map(value).collect())
}

/// Writes a file whole or not at all.
fn put(place: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = || {
        place.parent().map_or(Ok(()), fs::create_dir_all)?;
        let new = NewFile::new(place, 0o666)?;
        new.file().write_all(bytes)?;
        new.replace()
    };
    write().map_err(|source| Error::Io { path: place.to_owned(), source })
}
