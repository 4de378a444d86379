//! Where packets lie: huge pages, which are asked for and given back, or ordinary memory.

use crate::Error;
use crate::journal::{Entry, Step};
use crate::setting::{Altered, Host};
use base::Setting;
use std::path::Path;

/// The pages that both programs take, below `/sys` (Documentation/admin-guide/mm/hugetlbpage.rst).
const PAGES: &str = "kernel/mm/hugepages/hugepages-2048kB";
/// Size of each, in MiB.
const PAGE_MIB: u64 = 2;
/// What the switch takes: its pool of packets is halved until it fits (`dpdk_mp_create` of lib/netdev-dpdk.c).
const SWITCH_MIB: u64 = 512;
/// What testpmd takes: 40,960 buffers of 2,304 bytes for eight VNFs, and its rings.
const VNFS_MIB: u64 = 256;
/// Ordinary memory is not given in pages of 2 MiB, and DPDK refuses to grow there.
const ORDINARY_MIB: u64 = 1024;
/// The same for the switch: its pool of 262,144 packets does not fit into 1024 MiB, and in ordinary memory it is not halved, because DPDK says
/// ENOBUFS there and the switch tries again after ENOMEM alone (`dpdk_mp_create` of lib/netdev-dpdk.c, Open vSwitch 3.1).
const ORDINARY_OF_SWITCH_MIB: u64 = 2048;

/// Where packets lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// In huge pages of 2 MiB.
    HugePages,
    /// In ordinary pages: for machines that give no huge ones.
    Ordinary,
}

impl Memory {
    /// As the environment of a recording has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Memory::HugePages => "huge pages of 2 MiB",
            Memory::Ordinary => "ordinary pages (--no-huge)",
        }
    }

    /// Options of DPDK's environment for the switch. Its version 3.1 adds `--in-memory` unless told otherwise, which does not
    /// go together with ordinary memory (`construct_dpdk_args` of lib/dpdk.c, `eal_check_common_options` of DPDK 22.11).
    pub(super) fn of_switch(self) -> String {
        match self {
            Memory::HugePages => "--single-file-segments".to_owned(),
            Memory::Ordinary => format!("--no-huge --legacy-mem -m {ORDINARY_OF_SWITCH_MIB}"),
        }
    }

    /// What the switch sets aside at once, in MiB, by node; `None` where its other options say it.
    pub(super) fn of_switch_at_once(self) -> Option<String> {
        (self == Memory::HugePages).then(|| SWITCH_MIB.to_string())
    }

    /// Options of DPDK's environment for testpmd.
    pub(super) fn of_vnfs(self) -> Vec<String> {
        match self {
            Memory::HugePages => {
                let mib = VNFS_MIB.to_string();
                ["--in-memory", "--single-file-segments", "--socket-mem", &mib].map(str::to_owned).to_vec()
            }
            Memory::Ordinary => ["--no-huge", "-m", &ORDINARY_MIB.to_string()].map(str::to_owned).to_vec(),
        }
    }

    /// Asks the kernel for as many pages as are missing, noted in `entry` first.
    pub(super) fn reserve(self, entry: &mut Entry) -> Result<(), Error> {
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
        let needed = (SWITCH_MIB + VNFS_MIB) / PAGE_MIB;
        let (all, free) = (read("nr_hugepages")?, read("free_hugepages")?);
        let Some(missing) = needed.checked_sub(free).filter(|missing| *missing > 0) else { return Ok(()) };
        let (old, new) = (all.to_string(), (all + missing).to_string());
        let setting = Setting::SysfsWrite { path: format!("{PAGES}/nr_hugepages") };
        let altered = Altered { setting, old, new, was_unset: false };
        entry.intend(Step::Setting(altered.clone()))?;
        altered.make(&host).map_err(|error| {
            Error::Absent(format!(
                "the kernel does not give {missing} more huge pages of 2 MiB ({error}); free memory, for example by \
                 `echo 3 >/proc/sys/vm/drop_caches; echo 1 >/proc/sys/vm/compact_memory`, or use --no-huge"
            ))
        })
    }
}
