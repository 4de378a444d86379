//! What can go wrong on a live host: a cause that a caller can match, and a sentence that says what to do next.

use base::recording;
use std::fmt::Display;
use std::io;
use std::path::PathBuf;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The disk is full.
    #[error(
        "{}: no space left on the disk; what was recorded so far stays readable. Free some space, record for a \
         shorter time (--seconds), or to another disk (-o)",
        .path.display()
    )]
    NoSpace {
        /// The file that was being written.
        path: PathBuf,
    },
    /// The user named something that this host does not have, or asked for what cannot be. The sentence says what can.
    #[error("{0}")]
    WrongUse(String),
    /// A program is not installed.
    #[error("{program} is not installed; it is in the Debian package {package}")]
    Missing {
        /// Its name, or its path.
        program: String,
        package: String,
    },
    /// A program ended with an error.
    #[error("{program} failed ({status}): {said}")]
    Failed {
        /// Its name, or its path.
        program: String,
        status: String,
        /// Its last words.
        said: String,
    },
    /// The kernel, KVM, libvirt or a switch refused, or took something else than it was given.
    #[error("{what}: {said}")]
    Refused { what: String, said: String },
    /// Not permitted: it needs root, it is not to be trusted, or this program does not do it.
    #[error("{0}")]
    Denied(String),
    /// Something else uses it. The sentence says what.
    #[error("{0}")]
    Busy(String),
    /// The host lacks it, or does not offer it.
    #[error("{0}")]
    Absent(String),
    /// The host is no longer as it was when the change was proposed.
    #[error("{0}")]
    OutOfDate(String),
    /// A text or a number is not what it must be: in a file, in a proposal, in what a program printed.
    #[error("{0}")]
    Malformed(String),
    /// A guest, an emulated machine or a thread of ours ended before it was done.
    #[error("{0}")]
    Died(String),
    /// Something was not done in its time.
    #[error("{0}")]
    TimedOut(String),
    /// A change was made and could not be undone. The sentence says how to try again.
    #[error("{0}")]
    LeftBehind(String),
    /// The user ended it.
    #[error("stopped")]
    Stopped,
    /// The recording could not be written.
    #[error(transparent)]
    Recording(#[from] recording::Error),
    /// The results of a bench, or what a datapath carried, could not be written.
    #[error(transparent)]
    Bench(#[from] base::bench::Error),
    /// What was recorded could not be read back.
    #[error(transparent)]
    Trace(#[from] trace::Error),
    /// The host's files could not be read.
    #[error(transparent)]
    Host(#[from] host::Error),
}

impl Error {
    /// The error of `source` at `path`.
    pub fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Error::Io { path: path.into(), source }
    }

    /// `said` is the answer to `what`.
    pub fn refused(what: impl Display, said: impl Display) -> Self {
        Error::Refused { what: what.to_string(), said: said.to_string() }
    }

    /// A program did not start, because of `error`.
    pub fn not_started(program: impl Display, package: &str, error: &io::Error) -> Self {
        let program = program.to_string();
        match error.kind() {
            io::ErrorKind::NotFound => Error::Missing { program, package: package.to_owned() },
            _ => Error::refused(format_args!("{program} could not be run"), error),
        }
    }

    /// True if a program failed and said so.
    pub(crate) fn is_failure_saying(&self, words: &str) -> bool {
        matches!(self, Error::Failed { said, .. } if said.contains(words))
    }
}
