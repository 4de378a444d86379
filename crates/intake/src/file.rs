//! A file that is no archive: a trace, a result, or a text with several of them.

use crate::recordings::{open, parted, runs};
use base::recording::result_file::LOOKED_AT;
use base::recording::{Part, PartKind, Recording};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Why a file is not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Recording(#[from] base::recording::Error),
    #[error("{}: {source}", name.display())]
    Io {
        name: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    #[error("{} {}; it begins with {first:?}", name.display(), nothing_known())]
    NothingKnown { name: PathBuf, first: String },
}

/// What is said of a text in which nothing is known: what is read instead.
pub fn nothing_known() -> String {
    format!(
        "has nothing that is read: no line of a trace (trace-cmd, ftrace, perf script), of a latency test (cyclictest, oslat, rtla, \
         hwlatdetect, jitterdebugger), of a migration (info migrate, query-migrate, virsh domjobinfo), of a switch (ovs-appctl \
         dpif-netdev/pmd-*-show, testpmd), or of {}",
        host::paste::RECOGNIZED
    )
}

/// What a file was found to be, before anything of it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// One recording as it lies there.
    Whole,
    /// So many runs.
    Runs(usize),
    Nothing,
}

/// What [`of_file`] will make of a file.
///
/// # Errors
/// If the operating system refuses to read it.
pub fn known(path: &Path) -> io::Result<Known> {
    if let Some(split) = parted(path)? {
        return Ok(Known::Runs(runs(&split.pieces).len()));
    }
    let is_other = || Recording::open(path).is_ok_and(|bare| bare.parts.iter().all(|part| part.kind != PartKind::Text));
    Ok(if trace::looks_like_trace(path) || is_other() { Known::Whole } else { Known::Nothing })
}

/// Opens the file at `path`, which the user calls `name`: one recording for each run that is in it. Its pieces go to the private
/// directory that `scratch` makes when it is needed, which has to stay as long as they are read.
///
/// # Errors
/// If it is not there, or is a text in which nothing is known.
pub fn of_file(
    path: &Path,
    name: &Path,
    scratch: impl FnOnce() -> io::Result<PathBuf>,
) -> Result<Vec<Recording>, Error> {
    // What is not there, or is none, has its own words.
    let whole = Recording::open(path)?;
    let refused = |source| Error::Io { name: name.to_owned(), source };
    if let Some(split) = parted(path).map_err(refused)? {
        let scratch = scratch().map_err(refused)?;
        return Ok(open(split, path, name, &scratch).map_err(refused)?.recordings);
    }
    if let [Part { kind: PartKind::Text, .. }] = whole.parts.as_slice()
        && let Some(first) = unknown_text(path)
    {
        return Err(Error::NothingKnown { name: name.to_owned(), first });
    }
    Ok(vec![whole])
}

/// The first line of a text of which no reader has anything to say.
fn unknown_text(path: &Path) -> Option<String> {
    if trace::looks_like_trace(path) {
        return None;
    }
    let mut first = Vec::new();
    base::files::open(path).ok()?.take(LOOKED_AT).read_to_end(&mut first).ok()?;
    match trace::text::why_not(&first) {
        Some(_) => None,
        None => base::plain::first_line(&first).map(str::to_owned),
    }
}
