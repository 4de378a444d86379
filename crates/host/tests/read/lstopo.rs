//! Topologies against hwloc and lscpu: generated trees of hosts from 2 to 512 CPUs, this machine, and where `KVMSCOPE_TREES`
//! names a folder of them (`tools/trees.sh`), the trees of real machines that both projects test themselves with.

use base::CpuSet;
use generate::tree::Tree;
use kvmscope_host::machine::{Cpu, Topology};
use kvmscope_host::{Machine, Snapshot};
use roxmltree::{Document, Node};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which CPUs stand together, whatever the groups are called; empty where nobody told.
#[derive(Debug, Default, PartialEq)]
struct Groups {
    cpus: CpuSet,
    cores: BTreeSet<String>,
    packages: BTreeSet<String>,
    last_caches: BTreeSet<String>,
    nodes: BTreeMap<u32, CpuSet>,
}

/// The sets of CPUs that have a key in common.
fn sets<K: Ord>(keys: impl Iterator<Item = (u32, Option<K>)>) -> BTreeMap<K, CpuSet> {
    let mut sets: BTreeMap<K, CpuSet> = BTreeMap::new();
    for (cpu, key) in keys {
        if let Some(key) = key {
            sets.entry(key).or_default().insert(cpu);
        }
    }
    sets
}

fn lists<K: Ord>(keys: impl Iterator<Item = (u32, Option<K>)>) -> BTreeSet<String> {
    sets(keys).into_values().map(|set| set.to_string()).collect()
}

impl Groups {
    fn of(topology: &Topology) -> Self {
        let runs = |(cpu, _): &(&u32, &Cpu)| topology.online.contains(**cpu);
        let all = || topology.cpus.iter().filter(runs).map(|(cpu, about)| (*cpu, about));
        let core = |about: &Cpu| (!topology.cores_unknown).then_some(about.core);
        Self {
            cpus: topology.online.clone(),
            cores: lists(all().map(|(cpu, about)| (cpu, core(about)))),
            packages: lists(all().map(|(cpu, about)| (cpu, about.package))),
            last_caches: lists(all().map(|(cpu, about)| (cpu, about.last_cache))),
            nodes: sets(all().map(|(cpu, about)| (cpu, about.node))),
        }
    }

    /// What `lstopo` reads below a root; `None` if it refuses the tree.
    fn of_lstopo(root: &Path) -> Option<Self> {
        let words = ["--if", "fsroot", "-i", root.to_str().unwrap(), "--of", "xml", "--no-io", "--disallowed"];
        let output = Command::new("lstopo-no-graphics").args(words).output().unwrap();
        if !output.status.success() {
            return None;
        }
        let text = String::from_utf8(output.stdout).unwrap();
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
        let document = Document::parse_with_options(&text, options).unwrap();
        let of_kind = |kind: &'static str| {
            let objects = document.descendants().filter(|node| node.has_tag_name("object"));
            objects.filter(move |node| node.attribute("type") == Some(kind))
        };
        // hwloc writes `0xff,,0x1`: a word of zeros is left empty.
        let cpus = |node: Node<'_, '_>| {
            let words = node.attribute("cpuset").unwrap().split(',').map(|word| word.trim_start_matches("0x"));
            CpuSet::parse_mask(&words.map(|word| format!("{word:0>8}")).collect::<Vec<_>>().join(",")).unwrap()
        };
        let number = |node: Node<'_, '_>| node.attribute("os_index").unwrap().parse::<u32>().unwrap();
        let each = |kind: &'static str| of_kind(kind).map(|node| cpus(node).to_string()).collect();
        let is_cache = |kind: &str| kind.starts_with('L') && kind.ends_with("Cache");
        let outermost = |unit: Node<'_, '_>| {
            let caches = unit.ancestors().filter(|above| above.attribute("type").is_some_and(is_cache));
            caches.last().map(|cache| cpus(cache).to_string())
        };
        Some(Self {
            cpus: of_kind("PU").map(number).collect(),
            cores: each("Core"),
            packages: each("Package"),
            last_caches: of_kind("PU").filter_map(outermost).collect(),
            nodes: of_kind("NUMANode").map(|node| (number(node), cpus(node))).collect(),
        })
    }

    /// What `lscpu -p` reads below a root: `# CPU,Core,Socket,Node,,L1d,L1i,L2,L3`.
    fn of_lscpu(root: &Path) -> Self {
        let output = Command::new("lscpu").args(["-p", "-s"]).arg(root).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<Vec<Option<u32>>> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split(',').map(|cell| cell.parse().ok()).collect::<Vec<_>>())
            .filter(|row| row[0].is_some())
            .collect();
        let column = |at: usize| rows.iter().map(move |row| (row[0].unwrap(), row.get(at).copied().flatten()));
        Self {
            cpus: column(0).map(|(cpu, _)| cpu).collect(),
            cores: lists(column(1)),
            packages: lists(column(2)),
            last_caches: lists(
                rows.iter()
                    .map(|row| (row[0].unwrap(), row.get(5..).and_then(|caches| caches.last().copied().flatten()))),
            ),
            nodes: sets(column(3)),
        }
    }

    /// In what this differs from what another program read, in words.
    fn unlike(&self, theirs: &Self) -> Vec<String> {
        let mut unlike = Vec::new();
        if self.cpus != theirs.cpus {
            unlike.push(format!("CPUs {}, theirs {}", self.cpus, theirs.cpus));
        }
        let kinds = [
            ("cores", &self.cores, &theirs.cores),
            ("packages", &self.packages, &theirs.packages),
            ("last caches", &self.last_caches, &theirs.last_caches),
        ];
        for (kind, ours, theirs) in kinds.into_iter().filter(|(_, ours, theirs)| ours != theirs) {
            // hwloc gives a machine without packages one.
            if !(kind == "packages" && ours.is_empty() && theirs.len() == 1) {
                unlike.push(format!("{kind} {ours:?}, theirs {theirs:?}"));
            }
        }
        // hwloc gives memory without CPUs the CPUs beside it, and a machine without nodes one.
        let all = |nodes: &BTreeMap<u32, CpuSet>| nodes.values().fold(CpuSet::default(), |all, set| all.or(set));
        let is_told = !self.nodes.is_empty() || theirs.nodes.len() > 1;
        let same = self.nodes.iter().all(|(node, cpus)| theirs.nodes.get(node) == Some(cpus));
        if is_told && !(same && all(&self.nodes) == all(&theirs.nodes)) {
            unlike.push(format!("nodes {:?}, theirs {:?}", self.nodes, theirs.nodes));
        }
        unlike
    }
}

