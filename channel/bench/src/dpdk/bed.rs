//! What DPDK's programs have of this machine: memory for packets, a directory for sockets, CPUs beside those that poll.
//!
//! ```text
//! kvmscope bench    Prepared: journal, pages, directory ----------------------------------> back: processes ended, all put back
//! its launches               `- Bed, in the plan --> programs of DPDK, each noted in the directory
//! ```
//! The process that waits for launches makes it, since that one takes back what is made when a signal comes: launches just end.

use base::CpuSet;
use lab::Error;
use lab::journal::{Entry, Journal, Owner, Step};
use lab::setting::{Host, thread};
use labs::packet_memory::Memory;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The command, as the journal has it.
const COMMAND: &str = "channel";
/// What each of two programs takes of huge pages: 16,384 buffers of 2,304 bytes, and its rings.
pub(super) const PROGRAM_MIB: u64 = 64;
/// What it takes of ordinary memory, in which not all sizes of pages are there.
pub(super) const ORDINARY_MIB: u64 = 256;
/// What names of files begin with that tell of a process.
const PROCESS: &str = "process-";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bed {
    pub directory: PathBuf,
    pub memory: Memory,
    /// CPUs on which nothing polls; there may be none.
    pub spare: Vec<u32>,
}

impl Bed {
    /// Notes a process that is to end with the bench.
    pub(super) fn note(&self, pid: u32) -> Result<(), Error> {
        let owner = Owner::of(Path::new("/proc"), pid)?;
        let path = self.directory.join(format!("{PROCESS}{pid}"));
        let text = serde_json::to_vec(&owner).map_err(|error| Error::Malformed(error.to_string()))?;
        std::fs::write(&path, text).map_err(|error| Error::io(path, error))
    }

    /// Processes that were noted, the oldest first.
    fn noted(&self) -> Vec<Owner> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let notes = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PROCESS));
        let read = |entry: std::fs::DirEntry| serde_json::from_slice(&std::fs::read(entry.path()).ok()?).ok();
        let mut noted: Vec<Owner> = notes.filter_map(read).collect();
        noted.sort_by_key(|owner| owner.start_ticks);
        noted
    }

    pub(super) fn with_spare(&self, cpus: &[u32]) -> CpuSet {
        cpus.iter().chain(&self.spare).copied().collect()
    }

    /// Options of DPDK's environment for a program that takes so much of huge pages.
    pub(super) fn options(&self, mib: u64) -> Vec<String> {
        self.memory.options(mib, ORDINARY_MIB)
    }
}

/// A bed that was made; it has to be given [`Prepared::back`].
#[derive(Debug)]
pub struct Prepared {
    bed: Bed,
    entry: Entry,
    proc: PathBuf,
}

impl Prepared {
    /// Makes it, for programs that poll on `cpus`: with huge pages where the kernel gives them.
    ///
    /// # Errors
    /// If this process may not, or the journal or the directory cannot be written: the sentence says what to do.
    pub fn begin(journal: &Journal, cpus: (u32, u32)) -> Result<Self, Error> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::Denied(
                "DPDK's programs get their memory and their sockets from root: use sudo".to_owned(),
            ));
        }
        let own = thread::affinity(thread::own())?;
        let spare = own.iter().filter(|cpu| ![cpus.0, cpus.1].contains(cpu)).collect();
        journal.clear(COMMAND)?;
        let mut entry = journal.begin(COMMAND)?;
        let begun = Self::within(&mut entry, spare);
        match begun {
            Ok(bed) => Ok(Self { bed, entry, proc: journal.proc().to_owned() }),
            Err(error) => entry.put_back_after(Err(error), journal.proc()),
        }
    }

    fn within(entry: &mut Entry, spare: Vec<u32>) -> Result<Bed, Error> {
        let memory = match Memory::HugePages.reserve(2 * PROGRAM_MIB, entry) {
            Ok(()) => Memory::HugePages,
            Err(Error::Absent(_)) => Memory::Ordinary,
            Err(error) => return Err(error),
        };
        let directory = Path::new("/run").join(format!("kvmscope-{}", entry.id));
        entry.intend(Step::RunDirectory { path: directory.clone() })?;
        std::fs::create_dir(&directory).map_err(|error| Error::io(&directory, error))?;
        Ok(Bed { directory, memory, spare })
    }

    pub fn bed(&self) -> &Bed {
        &self.bed
    }

    /// Ends what still runs of it, and puts all of it back.
    ///
    /// # Errors
    /// If something stays; the sentence says what.
    pub fn back(self) -> Result<(), Error> {
        let host = Host { proc: self.proc.clone(), ..Host::at(Path::new("/")) };
        // A launch comes before the programs that it has started: it starts no more then.
        for owner in self.bed.noted() {
            Step::Process(owner).revert(&host);
        }
        self.entry.put_back(&self.proc)
    }
}
