//! Why a trace could not be opened. Damage inside a trace is no error: it is counted in `Problems`.

use std::path::PathBuf;

/// Why a trace could not be opened, as a sentence with the file and the place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The refusal.
        source: std::io::Error,
    },
    /// Not one of our formats.
    #[error("{}: not a format that kvmscope reads (trace.dat, CTF, perf.data, trace-cmd or perf text); {found}", file.display())]
    UnknownFormat {
        /// The file.
        file: PathBuf,
        /// What it looks like instead, with its first bytes.
        found: String,
    },
    /// One of our formats, but of a kind that holds no events to analyse.
    #[error("{}: {reason}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// What it is, and what to do instead.
        reason: String,
    },
    /// The description of the events is damaged, so nothing after it can be understood.
    #[error("{}: at byte {offset:#x}: expected {expected}, found {found}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where.
        offset: u64,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
}
