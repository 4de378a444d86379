//! Guests wider than a node, memory that moves between nodes, cards whose interrupts come to another one.

use crate::placement::culprits::cpus_named;
use crate::placement::model::Model;
use crate::placement::proposal::What;
use base::number::{bytes, list, many, percent, rate};
use base::shell::quoted;
use base::{CpuSet, Severity};
use facts::rule::Hit;
use host::machine::Domain;

/// Pages a second that NUMA balancing moves from which it counts, 40 MB: our own threshold.
pub(in crate::placement) const MOVED_PAGES: f64 = 10_000.0;

/// Interrupts a second of a card on another node from which they count: our own threshold.
pub(in crate::placement) const FAR_IRQS: f64 = 1_000.0;

/// Share of a card's interrupts on other nodes from which they count: our own threshold.
const MOSTLY: f64 = 0.9;

const PAGE: f64 = 4_096.0;

/// The CPUs and the memory of the largest node; none where nodes were not told.
fn largest_node(model: &Model) -> Option<(usize, Option<u64>)> {
    let nodes = model.machine.topology.nodes();
    let cpus = nodes.values().map(CpuSet::len).max().filter(|_| nodes.len() > 1)?;
    Some((cpus, model.machine.nodes.values().filter_map(|node| node.total_bytes).max()))
}

/// Guests that fit no node and are shown one.
pub(crate) fn wide(model: &Model) -> Vec<Hit> {
    let Some((cpus, memory)) = largest_node(model) else { return Vec::new() };
    let nodes = model.machine.topology.nodes().len() as u32;
    let mut hits = Vec::new();
    for domain in model.machine.domains.iter().filter(|domain| domain.guest_nodes <= 1) {
        // A command line shows nodes by -numa alone, and says all that there is.
        let told = domain.whole.as_deref().or(domain.by_command.then_some("its command line"));
        let Some(told) = told else { continue };
        let vcpus = domain.vcpu_count();
        let is_large = domain.memory_bytes.zip(memory).is_some_and(|(own, node)| own > node);
        if vcpus as usize <= cpus && !is_large || vcpus < nodes {
            continue;
        }
        let what = match vcpus as usize > cpus {
            true => format!("{}, more than the {} of a node", many(vcpus.into(), "vCPU"), many(cpus as u64, "CPU")),
            false => format!("{} of memory, more than a node has", bytes(domain.memory_bytes.unwrap_or(0) as f64)),
        };
        let title = format!(
            "{} has {what}, but only one virtual NUMA node: it cannot place its work near its memory",
            domain.name
        );
        let mut hit = Hit::new(&domain.name, Severity::Medium, title).of_domain(&domain.name);
        hit = hit.seen("it is shown no nodes of its own", told);
        if let Some(told) = model.machine.vm_memory.get(&domain.name) {
            let parts: Vec<String> =
                told.value.iter().map(|(node, there)| format!("{} on node {node}", bytes(*there as f64))).collect();
            hit = hit.seen(format!("its memory: {}", list(&parts)), &told.place);
        }
        hit.fix.push(format!("virsh edit {}   # {}", quoted(&domain.name), cells(domain, nodes)));
        hit.undo.push(format!("virsh edit {}   # without these elements", quoted(&domain.name)));
        hits.push(hit);
    }
    hits
}

/// The cells that a guest is shown, one a node, with memory from it; its vCPUs are then pinned cell by cell.
fn cells(domain: &Domain, nodes: u32) -> String {
    let vcpus = domain.vcpu_count();
    let memory = (domain.memory_bytes.unwrap_or(0) / u64::from(nodes.max(1))) >> 10;
    let mut elements = String::from("<cpu><numa>");
    for node in 0..nodes {
        let (from, until) = (vcpus * node / nodes, vcpus * (node + 1) / nodes);
        elements.push_str(&format!(
            "<cell id='{node}' cpus='{from}-{}' memory='{memory}' unit='KiB'/>",
            until.saturating_sub(1)
        ));
    }
    elements.push_str("</numa></cpu>, <numatune>");
    for node in 0..nodes {
        elements.push_str(&format!("<memnode cellid='{node}' mode='strict' nodeset='{node}'/>"));
    }
    elements.push_str("</numatune>; then pin the vCPUs of each cell to its node");
    elements
}

