//! CPUs, nodes and how busy each CPU was: Documentation/ABI/stable/sysfs-devices-system-cpu and filesystems/proc.rst.

use super::Samples;
use crate::machine::{Cpu, CpuUse, Node, Topology, booted_cpus};
use crate::{Snapshot, usage};
use base::CpuSet;
use std::collections::{BTreeMap, BTreeSet};

const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";

fn numbered(snapshot: &Snapshot, directory: &str, prefix: &str) -> Vec<u32> {
    let numbers = snapshot.names(directory).into_iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok());
    numbers.filter(|number| *number < base::cpus::MOST_CPUS).collect()
}

fn set(snapshot: &Snapshot, path: &str) -> Option<CpuSet> {
    CpuSet::parse(&snapshot.line(path)?)
}

/// A set by its list, else by its mask: trees that some tools copied have masks alone.
fn list_or_mask(snapshot: &Snapshot, list: &str, mask: &str) -> Option<CpuSet> {
    set(snapshot, list).or_else(|| CpuSet::parse_mask(&snapshot.line(mask)?))
}

/// A set of CPUs on the kernel's command line; must-gathers have the line in a file of their own.
fn booted(snapshot: &Snapshot, option: &str) -> Option<CpuSet> {
    booted_cpus(&["proc/cmdline", "proc_cmdline"].iter().find_map(|path| snapshot.line(path))?, option)
}

/// A set that a CPU belongs to, by its list, else by its mask: one without the CPU is not its own.
fn own(snapshot: &Snapshot, cpu: u32, list: &str, mask: &str) -> Option<CpuSet> {
    let is_own = |set: &CpuSet| set.contains(cpu);
    set(snapshot, list).filter(is_own).or_else(|| CpuSet::parse_mask(&snapshot.line(mask)?).filter(is_own))
}

impl Topology {
    /// Which CPU is of which core, cache, package and node.
    pub fn of_snapshot(snapshot: &Snapshot) -> Self {
        let nodes = nodes_of_cpus(snapshot);
        let mut topology = Topology { place: format!("{CPUS}/cpu*/topology"), ..Topology::default() };
        let (mut cores, mut packages): (BTreeMap<u32, u32>, _) = (BTreeMap::new(), Packages::default());
        let numbers = numbered(snapshot, CPUS, "cpu");
        for cpu in numbers.iter().copied() {
            let of = |file: &str| format!("{CPUS}/cpu{cpu}/topology/{file}");
            // Linux 5.4 renamed the files; trees hold the ones or the others.
            let either = |[old, new]: [&str; 2]| {
                let one = |name: &str| own(snapshot, cpu, &of(&format!("{name}_list")), &of(name));
                one(old).or_else(|| one(new))
            };
            let Some(siblings) = either(["thread_siblings", "core_cpus"]) else { continue }; // an offline CPU has none
            let lowest = siblings.first().unwrap_or(cpu);
            let next = cores.len() as u32;
            let id = snapshot.line(&of("physical_package_id")).and_then(|id| id.parse().ok());
            let about = Cpu {
                core: *cores.entry(lowest).or_insert(next),
                package: packages.number(id, either(["core_siblings", "package_cpus"])),
                node: nodes.get(&cpu).copied().flatten(),
                last_cache: last_cache(snapshot, cpu),
            };
            topology.cpus.insert(cpu, about);
        }
        let online = snapshot.line(&format!("{CPUS}/online"));
        if topology.cpus.is_empty() {
            // Some architectures and old kernels tell which CPUs there are, and not which of them share a core.
            let runs = |cpu: &u32| snapshot.line(&format!("{CPUS}/cpu{cpu}/online")).is_none_or(|state| state != "0");
            let told = match &online {
                Some(list) => CpuSet::parse(list).unwrap_or_default(),
                None => numbers.into_iter().filter(runs).collect(),
            };
            let alone = |cpu: u32| Cpu { core: cpu, node: nodes.get(&cpu).copied().flatten(), ..Cpu::default() };
            topology.cpus = told.iter().map(|cpu| (cpu, alone(cpu))).collect();
            topology.cores_unknown = told.len() > 1;
            topology.place = format!("{CPUS}/online");
        }
        let known: CpuSet = topology.cpus.keys().copied().collect();
        topology.online =
            online.and_then(|list| CpuSet::parse(&list)).map_or_else(|| known.clone(), |online| online.and(&known));
        topology.isolated = set(snapshot, &format!("{CPUS}/isolated")).or_else(|| booted(snapshot, "isolcpus"));
        topology.nohz_full = set(snapshot, &format!("{CPUS}/nohz_full")).or_else(|| booted(snapshot, "nohz_full"));
        topology
    }
}

