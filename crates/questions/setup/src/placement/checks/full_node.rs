//! A node that has no memory left while another one has plenty: what keeps to it, and what would let it go.

use crate::placement::model::Model;
use base::number::{bytes, list, many};
use base::shell::quoted;
use base::{CpuSet, Evidence};
use facts::rule::Hit;
use host::Machine;
use host::machine::{Domain, Manager, Role, own_unit};
use std::collections::BTreeSet;

/// Parts of a node's memory that are free where it is full, and where it has room: our own limits.
pub(in crate::placement) const FULL: f64 = 0.02;
pub(in crate::placement) const ROOMY: f64 = 0.25;

/// VMs that a title names.
const MOST_NAMED: usize = 3;

/// A full node, and the one with most room beside it: numbers and free bytes.
struct Nodes {
    full: (u32, u64),
    roomy: (u32, u64),
}

fn uneven(machine: &Machine) -> Option<Nodes> {
    let nodes = machine.nodes.iter().filter_map(|(number, node)| Some((*number, node.free_bytes?, node.total_bytes?)));
    let all: Vec<(u32, u64, f64)> =
        nodes.map(|(node, free, all)| (node, free, free as f64 / all.max(1) as f64)).collect();
    let full = all.iter().find(|(.., part)| *part <= FULL)?;
    let roomy = all.iter().filter(|(.., part)| *part >= ROOMY).max_by_key(|(_, free, _)| *free)?;
    Some(Nodes { full: (full.0, full.1), roomy: (roomy.0, roomy.1) })
}

/// The hit with what keeps memory to a full node; true if VMs are bound to it.
pub(super) fn of_node(model: &Model, hit: &mut Hit) -> bool {
    let Some(nodes) = uneven(&model.machine) else { return false };
    let before = hit.evidence.len();
    reclaims(&model.machine, &nodes, hit);
    let is_bound = binds(model, &nodes, hit);
    if hit.evidence.len() == before {
        return false;
    }
    for (node, free) in [nodes.full, nodes.roomy] {
        let place = format!("sys/devices/system/node/node{node}/meminfo");
        hit.evidence.push(Evidence::new(format!("node {node} has {} free", bytes(free as f64)), place));
    }
    is_bound
}

/// A node that is emptied before another one gives, though that one has room (Documentation/admin-guide/sysctl/vm.rst,
/// zone_reclaim_mode, Linux 6.12).
fn reclaims(machine: &Machine, nodes: &Nodes, hit: &mut Hit) {
    const MODE: &str = "proc/sys/vm/zone_reclaim_mode";
    let is_on = |mode: &&str| mode.parse::<u64>().is_ok_and(|mode| mode & 1 == 1);
    let Some(mode) = machine.setting(MODE).map(str::trim).filter(is_on) else { return };
    hit.title = format!(
        "{}: with vm.zone_reclaim_mode {mode}, node {} is full while node {} has {} free",
        hit.title,
        nodes.full.0,
        nodes.roomy.0,
        bytes(nodes.roomy.1 as f64)
    );
    hit.evidence.push(Evidence::new(format!("vm.zone_reclaim_mode is {mode}"), MODE));
    hit.fix.push(format!("echo 0 > /{MODE}"));
    hit.undo.push(format!("echo {mode} > /{MODE}"));
}

