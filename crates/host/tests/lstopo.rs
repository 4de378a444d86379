//! Topologies against hwloc: generated trees of hosts from 2 to 512 CPUs, and this machine, read by both.

use base::CpuSet;
use generate::tree::Tree;
use kvmscope_host::{Machine, Snapshot};
use roxmltree::{Document, Node};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A CPU as hwloc has it: core's number in its package, package, node.
type Place = (u32, u32, u32);

/// What `lstopo` reads below a root.
fn lstopo(root: &Path) -> BTreeMap<u32, Place> {
    let input = root.to_str().unwrap();
    let words = ["--if", "fsroot", "-i", input, "--of", "xml", "--no-io"];
    let output = Command::new("lstopo-no-graphics").args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    let document = Document::parse_with_options(&text, options).unwrap();
    let of_kind = |kind: &'static str| {
        document.descendants().filter(move |node| node.has_tag_name("object") && node.attribute("type") == Some(kind))
    };
    let number = |node: Node<'_, '_>| node.attribute("os_index").unwrap().parse::<u32>().unwrap();
    let above = |node: Node<'_, '_>, kind: &str| {
        let mut above = node.ancestors().filter(|above| above.attribute("type") == Some(kind));
        above.next().map_or(0, number)
    };
    let nodes: Vec<(u32, CpuSet)> = of_kind("NUMANode")
        .map(|node| (number(node), CpuSet::parse_mask(&node.attribute("cpuset").unwrap().replace("0x", "")).unwrap()))
        .collect();
    let place = |cpu: Node<'_, '_>| {
        let node = nodes.iter().find(|(_, cpus)| cpus.contains(number(cpu))).map_or(0, |(node, _)| *node);
        (number(cpu), (above(cpu, "Core"), above(cpu, "Package"), node))
    };
    of_kind("PU").map(place).collect()
}

fn is_there() -> bool {
    let there = Command::new("lstopo-no-graphics").arg("--version").output().is_ok();
    if !there {
        println!(
            "skipped: topologies against hwloc: lstopo-no-graphics is not there; the Debian package hwloc-nox brings it"
        );
    }
    there
}

/// Both must put the same CPUs into one core, one package and one node.
fn agree(machine: &Machine, theirs: &BTreeMap<u32, Place>, what: &str) {
    let ours = &machine.topology.cpus;
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{what}: CPUs");
    for (cpu, (_, package, node)) in theirs {
        assert_eq!((ours[cpu].package, ours[cpu].node.unwrap_or(0)), (Some(*package), *node), "{what}: CPU {cpu}");
    }
    let cores: std::collections::BTreeSet<(u32, u32)> =
        theirs.values().map(|(core, package, _)| (*core, *package)).collect();
    assert_eq!(machine.topology.cores().len(), cores.len(), "{what}: cores");
    for (cpu, place) in theirs {
        let together: CpuSet =
            theirs.iter().filter(|(_, other)| other.0 == place.0 && other.1 == place.1).map(|(cpu, _)| *cpu).collect();
        assert_eq!(machine.topology.of_core(ours[cpu].core), together, "{what}: the core of CPU {cpu}");
    }
}

#[test]
fn generated_hosts_are_what_hwloc_reads() {
    if !is_there() {
        return;
    }
    for (nodes, cores, siblings) in [(1, 2, 1), (1, 1, 2), (2, 4, 2), (4, 6, 1), (2, 24, 2), (8, 32, 2)] {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree { nodes, cores, siblings, vms: 0, irqs: 0, seed: 1 };
        tree.write(root.path(), 0).unwrap();
        let theirs = lstopo(root.path());
        assert_eq!(theirs.len() as u32, tree.cpus());
        let machine = Machine::of_snapshots(&[Snapshot::open(root.path()).unwrap()]);
        agree(&machine, &theirs, &format!("{nodes} nodes of {cores} cores of {siblings}"));
    }
}

#[test]
fn this_machine_is_what_hwloc_reads() {
    if is_there() {
        let machine = Machine::of_snapshots(&[Snapshot::open(Path::new("/")).unwrap()]);
        agree(&machine, &lstopo(Path::new("/")), "this machine");
    }
}
