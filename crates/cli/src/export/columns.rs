//! Parquet and Arrow, which only the full build has: the slim one answers soon after a checkout.

use base::Section;
use process::exit::WrongUse;
use std::path::Path;

/// A file of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Parquet,
    /// Arrow's IPC file format.
    Arrow,
}

/// Refuses, where this build has no columns.
pub(super) fn check() -> Result<(), WrongUse> {
    if cfg!(feature = "full") {
        return Ok(());
    }
    let sentence = "this is the slim build, without Parquet and Arrow; `make full` builds the full one";
    Err(WrongUse(sentence.to_owned()))
}

/// Writes every table into `directory`, each row with the name of its `recording` if there is one.
#[cfg(feature = "full")]
pub(super) fn write(
    sections: &[Section],
    recording: Option<&str>,
    emulated: Option<&str>,
    directory: &Path,
    format: Format,
) -> anyhow::Result<()> {
    let format = match format {
        Format::Parquet => columnar::Format::Parquet,
        Format::Arrow => columnar::Format::Arrow,
    };
    Ok(columnar::write(sections, recording, emulated, directory, format)?)
}

#[cfg(not(feature = "full"))]
pub(super) fn write(_: &[Section], _: Option<&str>, _: Option<&str>, _: &Path, _: Format) -> anyhow::Result<()> {
    Ok(check()?)
}
