//! Which directories below a path are CTF traces, and which files of theirs are streams?
//!
//! Layout: CTF2-FS-1.0 section 3 and LTTng's habits: a trace is a directory with `metadata` and a file per stream;
//! `kernel/`, `ust/uid/...` and rotated chunks nest such directories; what lies in deeper directories (`index/`) and
//! hidden files are not streams.

use super::metadata::is_metadata;
use crate::Error;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Deepest nesting that is searched; LTTng's deepest is 6 (`session/archives/chunk/ust/uid/1000/64-bit`).
const DEEPEST: usize = 12;
/// Most directories that are searched; a session of 64 CPUs rotated hourly for a year has fewer.
const MOST_DIRECTORIES: usize = 20_000;
/// Bytes of a metadata file that decide.
const DECIDING: u64 = 256;

/// The trace directories at or below `path`, sorted; the file `metadata` stands for its directory.
pub(super) fn traces(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if path.is_file() {
        if starts_as_metadata(path) {
            found.push(path.parent().unwrap_or(Path::new("")).to_owned());
        }
        return found;
    }
    let mut budget = MOST_DIRECTORIES;
    search(path, DEEPEST, &mut budget, &mut found);
    found.sort();
    found
}

fn search(directory: &Path, depth: usize, budget: &mut usize, found: &mut Vec<PathBuf>) {
    let Some(left) = budget.checked_sub(1) else { return };
    *budget = left;
    if starts_as_metadata(&directory.join("metadata")) {
        found.push(directory.to_owned());
    }
    let Some(deeper) = depth.checked_sub(1) else { return };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        // A link could lead back up.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            search(&entry.path(), deeper, budget, found);
        }
    }
}

fn starts_as_metadata(file: &Path) -> bool {
    let mut start = Vec::new();
    let read = base::files::open(file).and_then(|file| file.take(DECIDING).read_to_end(&mut start));
    read.is_ok() && is_metadata(&start)
}

/// What lies where the streams of a trace directory do, sorted by name: whoever opens it finds out whether it is a file.
///
/// # Errors
/// If the directory cannot be read.
pub(super) fn streams(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    // The directory of a bare `metadata` is the present one.
    let readable = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let entries = fs::read_dir(readable).map_err(|source| Error::Io { file: directory.to_owned(), source })?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            name != "metadata" && !name.as_encoded_bytes().starts_with(b".") && !entry.path().is_dir()
        })
        .map(|entry| directory.join(entry.file_name()))
        .collect();
    files.sort();
    Ok(files)
}
