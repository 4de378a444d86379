//! How do many recordings become one data set, and one answer?
//!
//! ```text
//! recording --added--> Added: files in memory --write--> DIR/<section>.<table>/host=<HOST>/recording=<ID>/part.parquet
//!                                                        DIR/_kvmscope.json
//! files of a recording --of_files--> analysis::fleet::Fleet --merge--> Fleet of all --answer--> Section
//! ```
//! Nothing here knows where files are stored: Python's workers put the same bytes into any store, and merge parts with the same code.
//! [`Local`] is a data set in a directory. A recording's row in `fleet.recordings` is written last: without it the recording is not there.

mod added;
mod answer;
mod digest;
mod layout;
mod local;
mod source;

pub use added::{Added, added, failure, identity, read};
pub use answer::answer;
pub use layout::{
    MANIFEST, SCHEMA, decoded, encoded, failure_path, is_url, manifest, path, recordings_path, stored_paths,
};
pub use local::{Local, Outcome};
pub use source::{Source, opened};

use std::path::PathBuf;

/// Why a recording was not added, or a data set not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refuses.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Recording(#[from] base::recording::Error),
    /// A packed recording cannot be unpacked.
    #[error(transparent)]
    Archive(#[from] archive::Error),
    /// The recording cannot be analysed.
    #[error(transparent)]
    Analysis(#[from] analysis::Error),
    /// The recording has nothing that a question could use.
    #[error("{0} has no data for any question")]
    Nothing(String),
    /// A table cannot be written or read.
    #[error(transparent)]
    Columns(#[from] columnar::Error),
    /// A file of a data set cannot be read.
    #[error("{path}: {source}")]
    Part { path: String, source: columnar::Error },
    #[error(transparent)]
    Unread(#[from] analysis::fleet::Unread),
    /// A directory is no data set of ours.
    #[error("{0}")]
    NoDataset(String),
}