fn is_there(program: &str, package: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        println!("skipped: topologies against {program}: it is not there; the Debian package {package} brings it");
    }
    there
}

fn read(root: &Path) -> Groups {
    Groups::of(&Machine::of_snapshots(&[Snapshot::open(root).unwrap()]).topology)
}

#[test]
fn generated_hosts_are_what_hwloc_reads() {
    if !is_there("lstopo-no-graphics", "hwloc-nox") {
        return;
    }
    for (nodes, cores, siblings) in [(1, 2, 1), (1, 1, 2), (2, 4, 2), (4, 6, 1), (2, 24, 2), (8, 32, 2)] {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree { nodes, cores, siblings, vms: 0, irqs: 0, seed: 1 };
        tree.write(root.path(), 0).unwrap();
        let theirs = Groups::of_lstopo(root.path()).unwrap();
        assert_eq!(theirs.cpus.len() as u32, tree.cpus());
        let none: [String; 0] = [];
        assert_eq!(read(root.path()).unlike(&theirs), none, "{nodes} nodes of {cores} cores of {siblings}");
    }
}

#[test]
fn this_machine_is_what_hwloc_reads() {
    if is_there("lstopo-no-graphics", "hwloc-nox") {
        let none: [String; 0] = [];
        assert_eq!(read(Path::new("/")).unlike(&Groups::of_lstopo(Path::new("/")).unwrap()), none);
    }
}

/// Trees that we read otherwise than the other program, in what, and why.
const OTHERWISE: &[(&str, &str, &str)] = &[
    ("40intel64-4n10c+pci-conflicts", "packages", "masks were spoilt for a test of hwloc's; we prefer the lists"),
    ("40intel64-4n10c+pci-conflicts", "last caches", "as above"),
    ("64amd64-4s2n4ca2co", "cores", "the kernel calls the halves of a Bulldozer module threads of a core, hwloc cores"),
    ("64intel64-fakeKNL-A2A-cache", "last caches", "hwloc takes memory that works as a cache for the last one"),
    ("64intel64-fakeKNL-SNC4-hybrid", "last caches", "as above"),
    ("fakeheterocpunuma", "nodes", "made up: several nodes have the same CPUs, so that we know no node of them"),
    ("rv64-linux", "", "lscpu prints rows without a CPU"),
    ("sparc64", "last caches", "lscpu concludes from their sizes that no CPU shares its cache"),
];

/// The trees in a folder, by their names.
fn trees(folder: &Path) -> BTreeMap<String, PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect()
}

#[test]
#[ignore = "torture"]
fn trees_of_real_machines_are_what_hwloc_and_lscpu_read() {
    let Some(folder) = std::env::var_os("KVMSCOPE_TREES").map(PathBuf::from) else {
        println!("skipped: topologies of real machines: KVMSCOPE_TREES names no folder; tools/trees.sh makes one");
        return;
    };
    let mut wrong = Vec::new();
    let mut compare = |project: &str, theirs: &dyn Fn(&Path) -> Option<Groups>| {
        let (mut agree, mut count) = (0, 0);
        for (name, root) in trees(&folder.join(project)) {
            let Some(theirs) = theirs(&root) else { continue };
            let mut unlike = read(&root).unlike(&theirs);
            count += 1;
            agree += usize::from(unlike.is_empty());
            unlike.retain(|what| !OTHERWISE.iter().any(|(tree, kind, _)| *tree == name && what.starts_with(kind)));
            wrong.extend(unlike.into_iter().map(|what| format!("{project}/{name}: {what}")));
        }
        println!("{agree} of {count} trees of {project} agree in CPUs, cores, packages, last caches and nodes");
        assert!(count > 0, "no tree in {project}");
    };
    compare("hwloc", &Groups::of_lstopo);
    compare("util-linux", &|root| Some(Groups::of_lscpu(root)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
