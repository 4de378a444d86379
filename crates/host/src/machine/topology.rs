//! Which CPUs share a core, a cache, a package, a node.
//!
//! `core_id` of sysfs is unique in its package only, and a sibling is never "number plus half": cores are numbered anew here,
//! by who shares one.

use base::CpuSet;
use std::collections::{BTreeMap, BTreeSet};

/// The CPUs of a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    /// Each CPU that was told of, by its number.
    pub cpus: BTreeMap<u32, Cpu>,
    /// Nobody told which CPUs share a core: the cores' numbers are made up, one for each CPU.
    pub cores_unknown: bool,
    pub online: CpuSet,
    /// CPUs kept from the scheduler's balancing; `None`: not told.
    pub isolated: Option<CpuSet>,
    /// CPUs without a tick; `None`: not told.
    pub nohz_full: Option<CpuSet>,
    pub place: String,
}

/// One CPU of the kernel: a thread of a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpu {
    /// The core, numbered over the whole machine.
    pub core: u32,
    /// The package; `None`: not told.
    pub package: Option<u32>,
    /// The NUMA node; `None`: not told.
    pub node: Option<u32>,
    /// The lowest CPU that shares the last-level cache; `None`: not told.
    pub last_cache: Option<u32>,
}

impl Topology {
    pub fn of_core(&self, core: u32) -> CpuSet {
        self.cpus.iter().filter(|(_, about)| about.core == core).map(|(cpu, _)| *cpu).collect()
    }

    pub fn cores(&self) -> BTreeMap<u32, CpuSet> {
        let mut cores: BTreeMap<u32, CpuSet> = BTreeMap::new();
        self.cpus.iter().for_each(|(cpu, about)| cores.entry(about.core).or_default().insert(*cpu));
        cores
    }

    /// Each node's CPUs, by its number; CPUs whose node nobody told stand nowhere.
    pub fn nodes(&self) -> BTreeMap<u32, CpuSet> {
        let mut nodes: BTreeMap<u32, CpuSet> = BTreeMap::new();
        for (cpu, about) in &self.cpus {
            if let Some(node) = about.node {
                nodes.entry(node).or_default().insert(*cpu);
            }
        }
        nodes
    }

    /// CPUs behind each last-level cache, by the lowest of them; CPUs whose caches nobody told stand nowhere.
    pub fn last_caches(&self) -> BTreeMap<u32, CpuSet> {
        let mut caches: BTreeMap<u32, CpuSet> = BTreeMap::new();
        for (cpu, about) in &self.cpus {
            if let Some(cache) = about.last_cache {
                caches.entry(cache).or_default().insert(*cpu);
            }
        }
        caches
    }

    pub fn package_count(&self) -> usize {
        self.cpus.values().filter_map(|about| about.package).collect::<BTreeSet<u32>>().len()
    }

    /// How many last-level caches were told of.
    pub fn last_cache_count(&self) -> usize {
        self.last_caches().len()
    }

    /// The cores of some CPUs; none where nobody told which CPUs share a core.
    pub fn cores_of(&self, cpus: &CpuSet) -> Vec<u32> {
        if self.cores_unknown {
            return Vec::new();
        }
        let mut cores: Vec<u32> = cpus.iter().filter_map(|cpu| Some(self.cpus.get(&cpu)?.core)).collect();
        cores.sort_unstable();
        cores.dedup();
        cores
    }

    pub fn nodes_of(&self, cpus: &CpuSet) -> Vec<u32> {
        let mut nodes: Vec<u32> = cpus.iter().filter_map(|cpu| self.cpus.get(&cpu)?.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Whether any core has more than one CPU.
    pub fn has_siblings(&self) -> bool {
        self.cores().values().any(|cpus| cpus.len() > 1)
    }
}

/// A set of CPUs on the kernel's command line: `isolcpus=managed_irq,domain,2-7`, flags before the list
/// (Documentation/admin-guide/kernel-parameters.txt, Linux 6.12).
pub(crate) fn booted_cpus(line: &str, option: &str) -> Option<CpuSet> {
    let value = line.split_whitespace().filter_map(|word| word.strip_prefix(option)?.strip_prefix('=')).next_back()?;
    let is_flag = |item: &&str| item.starts_with(|first: char| first.is_ascii_alphabetic());
    CpuSet::parse(&value.split(',').skip_while(is_flag).collect::<Vec<_>>().join(","))
}