/// A host that moves pages between nodes while guests may run on several.
pub(crate) fn balancing(model: &Model) -> Vec<Hit> {
    let machine = &model.machine;
    let Some(moved) = machine.pages_moved_per_s.as_ref().filter(|moved| moved.value >= MOVED_PAGES) else {
        return Vec::new();
    };
    let wide: Vec<String> = machine
        .domains
        .iter()
        .filter(|domain| {
            let masks = model.vcpus(domain).filter_map(|thread| Some(&thread.affinity.as_ref()?.value));
            let cpus = masks.fold(CpuSet::default(), |all, set| all.or(set));
            machine.topology.nodes_of(&cpus).len() > 1 && domain.guest_nodes <= 1
        })
        .map(|domain| domain.name.clone())
        .collect();
    if wide.is_empty() {
        return Vec::new();
    }
    let title = format!(
        "NUMA balancing migrates {}/s of pages between nodes: {} may run on several",
        bytes(moved.value * PAGE),
        list(&wide)
    );
    let mut hit = Hit::new("numa_balancing", Severity::Medium, title);
    hit = hit.seen(format!("{} pages a second migrate", rate(moved.value)), &moved.place);
    hit.changes = model.proposal.part(|_, of| wide.contains(&of.vm));
    if hit.changes.is_empty() {
        hit.fix.extend(wide.iter().map(|vm| {
            format!("virsh numatune {}   # bind memory and vCPUs of a VM to one node, where it fits", quoted(vm))
        }));
    }
    vec![hit]
}

/// Cards whose interrupts come to CPUs of another node.
pub(crate) fn far_interrupts(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let node_of = |cpu: u32| topology.cpus.get(&cpu).and_then(|about| about.node);
    let mut hits = Vec::new();
    for nic in &model.machine.nics {
        let Some(home) = nic.node.as_ref() else { continue };
        let irqs: Vec<_> = model
            .machine
            .irqs
            .iter()
            .filter(|irq| model.machine.nic_of(irq).is_some_and(|of| of.name == nic.name))
            .collect();
        let rates = || irqs.iter().flat_map(|irq| irq.per_s.iter());
        let all: f64 = rates().map(|(_, rate)| rate).sum();
        let is_far = |cpu: u32| node_of(cpu).is_some_and(|node| node != home.value);
        let far: f64 = rates().filter(|(cpu, _)| is_far(**cpu)).map(|(_, rate)| rate).sum();
        let there: CpuSet = rates().map(|(cpu, _)| *cpu).filter(|cpu| is_far(*cpu)).collect();
        // Spread over all nodes, most come to others, too.
        if far < FAR_IRQS || far < MOSTLY * all {
            continue;
        }
        let title = format!(
            "{} is on node {}, and {} of its interrupts come to {} of another node",
            nic.name,
            home.value,
            percent(far / all),
            cpus_named(&there)
        );
        let mut hit = Hit::new(&nic.name, Severity::Medium, title);
        hit = hit.seen(format!("{} interrupts a second on {}", rate(far), cpus_named(&there)), "proc/interrupts");
        hit = hit.seen(format!("the card is on node {}", home.value), &home.place);
        let numbers: Vec<u32> = irqs.iter().map(|irq| irq.number).collect();
        hit.changes = model.proposal.part(|_, of| matches!(of.what, What::Irq(number) if numbers.contains(&number)));
        if hit.changes.is_empty() {
            hit.fix.push(model.proposal.why_none());
        } else {
            super::place::keep_irqbalance_away(model, &mut hit);
        }
        hits.push(hit);
    }
    hits
}
