//! A bench at work, and how it is taken down.

use super::guest::Guest;
use super::inside::WorkerThreads;
use super::load::Load;
use lab::Error;
use lab::journal::Entry;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Testbed {
    entry: Entry,
    workers: WorkerThreads,
    /// What goes from client to server.
    pub load: Load,
    /// Ids of the forwarder's threads.
    pub forwarders: Vec<u32>,
    /// Ids of the busy threads.
    pub busy: Vec<u32>,
    guest: Option<Guest>,
    proc: PathBuf,
}

pub(super) struct Built {
    pub load: Load,
    pub forwarders: Vec<u32>,
    pub busy: Vec<u32>,
    pub guest: Option<Guest>,
}

impl Testbed {
    /// A bench as `build` makes it, which notes in the entry what has to be removed; if it fails, what there is by then is
    /// removed.
    pub(super) fn start(
        mut entry: Entry,
        proc: &Path,
        build: impl FnOnce(&mut Entry, &mut WorkerThreads) -> Result<Built, Error>,
    ) -> Result<Self, Error> {
        let mut workers = WorkerThreads::new();
        match build(&mut entry, &mut workers) {
            Ok(Built { load, forwarders, busy, guest }) => {
                Ok(Self { entry, workers, load, forwarders, busy, guest, proc: proc.to_owned() })
            }
            Err(error) => {
                workers.end();
                entry.put_back_after(Err(error), proc)
            }
        }
    }

    /// Why a thread of the bench could not go on, if one could not.
    pub fn trouble(&self) -> Option<String> {
        self.workers.trouble()
    }

    /// Ends the load and puts everything back.
    ///
    /// # Errors
    /// If something stays as the bench made it, or the journal cannot be written.
    pub fn end(self) -> Result<(), Error> {
        self.workers.end();
        drop((self.load, self.guest));
        self.entry.put_back(&self.proc)
    }
}
