//! A recording becomes one file: its manifest, then its parts.

use crate::Error;
use base::recording::{MANIFEST, NewFile, Recording, join};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// How hard zstd tries: as fast as a disk writes, and smaller than gzip at its best.
const LEVEL: i32 = 9;

/// Writes `recording` into the new file `place`, and returns how many files that were.
///
/// Bare traces get the places that they have in a recording. Links to files of the recording become those files, others are refused.
/// Times and owners of files are left out, so that the same recording always gives the same bytes.
///
/// # Errors
/// If something is at `place` already, or if a part cannot be read or nothing more be written; nothing is left behind then.
pub fn pack(recording: &Recording, place: &Path) -> Result<u64, Error> {
    let new = NewFile::new(place, 0o600).map_err(|source| Error::Io { path: place.to_owned(), source })?;
    pack_into(recording, new, place)
}

/// What [`pack`] does, into a file that was begun for `place`: whoever removes that on a signal has to know it.
///
/// # Errors
/// Those of [`pack`].
pub fn pack_into(recording: &Recording, new: NewFile, place: &Path) -> Result<u64, Error> {
    let io = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => Error::Taken(place.to_owned()),
        _ => Error::Io { path: place.to_owned(), source },
    };
    let count = write(recording, new.file(), place)?;
    new.file().sync_all().and_then(|()| new.finish()).map_err(io)?;
    Ok(count)
}

fn write(recording: &Recording, file: &File, place: &Path) -> Result<u64, Error> {
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
        // What the user named may be a link.
        for (from, part) in parts {
            let from = &real(from)?;
            count += Carry { root: from, place }.all(&mut tar, from, &part.path)?;
        }
    } else {
        let root = &real(&recording.root)?;
        for part in &recording.parts {
            count += Carry { root, place }.all(&mut tar, &root.join(&part.path), &part.path)?;
        }
    }
    tar.into_inner().and_then(zstd::Encoder::finish).map_err(io)?;
    Ok(count)
}

/// Where a path leads, through all links.
fn real(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|source| Error::Io { path: path.to_owned(), source })
}

/// What is carried from below `root` into the archive at `place`.
struct Carry<'p> {
    root: &'p Path,
    place: &'p Path,
}

impl Carry<'_> {
    /// Adds a file, or a directory with all files in it, in the order of their names. What is no file is refused, not left out without a word.
    fn all<W: Write>(&self, tar: &mut tar::Builder<W>, from: &Path, to: &Path) -> Result<u64, Error> {
        let io = |source| Error::Io { path: from.to_owned(), source };
        let kind = std::fs::symlink_metadata(from).map_err(io)?.file_type();
        // Also where a directory above it is a link.
        let leads_to = real(from)?;
        if !leads_to.starts_with(self.root) || kind.is_symlink() && !leads_to.is_file() {
            return Err(Error::Link(from.to_owned()));
        }
        if !kind.is_dir() {
            self.file(tar, &leads_to, to)?;
            return Ok(1);
        }
        let mut names: Vec<_> = std::fs::read_dir(from).map_err(io)?.flatten().map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        let each = |name: &OsString| self.all(tar, &from.join(name), &to.join(name));
        names.iter().map(each).sum()
    }

    fn file<W: Write>(&self, tar: &mut tar::Builder<W>, from: &Path, to: &Path) -> Result<(), Error> {
        let io = |source| Error::Io { path: from.to_owned(), source };
        let file = base::files::open(from).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut bytes = Reading { file, failed: false };
        append(tar, to, length, &mut bytes).map_err(|source| {
            let path = if bytes.failed { from } else { self.place };
            Error::Io { path: path.to_owned(), source }
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Links, private, unpack};
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A link in a recording is the file of it that it leads to; what it leads to elsewhere is nobody's to send away, and not left out in
    /// silence.
    #[test]
    fn a_linked_trace_is_packed_and_one_from_elsewhere_is_refused_by_its_name() {
        let place = tempfile::tempdir().unwrap();
        let (web, packed) = (place.path().join("web"), place.path().join("web.kvmscope"));
        fs::create_dir_all(web.join("L0")).unwrap();
        fs::write(web.join("L0/kept.dat"), b"events").unwrap();
        let trace = web.join("L0/trace.dat");
        symlink("kept.dat", &trace).unwrap();
        let recording = Recording::open(&web).unwrap();
        assert_eq!(pack(&recording, &packed).unwrap(), 2);
        let unpacked = unpack(&packed, Links::Never, private().unwrap()).unwrap();
        assert_eq!(fs::read(unpacked.root().join("L0/trace.dat")).unwrap(), b"events");
        // Whoever names a link means what it leads to.
        let (bare, packed) = (place.path().join("bare.dat"), place.path().join("bare.kvmscope"));
        symlink("web/L0/kept.dat", &bare).unwrap();
        assert_eq!(pack(&Recording::open(&bare).unwrap(), &packed).unwrap(), 2);
        fs::write(place.path().join("other.dat"), b"mine").unwrap();
        for elsewhere in ["../../other.dat", "/proc/version", "."] {
            fs::remove_file(&trace).unwrap();
            symlink(elsewhere, &trace).unwrap();
            let packed = place.path().join("elsewhere.kvmscope");
            let refused = pack(&recording, &packed).unwrap_err();
            assert!(matches!(&refused, Error::Link(path) if path.ends_with("L0/trace.dat")), "{refused}");
            assert!(!packed.exists());
        }
    }
}
