//! Where things are: nodes of vCPUs and NICs, interrupts on the CPUs of vCPUs.

use crate::placement::model::{Demand, Model};
use crate::shared::Hit;
use base::CpuSet;
use base::number::{list, many, percent};
use base::{Change, Severity};

/// An interrupt below this rate disturbs nobody: our own threshold.
const MANY_PER_S: f64 = 1_000.0;

/// Softirq share of a CPU that counts: our own threshold.
const MUCH_SOFTIRQ: f64 = 0.1;

/// Domains whose vCPUs are bound to several nodes though one node has room for what they want.
pub fn spans(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let nodes = topology.nodes();
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let masks = model.vcpus(domain).filter_map(|thread| thread.affinity.as_ref());
        let masks: Vec<_> = masks.filter(|set| !topology.online.is_within(&set.value)).collect();
        let all = masks.iter().fold(CpuSet::default(), |all, set| all.or(&set.value));
        let of = topology.nodes_of(&all);
        let wanted: f64 = model.vcpus(domain).map(|thread| Demand::of(thread).high).sum();
        let fits = nodes.values().any(|cpus| cpus.len() as f64 >= wanted && cpus.len() >= model.vcpus(domain).count());
        let memory = |node: u32| model.machine.nodes.get(&node).and_then(|node| node.total_bytes);
        let fits_memory = domain
            .memory_bytes
            .is_none_or(|bytes| nodes.keys().any(|node| memory(*node).is_none_or(|there| there >= bytes)));
        if of.len() > 1 && fits && fits_memory {
            let names: Vec<String> = of.iter().map(u32::to_string).collect();
            let title =
                format!("vCPUs of {} are bound to nodes {}, and one would hold them", domain.name, list(&names));
            let hit = Hit::new(&domain.name, Severity::Medium, title);
            hits.push(hit.seen(format!("bound to {all} in all"), masks.first().map_or("", |set| set.place.as_str())));
        }
    }
    hits
}

/// Cards and devices whose node is not that of the vCPUs of a domain that uses them.
pub fn nic(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let masks = model.vcpus(domain).filter_map(|thread| Some(&thread.affinity.as_ref()?.value));
        let all = masks.fold(CpuSet::default(), |all, set| all.or(set));
        let [of_vcpus] = model.machine.topology.nodes_of(&all)[..] else { continue };
        let cards = domain.interfaces.iter().flat_map(|interface| model.machine.cards_of(interface));
        let cards = cards.filter_map(|nic| Some((nic.name.as_str(), nic.node.as_ref()?)));
        let given =
            domain.host_devices.iter().filter_map(|device| model.machine.pci_nodes.get_key_value(&device.value));
        let mut devices: Vec<_> = cards.chain(given.map(|(address, node)| (address.as_str(), node))).collect();
        devices.sort_by_key(|(name, _)| *name);
        devices.dedup_by_key(|(name, _)| *name);
        for (name, node) in devices.into_iter().filter(|(_, node)| node.value != of_vcpus) {
            let title =
                format!("{name} is on node {}, the vCPUs of {} are on node {of_vcpus}", node.value, domain.name);
            let hit = Hit::new(format!("{}-{name}", domain.name), Severity::Low, title);
            hits.push(hit.seen(format!("{name} is on node {}", node.value), &node.place));
        }
    }
    hits
}

/// Interrupts of NICs on CPUs of vCPUs, where they are many and softirqs run there.
pub fn irqs(model: &Model) -> Vec<Hit> {
    let of_vcpus = model.of_vcpus();
    let free = model.machine.topology.online.without(&of_vcpus);
    let mut hits = Vec::new();
    for irq in &model.machine.irqs {
        let there = irq.per_s.iter().filter(|(cpu, rate)| {
            let softirq = model.machine.cpu_use.get(cpu).map_or(0.0, |usage| usage.softirq);
            of_vcpus.contains(**cpu) && **rate > MANY_PER_S && softirq > MUCH_SOFTIRQ
        });
        let there: Vec<(u32, f64)> = there.map(|(cpu, rate)| (*cpu, *rate)).collect();
        let Some((cpu, rate)) = there.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        let title = format!(
            "interrupt {} ({}) comes {rate:.0} times a second on CPU {cpu}, where a vCPU is pinned",
            irq.number, irq.name
        );
        let softirq = model.machine.cpu_use[&cpu].softirq;
        let mut hit = Hit::new(format!("irq{}", irq.number), Severity::Medium, title)
            .seen(format!("{rate:.0} a second on CPU {cpu}"), "proc/interrupts")
            .seen(format!("softirqs took {} of CPU {cpu}", percent(softirq)), "proc/stat");
        if let Some(affinity) = irq.affinity.as_ref().filter(|_| !free.is_empty()) {
            let from = Some(affinity.value.to_string());
            hit.changes.push(Change::IrqAffinity { irq: irq.number, cpus: free.to_string(), from });
        }
        hits.push(hit);
    }
    hits
}

/// Receive packet steering to CPUs of vCPUs.
pub fn rps(model: &Model) -> Vec<Hit> {
    let of_vcpus = model.of_vcpus();
    let steered = model.machine.nics.iter().filter(|nic| nic.rps_cpus().meets(&of_vcpus));
    let hits = steered.map(|nic| {
        let there = nic.rps_cpus().and(&of_vcpus);
        let title =
            format!("{} steers received packets to {} with vCPUs ({there})", nic.name, many(there.len() as u64, "CPU"));
        let place = format!("sys/class/net/{}/queues/rx-*/rps_cpus", nic.name);
        Hit::new(&nic.name, Severity::Low, title).seen(format!("rps_cpus are {}", nic.rps_cpus()), place)
    });
    hits.collect()
}
