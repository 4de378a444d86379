//! Where packets of programs with DPDK lie: huge pages, which are asked for and given back, or ordinary memory.
//!
//! In: how much the programs of a bed take. Out: options of DPDK's environment for them, and pages, noted in the journal before they are
//! asked for. The pages are those of 2 MiB below `/sys` (Documentation/admin-guide/mm/hugetlbpage.rst).

use base::Setting;
use lab::Error;
use lab::journal::{Entry, Step};
use lab::setting::{Altered, Host};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The pages, below `/sys`.
const PAGES: &str = "kernel/mm/hugepages/hugepages-2048kB";
/// Size of each, in MiB.
const PAGE_MIB: u64 = 2;

base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Memory {
        /// In huge pages of 2 MiB.
        HugePages = "huge pages of 2 MiB",
        /// In ordinary pages: for machines that give no huge ones.
        Ordinary = "ordinary pages (--no-huge)",
    }
}

impl Memory {
    /// Options of DPDK's environment for a program that takes `mib` of huge pages, or `ordinary_mib` of others: these are not given in
    /// pages of 2 MiB, and DPDK refuses to grow there.
    pub fn options(self, mib: u64, ordinary_mib: u64) -> Vec<String> {
        match self {
            Memory::HugePages => {
                ["--in-memory", "--single-file-segments", "--socket-mem", &mib.to_string()].map(str::to_owned).to_vec()
            }
            Memory::Ordinary => ["--no-huge", "-m", &ordinary_mib.to_string()].map(str::to_owned).to_vec(),
        }
    }

    /// Asks the kernel for as many pages as are missing of `mib`, noted in `entry` first.
    pub fn reserve(self, mib: u64, entry: &mut Entry) -> Result<(), Error> {
        if self == Memory::Ordinary {
            return Ok(());
        }
        let host = Host::at(Path::new("/"));
        let read = |name: &str| -> Result<u64, Error> {
            let path = Path::new("/sys").join(PAGES).join(name);
            let text = std::fs::read_to_string(&path).map_err(|error| {
                Error::Absent(format!("{}: {error}; this kernel has no huge pages: use --no-huge", path.display()))
            })?;
            text.trim().parse().map_err(|_| Error::Malformed(format!("{}: `{}`", path.display(), text.trim())))
        };
        let needed = mib.div_ceil(PAGE_MIB);
        let (all, free) = (read("nr_hugepages")?, read("free_hugepages")?);
        let Some(missing) = needed.checked_sub(free).filter(|missing| *missing > 0) else { return Ok(()) };
        let (old, new) = (all.to_string(), (all + missing).to_string());
        let setting = Setting::SysfsWrite { path: format!("{PAGES}/nr_hugepages") };
        let altered = Altered { setting, old, new, was_unset: false };
        entry.intend(Step::Setting(altered.clone()))?;
        altered.make(&host).map_err(|error| {
            // Some may have been given: who works without them leaves none behind, and what cannot be taken back stays noted.
            let _ = Altered { old: altered.new.clone(), new: altered.old.clone(), ..altered.clone() }.make(&host);
            Error::Absent(format!(
                "the kernel does not give {missing} more huge pages of 2 MiB ({error}); free memory, for example by \
                 `echo 3 >/proc/sys/vm/drop_caches; echo 1 >/proc/sys/vm/compact_memory`, or use --no-huge"
            ))
        })
    }
}
