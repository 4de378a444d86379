//! What makes a recording the same recording: its files, whatever they are called from outside.

use crate::Error;
use base::recording::{Emulator, Recording};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of a digest that name a recording: 64 bits, for two of a million recordings to have one name in 1 of 37 million data sets.
const SHORT: usize = 16;

/// The digest of a recording: of what it says of its machines and of every byte of its parts, in the order of their names.
pub(crate) fn digest(recording: &Recording) -> Result<String, Error> {
    let mut hash = Sha256::new();
    let mut line = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    line("kvmscope-recording");
    line(recording.created.as_deref().unwrap_or_default());
    line(recording.emulated.map(Emulator::name).unwrap_or_default());
    for machine in &recording.machines {
        line(&format!("{} {} {:?} {:?}", machine.id, machine.level, machine.parent, machine.name));
    }
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for part in &recording.parts {
        let place = recording.root.join(&part.path);
        // Of a bare file the directory that it lies in is none of its own.
        let named = if recording.root.as_os_str().is_empty() {
            part.path.file_name().map(Path::new)
        } else {
            Some(part.path.as_path())
        };
        let name = format!("{} {}", part.machine, named.unwrap_or(&part.path).display());
        below(&place, name, &mut files)?;
    }
    files.sort();
    files.dedup();
    for (name, place) in files {
        let io = |source| Error::Io { path: place.clone(), source };
        let mut file = base::files::open(&place).map_err(io)?;
        base::files::check_sparse(&file).map_err(io)?;
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(&name);
        let mut of_file = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer).map_err(io)? {
                0 => break,
                read => of_file.update(&buffer[..read]),
            }
        }
        hash.update(of_file.finalize());
    }
    Ok(digits(&hash.finalize()))
}

/// The start of a digest, as folders are called.
pub(crate) fn id(digest: &str) -> String {
    digest.chars().take(SHORT).collect()
}

/// The start of the digest of some bytes.
pub(crate) fn short(bytes: &[u8]) -> String {
    id(&digits(&Sha256::digest(bytes)))
}

fn digits(hash: &[u8]) -> String {
    base::table::hexadecimal(hash)
}

/// The files of a part, which is one, or a directory. A part that is not there has none: the manifest lists it all the same.
fn below(place: &Path, name: String, files: &mut Vec<(String, PathBuf)>) -> Result<(), Error> {
    let Ok(about) = std::fs::symlink_metadata(place) else { return Ok(()) };
    if about.is_file() {
        files.push((name, place.to_owned()));
    } else if about.is_dir() {
        let io = |source| Error::Io { path: place.to_owned(), source };
        for entry in std::fs::read_dir(place).map_err(io)? {
            let entry = entry.map_err(io)?;
            below(&entry.path(), format!("{name}/{}", entry.file_name().to_string_lossy()), files)?;
        }
    }
    Ok(())
}
