//! Topologies as unlike machines write them down: fixtures/topologies, with what `lstopo` says of each.

use kvmscope_host::machine::Topology;
use kvmscope_host::{Machine, Snapshot};
use std::collections::BTreeSet;
use std::path::Path;

/// The tree that a file of fixtures/topologies holds, with its paths as `named` makes them.
fn read(file: &str, named: impl Fn(&str) -> String) -> Topology {
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/topologies").join(file);
    let root = tempfile::tempdir().unwrap();
    for line in std::fs::read_to_string(text).unwrap().lines() {
        let (path, value) = line.split_once(' ').unwrap();
        let path = root.path().join(named(path));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, value.replace("\\n", "\n").replace("\\0", "\0")).unwrap();
    }
    Machine::of_snapshots(&[Snapshot::open(root.path()).unwrap()]).topology
}

/// CPUs, cores, packages, last caches, nodes.
fn counts(topology: &Topology) -> [usize; 5] {
    let distinct = |of: fn(&kvmscope_host::machine::Cpu) -> Option<u32>| {
        topology.cpus.values().filter_map(of).collect::<BTreeSet<u32>>().len()
    };
    let cores = if topology.cores_unknown { 0 } else { topology.cores().len() };
    [topology.online.len(), cores, distinct(|cpu| cpu.package), distinct(|cpu| cpu.last_cache), topology.nodes().len()]
}

#[test]
fn each_kind_is_read_as_lstopo_reads_it() {
    for (file, expected) in [
        ("arm-128-zero-bytes.txt", [128, 128, 2, 4, 4]),
        ("epyc-96-masks.txt", [96, 48, 2, 16, 8]),
        ("xeon-96-masks.txt", [96, 96, 16, 16, 4]),
        ("s390-20-packages-by-mask.txt", [20, 20, 8, 0, 0]),
        ("s390-2-no-topology.txt", [2, 0, 0, 0, 0]),
    ] {
        let topology = read(file, str::to_owned);
        assert_eq!(counts(&topology), expected, "{file}");
        assert_eq!(topology.cores_unknown, expected[1] == 0, "{file}");
    }
}

#[test]
fn both_spellings_of_the_kernel_are_the_same() {
    let old = read("epyc-96-masks.txt", str::to_owned);
    let new = read("epyc-96-masks.txt", |path| {
        path.replace("thread_siblings", "core_cpus").replace("core_siblings", "package_cpus")
    });
    assert_eq!(new, old);
    assert_eq!(old.of_core(old.cpus[&0].core).to_string(), "0,48");
    let of_cache: Vec<u32> =
        old.cpus.iter().filter(|(_, about)| about.last_cache == Some(3)).map(|(cpu, _)| *cpu).collect();
    assert_eq!(of_cache, [3, 4, 5, 51, 52, 53], "a core complex, siblings included");
}

#[test]
fn a_set_without_the_cpu_is_not_its_own_and_nodes_that_overlap_are_unknown() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join("sys/devices/system").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("cpu/online", "0-1,3");
    for cpu in 0..4 {
        write(&format!("cpu/cpu{cpu}/topology/thread_siblings_list"), if cpu < 2 { "0-1" } else { "2-3" });
        write(&format!("cpu/cpu{cpu}/topology/physical_package_id"), "0");
        write(&format!("cpu/cpu{cpu}/cache/index2/level"), "2");
        write(&format!("cpu/cpu{cpu}/cache/index2/shared_cpu_list"), if cpu < 2 { "0-1" } else { "2-3" });
        // A copy of CPU 0's file, and one of zeros: neither tells of the others' third level.
        write(&format!("cpu/cpu{cpu}/cache/index3/level"), "3");
        write(&format!("cpu/cpu{cpu}/cache/index3/shared_cpu_list"), "0-1");
        write(&format!("cpu/cpu{cpu}/cache/index3/shared_cpu_map"), "0");
    }
    write("node/node0/cpulist", "0-1");
    write("node/node1/cpulist", "1,3");
    let topology = Machine::of_snapshots(&[Snapshot::open(root.path()).unwrap()]).topology;
    assert_eq!(topology.online.to_string(), "0-1,3");
    let caches: Vec<Option<u32>> = topology.cpus.values().map(|cpu| cpu.last_cache).collect();
    assert_eq!(caches, [Some(0), Some(0), Some(2), Some(2)]);
    let nodes: Vec<Option<u32>> = topology.cpus.values().map(|cpu| cpu.node).collect();
    assert_eq!(nodes, [Some(0), None, None, Some(1)], "CPU 1 is claimed twice, CPU 2 by none");
}