/// What binds a VM's memory to one node alone: its definition, the policy of its mappings, the nodes that its group leaves it.
fn bound_to(machine: &Machine, domain: &Domain, node: u32) -> Option<Evidence> {
    let only = |nodes: &CpuSet| nodes.len() == 1 && nodes.contains(node);
    let is_strict = |mode: &str| matches!(mode, "strict" | "bind" | "restrictive");
    if let Some((_, mode)) = domain.memory_nodes.as_ref().filter(|(nodes, mode)| only(nodes) && is_strict(mode)) {
        let what = format!("memory of {} is bound to node {node} ({mode})", domain.name);
        return Some(Evidence::new(what, domain.whole.as_deref().unwrap_or("its definition, numatune")));
    }
    if let Some(told) = machine.vm_bound.get(&domain.name).filter(|told| only(&told.value)) {
        return Some(Evidence::new(format!("mappings of {} are bound to node {node}", domain.name), &told.place));
    }
    let emulator = machine.threads_of(&domain.name).find(|thread| thread.role == Role::Emulator)?;
    emulator.memory_nodes.as_ref().filter(|nodes| only(nodes))?;
    Some(Evidence::new(
        format!("{} may have memory of node {node} alone", domain.name),
        "proc/PID/status, Mems_allowed_list",
    ))
}

/// VMs that are bound to the full node: one of them fits on the other.
fn binds(model: &Model, nodes: &Nodes, hit: &mut Hit) -> bool {
    let machine = &model.machine;
    let bound: Vec<(&Domain, Evidence)> =
        machine.domains.iter().filter_map(|domain| Some((domain, bound_to(machine, domain, nodes.full.0)?))).collect();
    if bound.is_empty() {
        return false;
    }
    let names: Vec<String> = bound.iter().map(|(domain, _)| domain.name.clone()).collect();
    let named = if names.len() > MOST_NAMED { many(names.len() as u64, "VM") } else { list(&names) };
    hit.title = format!(
        "{}: node {} is full and {named} may have memory of no other, while node {} has {} free",
        hit.title,
        nodes.full.0,
        nodes.roomy.0,
        bytes(nodes.roomy.1 as f64)
    );
    let size = |domain: &Domain| {
        let counted = || machine.vm_memory.get(&domain.name).map(|told| told.value.values().sum());
        domain.memory_bytes.or_else(counted)
    };
    let sized = bound.iter().filter_map(|(domain, _)| Some((size(domain)?, *domain)));
    let fits =
        sized.filter(|(bytes, _)| *bytes <= nodes.roomy.1).min_by_key(|(bytes, domain)| (*bytes, domain.name.clone()));
    hit.evidence.extend(bound.iter().map(|(_, told)| told.clone()));
    if of_group(machine, &bound, nodes, hit) {
        return true;
    }
    match fits {
        Some((_, domain)) => moved(model, domain, nodes, hit),
        None => hit.fix.push(format!(
            "virsh numatune {}   # none is known to fit on node {}: with --nodeset of both, it has what either has",
            quoted(&names[0]),
            nodes.roomy.0
        )),
    }
    true
}

/// Where a group, and nothing of the VMs' own, leaves them that node alone, its owner gives it the other one as well: at once, and no binding
/// of a VM reaches beyond it (Documentation/admin-guide/cgroup-v2.rst, cpuset.mems, Linux 6.12; systemd.resource-control(5), AllowedMemoryNodes).
fn of_group(machine: &Machine, bound: &[(&Domain, Evidence)], nodes: &Nodes, hit: &mut Hit) -> bool {
    let only = |path: &str| {
        let left = machine.cgroups.get(path).and_then(|group| group.memory_nodes.as_ref());
        left.is_some_and(|left| left.len() == 1 && left.contains(nodes.full.0))
    };
    let is_its_own = |domain: &Domain| domain.memory_nodes.is_some() || machine.vm_bound.contains_key(&domain.name);
    let highest = |domain: &Domain| {
        let emulator = machine.threads_of(&domain.name).find(|thread| thread.role == Role::Emulator)?;
        let group = emulator.cgroup.as_deref()?;
        let above = group.match_indices('/').skip(1).map(|(at, _)| &group[..at]).chain([group]);
        above.filter(|path| !path.is_empty()).find(|path| only(path)).map(str::to_owned)
    };
    let groups: Option<BTreeSet<String>> =
        bound.iter().map(|(domain, _)| highest(domain).filter(|_| !is_its_own(domain))).collect();
    let Some(path) = groups.filter(|groups| groups.len() == 1).and_then(|groups| groups.into_iter().next()) else {
        return false;
    };
    let both = CpuSet::one(nodes.full.0).or(&CpuSet::one(nodes.roomy.0));
    let line = |nodes: &CpuSet| match own_unit(&path).map(quoted) {
        Some(unit) => format!("systemctl set-property --runtime {unit} AllowedMemoryNodes={nodes}"),
        None => format!("echo {nodes} > {}", quoted(&format!("/sys/fs/cgroup{path}/cpuset.mems"))),
    };
    hit.evidence
        .push(Evidence::new(format!("{path} may have memory of node {} alone", nodes.full.0), "cpuset.mems.effective"));
    hit.fix.push(line(&both));
    hit.undo.push(line(&CpuSet::one(nodes.full.0)));
    true
}

