//! Guests that are shown several nodes: does each cell's memory lie where its vCPUs run?
//!
//! ```text
//! memnode of a cell, against the nodes of its vCPUs' CPUs   every access that the guest takes for local crosses the link
//! pages counted on a node, against what its cells may have  more is there than they can have: it is of cells elsewhere
//! ```

use super::memory::MUCH_REMOTE;
use crate::placement::culprits::only_cpu;
use crate::placement::model::Model;
use crate::placement::solver::Kind;
use base::number::{bytes, list};
use base::shell::quoted;
use base::{CpuSet, Severity};
use facts::rule::Hit;
use host::machine::{Domain, Fact, GuestCell, Role};
use std::collections::BTreeMap;

/// A cell whose memory is bound elsewhere: its number, its vCPUs' nodes, and the nodes of its memory.
struct Apart<'a> {
    number: u32,
    cell: &'a GuestCell,
    runs_on: Vec<u32>,
    bound: &'a Fact<CpuSet>,
}

pub(crate) fn cells(model: &Model) -> Vec<Hit> {
    let shown = model.machine.domains.iter().filter(|domain| domain.cells.len() > 1);
    shown.filter_map(|domain| crossed(model, domain).or_else(|| piled(model, domain))).collect()
}

/// CPUs that the vCPUs of a cell may use.
fn cpus_of(model: &Model, domain: &Domain, cell: &GuestCell) -> CpuSet {
    let own = model.vcpus(domain).filter(|thread| matches!(thread.role, Role::Vcpu(vcpu) if cell.vcpus.contains(vcpu)));
    own.filter_map(|thread| Some(&thread.affinity.as_ref()?.value)).fold(CpuSet::default(), |all, set| all.or(set))
}

fn numbers(nodes: impl IntoIterator<Item = u32>) -> String {
    list(&nodes.into_iter().map(|node| node.to_string()).collect::<Vec<_>>())
}

/// Cells that are bound to the memory of nodes where none of their vCPUs may run.
fn crossed(model: &Model, domain: &Domain) -> Option<Hit> {
    let apart = |(number, cell): (&u32, &'_ GuestCell)| {
        let bound = cell.nodes.as_ref()?;
        let runs_on = model.machine.topology.nodes_of(&cpus_of(model, domain, cell));
        let is_apart = !runs_on.is_empty() && !runs_on.iter().any(|node| bound.value.contains(*node));
        is_apart.then_some((*number, runs_on))
    };
    let apart: Vec<Apart<'_>> = domain
        .cells
        .iter()
        .filter_map(|of| {
            let (number, runs_on) = apart(of)?;
            Some(Apart { number, cell: of.1, runs_on, bound: of.1.nodes.as_ref()? })
        })
        .collect();
    if apart.is_empty() {
        return None;
    }
    let said: Vec<String> = apart
        .iter()
        .map(|of| {
            format!(
                "cell {} runs on node {} and has its memory on node {}",
                of.number,
                numbers(of.runs_on.clone()),
                of.bound.value
            )
        })
        .collect();
    let title = format!("what {} takes for local memory is remote: {}", domain.name, said.join("; "));
    let mut hit = Hit::new(&domain.name, Severity::Medium, title).of_domain(&domain.name);
    for of in &apart {
        let what = format!("memory of cell {} is bound to node {} (memnode)", of.number, of.bound.value);
        hit = hit.seen(what, &of.bound.place);
        let cpus = cpus_of(model, domain, of.cell);
        hit = hit.seen(
            format!("its vCPUs {} may run on {cpus}, node {}", of.cell.vcpus, numbers(of.runs_on.clone())),
            &model.machine.topology.place,
        );
    }
    if let Some(told) = model.machine.vm_memory.get(&domain.name) {
        hit = counted(hit, told);
    }
    match exchanged(model, domain, &apart).and_then(|to| model.proposal.moving(&to)) {
        Some((changes, _)) => hit.changes = changes,
        None => from_next_start(model, domain, apart.iter().map(|of| (of.number, of.cell)), &mut hit),
    }
    Some(hit)
}

fn counted(hit: Hit, told: &Fact<BTreeMap<u32, u64>>) -> Hit {
    let parts: Vec<String> =
        told.value.iter().map(|(node, there)| format!("{} on node {node}", bytes(*there as f64))).collect();
    hit.seen(format!("its memory: {}", list(&parts)), &told.place)
}

