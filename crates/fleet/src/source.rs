//! A recording as somebody named it: a directory, a bare trace, or packed.

use crate::Error;
use base::recording::Recording;
use std::path::Path;

/// An opened recording; a packed one is unpacked for as long as this lives.
pub struct Source {
    pub recording: Recording,
    _unpacked: Option<archive::Unpacked>,
}

/// Opens what lies at `path`.
///
/// # Errors
/// If nothing is there, or no recording.
pub fn opened(path: &Path) -> Result<Source, Error> {
    if path.is_file() && archive::format_of(path).is_some() {
        let private = archive::private().map_err(|source| Error::Io { path: std::env::temp_dir(), source })?;
        let unpacked = archive::unpack(path, archive::Links::Never, private)?;
        return Ok(Source { recording: unpacked.recording()?, _unpacked: Some(unpacked) });
    }
    Ok(Source { recording: Recording::open(path)?, _unpacked: None })
}
