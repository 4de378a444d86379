//! Which format is this? Decided by the first bytes, never by the name.

use crate::{Error, Trace};
use std::path::Path;

/// Opens a trace file, or a directory that holds a CTF trace.
///
/// # Errors
/// If nothing at `path` is a format we read, or its description of events is damaged.
pub fn open(path: &Path) -> Result<Box<dyn Trace>, Error> {
    let _ = path;
    Err(Error::UnknownFormat { file: path.to_owned(), found: String::new() })
}