/// The pins of cells that are apart, dealt out among them so that each is where its memory is; `None` where these do not suffice.
fn exchanged(model: &Model, domain: &Domain, apart: &[Apart<'_>]) -> Option<Vec<(usize, CpuSet)>> {
    let topology = &model.machine.topology;
    let mut pool: Vec<u32> = Vec::new();
    for of in apart {
        let own = model
            .vcpus(domain)
            .filter(|thread| matches!(thread.role, Role::Vcpu(vcpu) if of.cell.vcpus.contains(vcpu)));
        for thread in own {
            pool.push(only_cpu(thread)?);
        }
    }
    let mut to = Vec::new();
    let units = model.proposal.task.units.iter().zip(&model.proposal.subjects).enumerate();
    for (unit, (about, subject)) in units.filter(|(_, (unit, of))| unit.kind == Kind::Vcpu && of.vm == domain.name) {
        let Role::Vcpu(vcpu) = subject.role else { continue };
        let Some(of) = apart.iter().find(|of| of.cell.vcpus.contains(vcpu)) else { continue };
        let is_near = |cpu: &u32| {
            topology.cpus.get(cpu).and_then(|about| about.node).is_some_and(|node| of.bound.value.contains(node))
        };
        let at = pool.iter().position(is_near).filter(|_| !about.kept)?;
        to.push((unit, CpuSet::one(pool.remove(at))));
    }
    (!to.is_empty()).then_some(to)
}

/// What binds the memory of cells to the nodes of their vCPUs, as far as each has one.
fn from_next_start<'a>(
    model: &Model,
    domain: &Domain,
    cells: impl Iterator<Item = (u32, &'a GuestCell)>,
    hit: &mut Hit,
) {
    let element = |(number, cell): (u32, &GuestCell)| {
        let [node] = model.machine.topology.nodes_of(&cpus_of(model, domain, cell))[..] else { return None };
        Some(format!("<memnode cellid='{number}' mode='strict' nodeset='{node}'/>"))
    };
    let elements: Vec<String> = cells.filter_map(element).collect();
    let name = quoted(&domain.name);
    hit.fix.push(format!(
        "virsh edit {name}   # within <numatune>: {}; from its next start, with as much free there",
        elements.join("")
    ));
    hit.undo.push(format!("virsh edit {name}   # <memnode> as it was"));
    hit.needs = Some(base::Needs::Reload);
}

/// More memory on a node than the cells have there whose vCPUs run on it.
fn piled(model: &Model, domain: &Domain) -> Option<Hit> {
    let told = model.machine.vm_memory.get(&domain.name)?;
    let mut room: BTreeMap<u32, u64> = BTreeMap::new();
    for cell in domain.cells.values() {
        let [node] = model.machine.topology.nodes_of(&cpus_of(model, domain, cell))[..] else { return None };
        let own = room.entry(node).or_default();
        *own = own.saturating_add(cell.memory_bytes?);
    }
    let all: u64 = told.value.values().fold(0, |sum, there| sum.saturating_add(*there));
    let over = |(node, there): (&u32, &u64)| there.saturating_sub(room.get(node).copied().unwrap_or(0));
    let away: u64 = told.value.iter().map(over).fold(0, |sum, there| sum.saturating_add(there));
    let fullest = told.value.iter().max_by_key(|told| over(*told)).map(|(node, _)| *node)?;
    if all == 0 || away as f64 <= MUCH_REMOTE * all as f64 {
        return None;
    }
    let here = bytes(room.get(&fullest).copied().unwrap_or(0) as f64);
    let title = format!(
        "{} has {} more memory on node {fullest} than its cells there: vCPUs of other nodes reach theirs over the link",
        domain.name,
        bytes(away as f64)
    );
    let mut hit = Hit::new(&domain.name, Severity::Medium, title).of_domain(&domain.name);
    hit = counted(hit, told)
        .seen(format!("cells whose vCPUs run on node {fullest} have {here}"), &model.machine.topology.place);
    from_next_start(model, domain, domain.cells.iter().map(|(number, cell)| (*number, cell)), &mut hit);
    Some(hit)
}
