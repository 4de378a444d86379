//! Why an archive could not be made or taken apart, as sentences.

use std::io;
use std::path::PathBuf;

/// Why an archive could not be made or taken apart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The operating system refused to read it, or to write what is in it.
    #[error("{} cannot be unpacked: {source}", .path.display())]
    Refused { path: PathBuf, source: io::Error },
    /// It is compressed or packed, and damaged or no tar.
    #[error("{} is not a complete tar archive: {source}", .path.display())]
    Damaged {
        path: PathBuf,
        /// What the reader met.
        source: io::Error,
    },
    /// It goes beyond a bound.
    #[error("{}: {reason}; it is not opened", .path.display())]
    TooMuch { path: PathBuf, reason: String },
    #[error("{} already exists; name another file with -o", .0.display())]
    Taken(PathBuf),
    #[error("{0}")]
    Recording(#[from] base::recording::Error),
}
