//! What libvirt's pins do not tell: where memory really lies, and what cgroups leave of a pin.

use crate::placement::model::Model;
use crate::rule::Hit;
use base::number::{bytes, list, many, percent};
use base::shell::quoted;
use base::{Cost, CostKind, CpuSet, Evidence, Severity};
use host::machine::{Domain, Role, Thread};

/// Memory on other nodes than the vCPUs counts from this share on: our own threshold.
const MUCH_REMOTE: f64 = 0.1;

/// VMs whose vCPUs are all on some nodes, and whose memory is not.
pub fn remote(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let Some(memory) = model.machine.vm_memory.get(&domain.name) else { continue };
        let masks = model.vcpus(domain).filter_map(|thread| Some(&thread.affinity.as_ref()?.value));
        let cpus = masks.fold(CpuSet::default(), |all, set| all.or(set));
        let nodes = topology.nodes_of(&cpus);
        let all: u64 = memory.value.values().sum();
        let away: u64 = memory.value.iter().filter(|(node, _)| !nodes.contains(node)).map(|(_, bytes)| *bytes).sum();
        if nodes.is_empty() || all == 0 || away as f64 <= MUCH_REMOTE * all as f64 {
            continue;
        }
        let home: Vec<String> = nodes.iter().map(u32::to_string).collect();
        let title = format!(
            "{} of {}'s memory is remote: its vCPUs are on node {}",
            percent(away as f64 / all as f64),
            domain.name,
            list(&home)
        );
        let mut hit = Hit::new(&domain.name, Severity::Medium, title);
        for (node, there) in &memory.value {
            let far = nodes.iter().filter_map(|home| model.machine.nodes.get(home)?.distances.get(node).copied()).max();
            let distance = far.map_or(String::new(), |far| format!(", distance {far} (10 is local)"));
            hit = hit.seen(format!("{} on node {node}{distance}", bytes(*there as f64)), &memory.place);
        }
        let placed = Evidence::in_table(format!("its vCPUs may run on {cpus}"), "placement.threads");
        hit = hit.with(placed.key("vm", domain.name.as_str()));
        let farthest = |node: &u32| {
            nodes.iter().filter_map(|home| model.machine.nodes.get(home)?.distances.get(node).copied()).max()
        };
        if let Some(most) = memory.value.keys().filter_map(farthest).max() {
            hit.cost = Cost::of(
                CostKind::Modelled,
                f64::from(most) / 10.0,
                "times the access time at most, by the nodes' distance",
            );
        }
        let pid = model
            .machine
            .threads_of(&domain.name)
            .find(|thread| thread.role == Role::Emulator)
            .and_then(|thread| thread.pid);
        let pid = pid.map_or("PID".to_owned(), |pid| pid.to_string());
        let from: Vec<String> = memory.value.keys().filter(|node| !nodes.contains(node)).map(u32::to_string).collect();
        hit.fix.push(format!(
            "migratepages {pid} {} {}   # does not move huge pages; a restart with numatune does",
            from.join(","),
            home.join(",")
        ));
        hit.undo.push(format!("migratepages {pid} {} {}", home.join(","), from.join(",")));
        hits.push(hit);
    }
    hits
}

/// The pin that libvirt was asked for.
fn pin<'a>(domain: &'a Domain, thread: &Thread) -> Option<&'a host::machine::Fact<CpuSet>> {
    match thread.role {
        Role::Vcpu(vcpu) => domain.vcpu_pin(vcpu),
        Role::Emulator => domain.emulator_pin(),
        Role::IoThread(number) => domain.iothread_pins.get(&number),
        Role::Vhost | Role::Pmd | Role::Other => None,
    }
}

/// Threads of which a cgroup cuts the pin: they have fewer CPUs than libvirt says.
pub fn narrower(model: &Model) -> Vec<Hit> {
    let online = &model.machine.topology.online;
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let mut cut = Vec::new();
        for thread in model.machine.threads_of(&domain.name) {
            let (Some(pin), Some(left)) = (pin(domain, thread), model.machine.cgroup_cpus(thread)) else { continue };
            // CPUs that do not run are PLC-OFFLINE's.
            let wanted = if online.is_empty() { pin.value.clone() } else { pin.value.and(online) };
            if !wanted.is_within(&left.value) {
                cut.push((thread, wanted, left));
            }
        }
        let Some((_, _, first)) = cut.first() else { continue };
        let title = format!(
            "the cgroup of {1} allows {0} fewer CPUs than pinned",
            many(cut.len() as u64, "thread"),
            domain.name
        );
        let mut hit = Hit::new(&domain.name, Severity::Medium, title);
        let file =
            first.place.replace("cpuset.cpus.effective", "cpuset.cpus").replace("cpuset.effective_cpus", "cpuset.cpus");
        let file = format!("/{file}");
        let file = quoted(&file);
        let missing = cut.iter().fold(CpuSet::default(), |all, (_, wanted, left)| all.or(&wanted.without(&left.value)));
        for (thread, wanted, left) in &cut {
            let what = format!("{} is pinned to {wanted}; its cgroup allows {}", thread.role, wanted.and(&left.value));
            hit = hit.seen(
                what,
                format!("{}, {}", left.place, thread.affinity.as_ref().map_or("", |set| set.place.as_str())),
            );
        }
        hit.fix.push(format!(
            "echo {} > {file}   # and in its parent groups, where {missing} is missing",
            first.value.or(&missing)
        ));
        hit.undo.push(format!("echo {} > {file}", first.value));
        hits.push(hit);
    }
    hits
}
