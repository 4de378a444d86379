//! Where changes of this host are written down.

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use lab::journal::{DEFAULT_DIRECTORY, Journal};
use std::ffi::OsString;
use std::path::PathBuf;

/// The journal that all commands share which change something.
#[derive(Args)]
pub(crate) struct JournalPlace {
    /// Journal of changes to this host, written before each change
    #[arg(
        long = "journal",
        help_heading = None::<&'static str>,
        value_name = "DIR",
        default_value = DEFAULT_DIRECTORY,
        env = "KVMSCOPE_JOURNAL",
        value_parser = OsStringValueParser::new().map(place)
    )]
    directory: PathBuf,
}

impl JournalPlace {
    /// The journal there.
    pub(crate) fn journal(&self) -> Journal {
        Journal::new(&self.directory, "/proc")
    }

    /// Its directory, for a child that shares it.
    #[cfg(feature = "full")]
    pub(crate) fn directory(&self) -> &std::path::Path {
        &self.directory
    }
}

/// A variable that is set to nothing is one that is not set, as shells have it.
fn place(text: OsString) -> PathBuf {
    if text.is_empty() { DEFAULT_DIRECTORY.into() } else { text.into() }
}
