//! Where changes of this host are written down.

use clap::Args;
use lab::journal::{DEFAULT_DIRECTORY, Journal};
use std::path::PathBuf;

/// The journal that all commands share which change something.
#[derive(Args)]
pub struct JournalPlace {
    /// Where changes of this host are noted before they are made
    #[arg(long = "journal", value_name = "DIR", default_value = DEFAULT_DIRECTORY, env = "KVMSCOPE_JOURNAL")]
    directory: PathBuf,
}

impl JournalPlace {
    /// The journal there.
    pub fn journal(&self) -> Journal {
        Journal::new(&self.directory, "/proc")
    }
}
