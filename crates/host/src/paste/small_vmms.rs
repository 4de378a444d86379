//! What VMs of cloud-hypervisor and Firecracker are given: no question knows their threads, so their values stand as they are.
//!
//! ```text
//! cloud-hypervisor --cpus boot=4,max=8 --memory size=4096M,hugepages=on --disk path=focal.raw
//! "machine-config": {"vcpu_count": 2, "mem_size_mib": 1024}
//! ```
//! Sources: docs/memory.md and docs/cpu.md, Cloud Hypervisor 40; docs/getting-started.md, Firecracker 1.7.

use super::{Pasted, Text};

/// A command line of cloud-hypervisor. Whoever talks about it goes on with other words than options.
pub(super) fn command(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some((_, options)) = text.at(at).split_once("cloud-hypervisor --") else { return 0 };
    let words: Vec<&str> = options.split_whitespace().collect();
    let told = words.windows(2).map(|pair| (pair[0].trim_start_matches('-'), pair[1]));
    let told: Vec<_> = told.filter(|(name, _)| ["cpus", "memory", "disk", "net"].contains(name)).collect();
    told.iter().for_each(|(name, value)| pasted.quote(name, "VM of cloud-hypervisor", value, text.place(at)));
    usize::from(!told.is_empty())
}

/// A line of the size of Firecracker's VM, as its API and its file call it.
pub(super) fn firecracker(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let mut taken = 0;
    for (key, what) in [("\"vcpu_count\":", "vCPUs"), ("\"mem_size_mib\":", "memory, MiB")] {
        let value = text.at(at).split_once(key).and_then(|(_, behind)| behind.split([',', '}']).next());
        if let Some(value) = value.map(str::trim).filter(|value| value.parse::<u32>().is_ok()) {
            pasted.quote(what, "VM of Firecracker", value, text.place(at));
            taken = 1;
        }
    }
    taken
}
