//! Why a machine could not be read, as sentences.

use std::io;
use std::path::PathBuf;

/// Why a snapshot could not be opened. What is missing inside of one is no error but a fact of its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        source: io::Error,
    },
    /// A directory that is no snapshot.
    #[error("{} has neither `proc` nor `sys`; name their parent directory, or take a snapshot: kvmscope snapshot", .path.display())]
    NoSnapshot { path: PathBuf },
}
