//! A recording becomes one file: its manifest, then its parts.

use crate::Error;
use base::recording::{MANIFEST, Recording, join};
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
/// If something is at `place` already, or if a part cannot be read; nothing is left behind then.
pub fn pack(recording: &Recording, place: &Path) -> Result<u64, Error> {
    let io = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => Error::Taken(place.to_owned()),
        _ => Error::Io { path: place.to_owned(), source },
    };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(place).map_err(io)?;
    let written = write(recording, file).and_then(|(file, count)| {
        file.sync_all().map_err(io)?;
        Ok(count)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(place);
    }
    written
}

fn write(recording: &Recording, file: File) -> Result<(File, u64), Error> {
    // What `join` does to one recording: every part gets a place below its machine's directory.
    let joined =
        if recording.root.as_os_str().is_empty() { Some(join(std::slice::from_ref(recording), &[])?) } else { None };
    let (parts, manifest) = match &joined {
        Some(joined) => (joined.from.iter().zip(&joined.recording.parts).collect(), &joined.recording),
        None => (Vec::new(), recording),
    };
    let place = || Path::new(MANIFEST).to_owned();
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    };
    let mut tar = tar::Builder::new(zstd::Encoder::new(file, LEVEL).map_err(io(&place()))?);
    let text = manifest.manifest_text()?;
    append(&mut tar, &place(), text.len() as u64, text.as_slice()).map_err(io(&place()))?;
    let mut count = 1;
    if joined.is_some() {
        for (from, part) in parts {
            count += carry(&mut tar, from, &part.path)?;
        }
    } else {
        for part in &recording.parts {
            count += carry(&mut tar, &recording.root.join(&part.path), &part.path)?;
        }
    }
    let file = tar.into_inner().and_then(zstd::Encoder::finish).map_err(io(&place()))?;
    Ok((file, count))
}

/// Adds a file, or a directory with all regular files in it, in the order of their names.
fn carry<W: Write>(tar: &mut tar::Builder<W>, from: &Path, to: &Path) -> Result<u64, Error> {
    let io = |source| Error::Io { path: from.to_owned(), source };
    let kind = std::fs::symlink_metadata(from).map_err(io)?.file_type();
    if kind.is_file() {
        let file = File::open(from).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        append(tar, to, length, file).map_err(io)?;
        return Ok(1);
    }
    let mut count = 0;
    if kind.is_dir() {
        let mut names: Vec<_> = std::fs::read_dir(from).map_err(io)?.flatten().map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        for name in names {
            count += carry(tar, &from.join(&name), &to.join(&name))?;
        }
    }
    Ok(count)
}

/// Adds `length` bytes; a file that has become shorter meanwhile is filled up, as the header has promised.
fn append<W: Write>(tar: &mut tar::Builder<W>, path: &Path, length: u64, bytes: impl Read) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(length);
    header.set_mode(0o600);
    header.set_mtime(0);
    tar.append_data(&mut header, path, bytes.take(length).chain(io::repeat(0)).take(length))
}
