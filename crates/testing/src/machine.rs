//! The machine for one test at a time.
//!
//! A lock on a file holds across threads and processes alike, so that tests exclude each other under `cargo test` as well as where
//! several test programs run beside each other. The kernel gives it back when its holder ends, however that happens.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::Path;
use tempfile::TempDir;

/// Other tests that want the machine wait until this is dropped.
#[must_use]
pub struct Machine {
    /// The lock goes with the open file.
    _file: File,
}

/// Waits until no other test has the machine.
///
/// # Panics
/// Where the directory for temporary files cannot be written.
pub fn machine() -> Machine {
    let path = std::env::temp_dir().join("kvmscope-tests.lock");
    let file = File::options().create(true).append(true).open(&path);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Ok(()) => return Machine { _file: file },
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

/// The machine, and an empty directory that goes with it.
pub struct Workspace {
    directory: TempDir,
    /// The last to go.
    _machine: Machine,
}

impl Workspace {
    /// Waits for the machine.
    ///
    /// # Panics
    /// Where no directory can be made.
    #[must_use]
    pub fn alone() -> Self {
        let machine = machine();
        Self { directory: tempfile::tempdir().expect("a directory for temporary files"), _machine: machine }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}
