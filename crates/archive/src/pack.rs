//! A recording becomes one file: its manifest, then its parts.

use crate::Error;
use base::recording::{MANIFEST, NewFile, Recording, join, part_files};
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
    let manifest = joined.as_ref().map_or(recording, |joined| &joined.recording);
    let io = |source| Error::Io { path: place.to_owned(), source };
    let mut tar = tar::Builder::new(zstd::Encoder::new(file, LEVEL).map_err(io)?);
    let text = manifest.manifest_text()?;
    append(&mut tar, Path::new(MANIFEST), text.len() as u64, text.as_slice()).map_err(io)?;
    let mut count = 1;
    let places: Vec<(PathBuf, &Path)> = match &joined {
        Some(joined) => joined
            .from
            .iter()
            .map(|from| from.path.clone())
            .zip(manifest.parts.iter().map(|part| part.path.as_path()))
            .collect(),
        None => recording.parts.iter().map(|part| (recording.root.join(&part.path), part.path.as_path())).collect(),
    };
    for (from, to) in places {
        for part_file in part_files(&recording.root, &from)? {
            file_into(&mut tar, &part_file.path, &part_file.in_part_at(to), place)?;
            count += 1;
        }
    }
    tar.into_inner().and_then(zstd::Encoder::finish).map_err(io)?;
    Ok(count)
}

fn file_into<W: Write>(tar: &mut tar::Builder<W>, from: &Path, to: &Path, place: &Path) -> Result<(), Error> {
    let io = |source| Error::Io { path: from.to_owned(), source };
    let file = base::files::open(from).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let mut bytes = Reading { file, failed: false };
    append(tar, to, length, &mut bytes).map_err(|source| {
        let path = if bytes.failed { from } else { place };
        Error::Io { path: path.to_owned(), source }
    })
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
            assert!(refused.to_string().contains("L0/trace.dat is a link "), "{refused}");
            assert!(!packed.exists());
        }
    }
}
