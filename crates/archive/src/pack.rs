//! A recording becomes one file: its manifest, then its parts.

use crate::Error;
use base::recording::{MANIFEST, Recording, draft_beside, join, remove_abandoned_drafts};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// How hard zstd tries: as fast as a disk writes, and smaller than gzip at its best.
const LEVEL: i32 = 9;

/// Writes `recording` into the new file `place`, and returns how many files that were.
///
/// Bare traces get the places that they have in a recording. Links are left out: they may lead anywhere. Times and owners
/// of files are left out too, so that the same recording always gives the same bytes.
///
/// # Errors
/// If something is at `place` already, or if a part cannot be read or nothing more be written; nothing is left behind then.
pub fn pack(recording: &Recording, place: &Path) -> Result<u64, Error> {
    pack_by(recording, place, &draft_beside(place))
}

/// The same, with the name of what is filled meanwhile: whoever removes it on a signal has to know it.
///
/// # Errors
/// Those of [`pack`].
pub fn pack_by(recording: &Recording, place: &Path, draft: &Path) -> Result<u64, Error> {
    let io = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => Error::Taken(place.to_owned()),
        _ => Error::Io { path: place.to_owned(), source },
    };
    remove_abandoned_drafts(place);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft).map_err(io)?;
    let written = write(recording, file, place).and_then(|(file, count)| {
        file.sync_all().map_err(io)?;
        // A second name is refused where something is; a file system without them has to rename.
        match std::fs::hard_link(draft, place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists && place.symlink_metadata().is_err() => {
                std::fs::rename(draft, place)
            }
            linked => linked,
        }
        .map_err(io)?;
        Ok(count)
    });
    let _ = std::fs::remove_file(draft);
    written
}

fn write(recording: &Recording, file: File, place: &Path) -> Result<(File, u64), Error> {
    // What `join` does to one recording: every part gets a place below its machine's directory.
    let joined =
        if recording.root.as_os_str().is_empty() { Some(join(std::slice::from_ref(recording), &[])?) } else { None };
    let (parts, manifest) = match &joined {
        Some(joined) => (joined.from.iter().zip(&joined.recording.parts).collect(), &joined.recording),
        None => (Vec::new(), recording),
    };
    let io = |source| Error::Io { path: place.to_owned(), source };
    let mut tar = tar::Builder::new(zstd::Encoder::new(file, LEVEL).map_err(io)?);
    let text = manifest.manifest_text()?;
    append(&mut tar, Path::new(MANIFEST), text.len() as u64, text.as_slice()).map_err(io)?;
    let mut count = 1;
    if joined.is_some() {
        for (from, part) in parts {
            count += carry(&mut tar, from, &part.path, place)?;
        }
    } else {
        for part in &recording.parts {
            count += carry(&mut tar, &recording.root.join(&part.path), &part.path, place)?;
        }
    }
    let file = tar.into_inner().and_then(zstd::Encoder::finish).map_err(io)?;
    Ok((file, count))
}

/// Adds a file, or a directory with all files in it, in the order of their names. What is no file is refused, not left out without a word.
fn carry<W: Write>(tar: &mut tar::Builder<W>, from: &Path, to: &Path, place: &Path) -> Result<u64, Error> {
    let io = |source| Error::Io { path: from.to_owned(), source };
    let kind = std::fs::symlink_metadata(from).map_err(io)?.file_type();
    if kind.is_file() {
        let file = base::files::open(from).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut bytes = Reading { file, failed: false };
        return match append(tar, to, length, &mut bytes) {
            Ok(()) => Ok(1),
            Err(source) if bytes.failed => Err(Error::Io { path: from.to_owned(), source }),
            Err(source) => Err(Error::Io { path: place.to_owned(), source }),
        };
    }
    let mut count = 0;
    if kind.is_dir() {
        let mut names: Vec<_> = std::fs::read_dir(from).map_err(io)?.flatten().map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        for name in names {
            count += carry(tar, &from.join(&name), &to.join(&name), place)?;
        }
    } else if !kind.is_symlink() {
        base::files::open(from).map_err(io)?;
    }
    Ok(count)
}

/// A file, and whether it was its own reading that failed: else it is the archive's writing.
struct Reading {
    file: File,
    failed: bool,
}

impl Read for Reading {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into);
        self.failed |= read.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        read
    }
}

/// Adds `length` bytes; a file that has become shorter meanwhile is filled up, as the header has promised.
fn append<W: Write>(tar: &mut tar::Builder<W>, path: &Path, length: u64, bytes: impl Read) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(length);
    header.set_mode(0o600);
    header.set_mtime(0);
    tar.append_data(&mut header, path, bytes.take(length).chain(io::repeat(0)).take(length))
}
