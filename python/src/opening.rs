//! What a path names becomes an opened recording: a directory, a bare trace, or an archive, which is unpacked first.

use crate::error::Failure;
use analysis::Input;
use archive::{Links, Unpacked};
use base::recording::{Error, Recording, Shown};
use std::path::Path;
use std::sync::Arc;

/// An opened recording, with the place where its files lie as long as it is open if they came in one file.
pub(crate) struct Opened {
    /// Its traces and snapshots.
    pub input: Arc<Input>,
    _unpacked: Option<Unpacked>,
}

/// Opens what `path` names.
///
/// # Errors
/// If it is no recording, or nothing of it can be opened.
pub(crate) fn opened(path: &Path) -> Result<Opened, Failure> {
    let (recording, unpacked) = found(path)?;
    let input = Arc::new(analysis::open(recording)?);
    Ok(Opened { input, _unpacked: unpacked })
}

/// The recording that `path` names, and its files where they were packed.
///
/// # Errors
/// If it is none.
pub(crate) fn found(path: &Path) -> Result<(Recording, Option<Unpacked>), Failure> {
    if archive::format_of(path).is_some() {
        let unpacked = archive::private()
            .map_err(|source| archive::Error::Io { path: std::env::temp_dir(), source })
            .and_then(|directory| archive::unpack(path, Links::Never, directory))
            .map_err(Failure::no_answer)?;
        // Where it was unpacked means nothing to anybody.
        let named = |error: archive::Error| Failure::no_answer(Shown::rename(&[unpacked.shown()], &error.to_string()));
        let recording = unpacked.recording().map_err(named)?;
        return Ok((recording, Some(unpacked)));
    }
    match Recording::open(path) {
        Err(Error::Empty { path }) if !host::snapshot::trees_in(&path).is_empty() => {
            let path = path.display();
            Err(Failure::NoAnswer(format!(
                "{path} has files of a host but no trace; to check that host's setup: kvmscope check --root {path}"
            )))
        }
        opened => opened.map(|recording| (recording, None)).map_err(Failure::no_answer),
    }
}
