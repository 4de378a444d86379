//! What can go wrong on a live host, as sentences that say what to do next.

use std::io;
use std::path::PathBuf;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something was asked for by a name that this host does not have. The sentence says which there are.
    #[error("{0}")]
    NoSuch(String),
    /// The host lacks something, or forbids it. The sentence says what brings it.
    #[error("{0}")]
    Unable(String),
}

impl Error {
    /// The error of `source` at `path`.
    pub fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Error::Io { path: path.into(), source }
    }
}
