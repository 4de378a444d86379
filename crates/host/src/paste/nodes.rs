//! `numactl -H`: CPUs, memory and distances of nodes; and `lstopo` as text: packages, caches, cores and CPUs.

use super::{Pasted, Text};
use crate::budget;
use crate::machine::Cpu;
use std::collections::BTreeMap;

/// `Machine (62GB total)` and what lies in it, as `lstopo --of console` draws it: P# are the kernel's numbers.
pub(super) fn lstopo(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if !(text.at(at).starts_with("Machine (") && text.at(at).contains("total")) {
        return 0;
    }
    let number = |text: &str, sign: &str| -> Option<u32> {
        let rest = text.split_once(sign)?.1;
        rest[..rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
    };
    let machine = &mut pasted.machine;
    let (mut package, mut node, mut core, mut cache) = (None, None, None, None);
    let mut end = at + 1;
    // The lowest CPU of each cache.
    let mut firsts: BTreeMap<u32, u32> = BTreeMap::new();
    let mut drawn = base::CpuSet::default();
    while end < text.lines.len() {
        let line = text.at(end);
        let known = [
            "NUMANode",
            "Package",
            "Socket",
            "Group",
            "Die",
            "L3",
            "L2",
            "L1",
            "Core",
            "PU",
            "HostBridge",
            "PCI",
            "Net ",
            "Block ",
            "OpenFabrics",
            "CoProc",
            "GPU",
        ];
        if line.is_empty() || !known.iter().any(|name| line.starts_with(name)) {
            break;
        }
        for part in line.split(" + ") {
            match part.split_whitespace().next() {
                Some("Package" | "Socket") => package = number(part, "L#"),
                Some("NUMANode") => {
                    node = number(part, "P#").or(number(part, "L#")).filter(|node| *node < budget::NODES)
                }
                Some("L3") => cache = number(part, "L#"),
                Some("Core") => core = number(part, "L#"),
                Some("PU") => {
                    let cpu = number(part, "P#").filter(|cpu| *cpu < base::cpus::MOST_CPUS);
                    let (Some(cpu), Some(core)) = (cpu, core) else { continue };
                    let last_cache = cache.map(|cache| *firsts.entry(cache).or_insert(cpu));
                    machine.topology.cpus.insert(cpu, Cpu { core, package, node, last_cache });
                    machine.topology.online.insert(cpu);
                    drawn.insert(cpu);
                }
                _ => {}
            }
        }
        end += 1;
    }
    if !machine.topology.cpus.is_empty() {
        // What somebody cut off, and another text names, has cores that nobody knows.
        let is_part = machine.topology.cpus.keys().any(|cpu| !drawn.contains(*cpu));
        (machine.topology.cores_unknown, machine.topology.place) = (is_part, text.place(at));
    }
    end - at
}

/// `available: 2 nodes (0-1)` and what follows.
pub(super) fn numactl(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let is_head = text.at(at).starts_with("available: ") && text.at(at).contains("node");
    // grep takes the head away.
    let is_row = || {
        let words: Vec<&str> = text.at(at).split_whitespace().take(3).collect();
        matches!(words[..], ["node", node, "cpus:" | "size:" | "free:"] if node.parse::<u32>().is_ok())
    };
    if !(is_head || is_row()) {
        return 0;
    }
    let machine = &mut pasted.machine;
    let mut end = at + usize::from(is_head);
    let before = machine.topology.cpus.len();
    while let Some((about, rest)) = text.at(end).strip_prefix("node ").and_then(|line| line.split_once(':')) {
        let mut words = about.split_whitespace();
        let node = words.next().and_then(|node| node.parse::<u32>().ok());
        let Some(node) = node.filter(|node| *node < budget::NODES) else { break };
        let megabytes = || rest.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1 << 20);
        match words.next() {
            Some("cpus") => {
                for cpu in rest
                    .split_whitespace()
                    .filter_map(|word| word.parse().ok())
                    .filter(|cpu| *cpu < base::cpus::MOST_CPUS)
                {
                    let own = Cpu { core: cpu, ..Cpu::default() };
                    machine.topology.cpus.entry(cpu).or_insert(own).node = Some(node);
                    machine.topology.online.insert(cpu);
                }
            }
            Some("size") => machine.nodes.entry(node).or_default().total_bytes = megabytes(),
            Some("free") => machine.nodes.entry(node).or_default().free_bytes = megabytes(),
            _ => break,
        }
        end += 1;
    }
    if text.at(end).starts_with("node distances") {
        let columns: Vec<u32> = text.at(end + 1).split_whitespace().filter_map(|word| word.parse().ok()).collect();
        end += 2;
        while let Some((node, row)) = text.at(end).split_once(':') {
            let node = node.trim().parse::<u32>().ok();
            let Some(node) = node.filter(|node| *node < budget::NODES) else { break };
            let row = row.split_whitespace().filter_map(|word| word.parse().ok());
            machine.nodes.entry(node).or_default().distances = columns.iter().copied().zip(row).collect();
            end += 1;
        }
    }
    if machine.topology.place.is_empty() {
        machine.topology.cores_unknown = !machine.topology.cpus.is_empty();
        machine.topology.place = text.place(at);
    } else if machine.topology.cpus.len() > before {
        machine.topology.cores_unknown = true;
    }
    end - at
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn lstopo_tells_cores_by_the_kernels_numbers() {
        let text = "$ lstopo --of console\nMachine (62GB total)\n  Package L#0\n    NUMANode L#0 (P#0 31GB)\n    L3 L#0 (20MB)\n\
            \x20     L2 L#0 (256KB) + L1d L#0 (32KB) + L1i L#0 (32KB) + Core L#0\n        PU L#0 (P#0)\n        PU L#1 (P#4)\n\
            \x20     L2 L#1 (256KB) + L1d L#1 (32KB) + L1i L#1 (32KB) + Core L#1 + PU L#2 (P#1)\n\
            \x20 Package L#1\n    NUMANode L#1 (P#1 31GB)\n    L3 L#1 (20MB) + L2 L#2 (256KB) + Core L#2 + PU L#3 (P#2)\n  HostBridge\n    PCI 00:1f.2 (SATA)\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let topology = &machine.topology;
        assert_eq!(
            (topology.cpus.len(), topology.cores().len(), topology.package_count(), topology.nodes().len()),
            (4, 3, 2, 2)
        );
        assert_eq!(topology.of_core(0).to_string(), "0,4");
        assert_eq!((topology.cpus[&2].node, topology.cpus[&2].last_cache), (Some(1), Some(2)));
    }

    #[test]
    fn a_drawing_that_somebody_cut_tells_no_cores_of_the_rest() {
        let drawn = "Machine (62GB total)\n  Package L#0\n    Core L#0\n      PU L#0 (P#0)\n      PU L#1 (P#2)\n    [... more cores ...]\n";
        let listed = "available: 1 nodes (0)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 10 MB\n";
        for text in [format!("{drawn}{listed}"), format!("{listed}{drawn}")] {
            let topology = read(&[("t".to_owned(), text)]).topology;
            assert!(topology.cores_unknown && topology.cpus.len() == 4, "{topology:?}");
        }
        assert!(
            !read(&[("t".to_owned(), format!("{drawn}available: 1 nodes (0)\nnode 0 cpus: 0 2\n"))])
                .topology
                .cores_unknown
        );
    }
}
