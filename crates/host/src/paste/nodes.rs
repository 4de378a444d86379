//! `numactl -H`: CPUs, memory and distances of nodes.

use super::{Pasted, Text};
use crate::budget;
use crate::machine::Cpu;

/// `available: 2 nodes (0-1)` and what follows.
pub(super) fn numactl(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if !(text.at(at).starts_with("available: ") && text.at(at).contains("node")) {
        return 0;
    }
    let machine = &mut pasted.machine;
    let mut end = at + 1;
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
    }
    end - at
}