/// A VM's memory and its vCPUs on the other node. libvirt moves no strict memory of a running VM: from its next start.
fn moved(model: &Model, domain: &Domain, nodes: &Nodes, hit: &mut Hit) {
    let (name, to) = (quoted(&domain.name), nodes.roomy.0);
    hit.needs = Some(base::Needs::Reload);
    match model.machine.manager_of(domain) {
        Manager::Libvirt => {}
        Manager::OpenStack { server, .. } => {
            hit.fix.push(format!("openstack server migrate {}   # nova binds memory and vCPUs, and chooses nodes again when it places an \
                                  instance", quoted(&server)));
            return;
        }
        _ => {
            hit.fix.push(format!("virsh edit {name}   # <numatune><memory mode='strict' nodeset='{to}'/></numatune>, and its vCPUs to CPUs of node {to}"));
            hit.undo.push(format!("virsh edit {name}   # <numatune> as it was"));
            return;
        }
    }
    let mode = domain.memory_nodes.as_ref().map_or("strict", |(_, mode)| mode);
    let numatune = |nodes: &CpuSet| format!("virsh numatune {name} --mode {mode} --nodeset {nodes} --config");
    hit.fix.push(format!("{}   # from its next start, with its vCPUs:", numatune(&CpuSet::one(to))));
    hit.undo.push(match &domain.memory_nodes {
        Some((was, _)) => numatune(was),
        None => format!("virsh edit {name}   # <numatune> as it was"),
    });
    let topology = &model.machine.topology;
    let there = topology.nodes().remove(&to).unwrap_or_default();
    let free = there.and(&model.unbound()).without(topology.isolated.as_ref().unwrap_or(&CpuSet::default()));
    let pins = (0..domain.vcpu_count()).filter_map(|vcpu| Some((vcpu, &domain.vcpu_pin(vcpu)?.value)));
    let pins: Vec<_> = pins.filter(|(_, pin)| !pin.meets(&there)).collect();
    let one_each = free.len() >= pins.len() && pins.iter().all(|(_, pin)| pin.len() == 1);
    let all = if free.is_empty() { &there } else { &free };
    for ((vcpu, pin), cpu) in pins.iter().zip(free.iter().map(Some).chain(std::iter::repeat(None))) {
        let cpus = cpu.filter(|_| one_each).map_or_else(|| all.to_string(), |cpu| cpu.to_string());
        hit.fix.push(format!("virsh vcpupin {name} {vcpu} {cpus} --config"));
        hit.undo.push(format!("virsh vcpupin {name} {vcpu} {pin} --config"));
    }
    if let Some(pin) = domain.emulator_pin().filter(|pin| !pin.value.meets(&there)) {
        let rest: CpuSet = free.iter().skip(if one_each { pins.len() } else { 0 }).collect();
        hit.fix.push(format!("virsh emulatorpin {name} {} --config", if rest.is_empty() { all } else { &rest }));
        hit.undo.push(format!("virsh emulatorpin {name} {} --config", pin.value));
    }
}