/// The node of each CPU; one that several nodes claim has none that is known.
fn nodes_of_cpus(snapshot: &Snapshot) -> BTreeMap<u32, Option<u32>> {
    let mut nodes: BTreeMap<u32, Option<u32>> = BTreeMap::new();
    for node in numbered(snapshot, NODES, "node") {
        let of = |file: &str| format!("{NODES}/node{node}/{file}");
        for cpu in list_or_mask(snapshot, &of("cpulist"), &of("cpumap")).unwrap_or_default().iter() {
            nodes.entry(cpu).and_modify(|known| *known = None).or_insert(Some(node));
        }
    }
    nodes
}

/// Packages by the sets of their CPUs, where those were told: `physical_package_id` is -1 on s390 and POWER, and on old
/// kernels not always one number for each.
#[derive(Default)]
struct Packages {
    /// By the lowest CPU of each.
    numbers: BTreeMap<u32, u32>,
    taken: BTreeSet<u32>,
}

impl Packages {
    /// The number of the package that has these CPUs: its id, or the next that is free where that is none of its own.
    fn number(&mut self, id: Option<u32>, cpus: Option<CpuSet>) -> Option<u32> {
        let Some(lowest) = cpus.and_then(|cpus| cpus.first()) else { return id };
        if let Some(number) = self.numbers.get(&lowest) {
            return Some(*number);
        }
        let number = id.filter(|id| !self.taken.contains(id));
        let number = number.or_else(|| (0..base::cpus::MOST_CPUS).find(|number| !self.taken.contains(number)))?;
        self.taken.insert(number);
        self.numbers.insert(lowest, number);
        Some(number)
    }
}

/// The lowest CPU that shares the cache of the highest level; a cache that no CPU shares was not told of.
fn last_cache(snapshot: &Snapshot, cpu: u32) -> Option<u32> {
    let caches = format!("{CPUS}/cpu{cpu}/cache");
    let about = |index: u32| {
        let of = |file: &str| format!("{caches}/index{index}/{file}");
        let cpus = own(snapshot, cpu, &of("shared_cpu_list"), &of("shared_cpu_map"))?;
        Some((snapshot.line(&of("level"))?.parse::<u32>().ok()?, cpus))
    };
    let all = numbered(snapshot, &caches, "index").into_iter().filter_map(about);
    all.max_by_key(|(level, _)| *level)?.1.first()
}

/// Memory, distances and huge pages of nodes.
pub(super) fn nodes(snapshot: &Snapshot) -> BTreeMap<u32, Node> {
    let numbers = numbered(snapshot, NODES, "node");
    let one = |node: &u32| {
        let of = |file: &str| format!("{NODES}/node{node}/{file}");
        let meminfo = snapshot.read(&of("meminfo")).unwrap_or_default();
        let kib = |key: &str| -> Option<u64> {
            let line = meminfo.lines().find(|line| line.contains(key))?;
            line.split_whitespace().rev().nth(1)?.parse::<u64>().ok()?.checked_mul(1 << 10)
        };
        let distances = snapshot.line(&of("distance")).unwrap_or_default();
        let distances = distances.split_whitespace().filter_map(|distance| distance.parse().ok());
        let pages = |name: String| {
            let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
            let count = |file| snapshot.line(&of(&format!("hugepages/{name}/{file}")))?.parse().ok();
            Some((kib, count("nr_hugepages")?, count("free_hugepages")?))
        };
        Node {
            total_bytes: kib("MemTotal:"),
            free_bytes: kib("MemFree:"),
            distances: numbers.iter().copied().zip(distances).collect(),
            huge_pages: snapshot.names(&of("hugepages")).into_iter().filter_map(pages).collect(),
        }
    };
    numbers.iter().map(|node| (*node, one(node))).collect()
}

/// How each CPU was used between two samples.
pub(super) fn usage(samples: &Samples<'_>) -> BTreeMap<u32, CpuUse> {
    samples.both("proc/stat").map(|(first, last, _)| usage::between(&first, &last)).unwrap_or_default()
}
