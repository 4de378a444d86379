//! CPUs, nodes and how busy each CPU was: Documentation/ABI/stable/sysfs-devices-system-cpu and filesystems/proc.rst.

use super::Samples;
use crate::machine::{Cpu, CpuUse, Node, Topology};
use crate::{Snapshot, usage};
use base::CpuSet;
use std::collections::BTreeMap;

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

/// A set of CPUs on the kernel's command line: `isolcpus=managed_irq,domain,2-7`, flags before the list
/// (Documentation/admin-guide/kernel-parameters.txt, Linux 6.12). Must-gathers have the line in a file of their own.
fn booted(snapshot: &Snapshot, option: &str) -> Option<CpuSet> {
    let line = ["proc/cmdline", "proc_cmdline"].iter().find_map(|path| snapshot.line(path))?;
    let value = line.split_whitespace().filter_map(|word| word.strip_prefix(option)?.strip_prefix('=')).next_back()?;
    let is_flag = |item: &&str| item.starts_with(|first: char| first.is_ascii_alphabetic());
    CpuSet::parse(&value.split(',').skip_while(is_flag).collect::<Vec<_>>().join(","))
}

impl Topology {
    /// Which CPU is of which core, cache, package and node.
    pub fn of_snapshot(snapshot: &Snapshot) -> Self {
        let mut nodes: BTreeMap<u32, u32> = BTreeMap::new();
        for node in numbered(snapshot, NODES, "node") {
            let cpus =
                list_or_mask(snapshot, &format!("{NODES}/node{node}/cpulist"), &format!("{NODES}/node{node}/cpumap"));
            let cpus = cpus.unwrap_or_default();
            nodes.extend(cpus.iter().map(|cpu| (cpu, node)));
        }
        let mut topology = Topology { place: format!("{CPUS}/cpu*/topology"), ..Topology::default() };
        let mut cores: BTreeMap<u32, u32> = BTreeMap::new();
        for cpu in numbered(snapshot, CPUS, "cpu") {
            let of = |file: &str| format!("{CPUS}/cpu{cpu}/topology/{file}");
            let of_core =
                |list: &str, mask: &str| list_or_mask(snapshot, &of(list), &of(mask)).filter(|set| !set.is_empty());
            let siblings =
                of_core("thread_siblings_list", "thread_siblings").or_else(|| of_core("core_cpus_list", "core_cpus"));
            let Some(siblings) = siblings else { continue }; // an offline CPU has no topology
            let lowest = siblings.first().unwrap_or(cpu);
            let next = cores.len() as u32;
            let about = Cpu {
                core: *cores.entry(lowest).or_insert(next),
                package: snapshot.line(&of("physical_package_id")).and_then(|id| id.parse().ok()),
                node: nodes.get(&cpu).copied(),
                last_cache: last_cache(snapshot, cpu),
            };
            topology.cpus.insert(cpu, about);
        }
        let known: CpuSet = topology.cpus.keys().copied().collect();
        topology.online =
            set(snapshot, &format!("{CPUS}/online")).map_or_else(|| known.clone(), |online| online.and(&known));
        topology.isolated = set(snapshot, &format!("{CPUS}/isolated")).or_else(|| booted(snapshot, "isolcpus"));
        topology.nohz_full = set(snapshot, &format!("{CPUS}/nohz_full")).or_else(|| booted(snapshot, "nohz_full"));
        topology
    }
}

/// The lowest CPU that shares the cache of the highest level.
fn last_cache(snapshot: &Snapshot, cpu: u32) -> Option<u32> {
    let caches = format!("{CPUS}/cpu{cpu}/cache");
    let of = |index: &u32, file: &str| format!("{caches}/index{index}/{file}");
    let level =
        |index: &u32| snapshot.line(&of(index, "level")).and_then(|level| level.parse::<u32>().ok()).unwrap_or(0);
    let highest = numbered(snapshot, &caches, "index").into_iter().max_by_key(level)?;
    list_or_mask(snapshot, &of(&highest, "shared_cpu_list"), &of(&highest, "shared_cpu_map"))?.first()
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
