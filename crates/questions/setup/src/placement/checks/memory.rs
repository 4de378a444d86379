//! What libvirt's pins do not tell: where memory really lies, and what cgroups leave of a pin.

use super::slice::taken;
use crate::placement::culprits::cpus_named;
use crate::placement::model::Model;
use base::number::{bytes, list, many, percent};
use base::shell::quoted;
use base::{Cost, CostKind, CpuSet, Evidence, Severity};
use facts::rule::Hit;
use host::machine::{Domain, Role, Thread};

/// Memory on other nodes than the vCPUs counts from this share on: our own threshold.
pub(in crate::placement) const MUCH_REMOTE: f64 = 0.1;

/// VMs whose vCPUs are all on some nodes, and whose memory is not.
pub(crate) fn remote(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let Some(memory) = model.machine.vm_memory.get(&domain.name) else { continue };
        let masks = model.vcpus(domain).filter_map(|thread| Some(&thread.affinity.as_ref()?.value));
        let cpus = masks.fold(CpuSet::default(), |all, set| all.or(set));
        let nodes = topology.nodes_of(&cpus);
        let all: u64 = memory.value.values().sum();
        let outside =
            |nodes: &[u32]| memory.value.iter().filter(|(node, _)| !nodes.contains(node)).map(|(_, b)| b).sum();
        let away: u64 = outside(&nodes);
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
        let from: Vec<String> = memory.value.keys().filter(|node| !nodes.contains(node)).map(u32::to_string).collect();
        let vcpus = model.proposal.part(|_, of| of.vm == domain.name && matches!(of.role, Role::Vcpu(_)));
        // Some of them alone would only be apart from the others.
        let all_move = vcpus.len() == model.vcpus(domain).count();
        // Where they go, as two commands of one page that part vCPUs and memory again are no plan.
        let planned = planned(model, domain).filter(|_| all_move).map(|cpus| topology.nodes_of(&cpus));
        let planned = planned.unwrap_or_else(|| nodes.clone());
        let at_memory = outside(&planned) as f64 <= MUCH_REMOTE * all as f64;
        let enough =
            domain.huge_pages && free_pages(model, domain, if at_memory { &nodes } else { &planned }, &mut hit);
        if all_move && !vcpus.is_empty() && (at_memory || !domain.huge_pages) {
            // The threads go to the memory: moving both would change nothing.
            hit.changes = vcpus;
            hit.explains.push(format!("PLC-NODE@{}", domain.name));
        } else if domain.huge_pages {
            huge(domain, &planned, enough, &mut hit);
        } else {
            let pid = pid.map_or("PID".to_owned(), |pid| pid.to_string());
            let (from, home) = (from.join(","), home.join(","));
            hit.fix.push(format!(
                "migratepages {pid} {from} {home}   # while it runs; each page is locked while it moves"
            ));
            hit.undo.push(if away == all && memory.value.len() == 1 && nodes.len() == 1 {
                format!("migratepages {pid} {home} {from}")
            } else {
                format!(
                    "# no undo for `migratepages {pid} {from} {home}`: afterwards it is unknown which pages were on node {from}"
                )
            });
        }
        hits.push(hit);
    }
    hits
}

/// CPUs that the placement which findings take their commands from gives a VM's vCPUs.
fn planned(model: &Model, domain: &Domain) -> Option<CpuSet> {
    let (proposal, plan) = (&model.proposal, model.proposal.advised()?);
    let own = proposal.subjects.iter().zip(&plan.places);
    let own = own.filter(|(of, _)| of.vm == domain.name && matches!(of.role, Role::Vcpu(_)));
    Some(own.fold(CpuSet::default(), |all, (_, place)| all.or(place)))
}

/// Whether one of these nodes has free huge pages for all of a VM, with what each has as evidence.
fn free_pages(model: &Model, domain: &Domain, nodes: &[u32], hit: &mut Hit) -> bool {
    let mut enough = false;
    for node in nodes {
        let Some(about) = model.machine.nodes.get(node) else { continue };
        for (kib, count, free) in about.huge_pages.iter().filter(|(_, count, _)| *count > 0) {
            let size = bytes(*kib as f64 * 1024.0);
            let place = format!("sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB");
            hit.evidence
                .push(Evidence::new(format!("node {node} has {free} of {count} huge pages of {size} free"), place));
            enough |=
                domain.memory_bytes.is_some_and(|wanted| u128::from(*free) * u128::from(*kib) * 1024 >= wanted.into());
        }
        if about.huge_pages.iter().all(|(_, count, _)| *count == 0) && !about.huge_pages.is_empty() {
            let place = format!("sys/devices/system/node/node{node}/hugepages");
            hit.evidence.push(Evidence::new(format!("node {node} has no huge pages at all"), place));
        }
    }
    enough
}

/// What can be done for memory of huge pages: a start with `numatune`, as far as its nodes have free pages.
fn huge(domain: &Domain, nodes: &[u32], enough: bool, hit: &mut Hit) {
    let name = quoted(&domain.name);
    let home: Vec<String> = nodes.iter().map(u32::to_string).collect();
    let home = home.join(",");
    if !enough {
        hit.fix.push(format!(
            "grep . /sys/devices/system/node/node*/hugepages/*/free_hugepages   # node {home} needs enough of them for {name} first"
        ));
    }
    hit.fix
        .push(format!("virsh edit {name}   # <numatune><memory mode='strict' nodeset='{home}'/>, from the next start"));
    hit.undo.push(format!("virsh edit {name}   # <numatune> as it was"));
    hit.needs = Some(base::Needs::Reload);
}

fn pin<'a>(domain: &'a Domain, thread: &Thread) -> Option<&'a host::machine::Fact<CpuSet>> {
    match thread.role {
        Role::Vcpu(vcpu) => domain.vcpu_pin(vcpu),
        Role::Emulator => domain.emulator_pin(),
        Role::IoThread(number) => domain.iothread_pins.get(&number),
        Role::Vhost | Role::Pmd | Role::Other => None,
    }
}

/// Threads of which a cgroup cuts the pin: they have fewer CPUs than libvirt says.
pub(crate) fn narrower(model: &Model) -> Vec<Hit> {
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
        let Some((thread, _, first)) = cut.first() else { continue };
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
            let allowed = wanted.and(&left.value);
            let allowed = if allowed.is_empty() { "none of them".to_owned() } else { allowed.to_string() };
            let what = format!("{} is pinned to {wanted}; its cgroup allows {allowed}", thread.role);
            hit = hit.seen(
                what,
                format!("{}, {}", left.place, thread.affinity.as_ref().map_or("", |set| set.place.as_str())),
            );
        }
        let group = model.machine.limit_of(thread).map_or("", |(path, _)| path);
        let taken = taken(&model.machine, group).and(&missing);
        if taken.is_empty() {
            hit.fix.push(format!(
                "echo {} > {file}   # and in its parent groups, where {missing} is missing",
                first.value.or(&missing)
            ));
            // What is not set there comes from above.
            let was_set = model.machine.cgroups.get(group).is_none_or(|group| group.cpus.is_some());
            let was = if was_set { first.value.to_string() } else { "''".to_owned() };
            hit.undo.push(format!("echo {was} > {file}"));
        } else {
            hit.fix.push(format!(
                "# {} belong to a partition of another group, and a set that claims them makes it invalid: pin to {} instead, or ask \
                 its owner",
                cpus_named(&taken),
                first.value
            ));
        }
        hits.push(hit);
    }
    hits
}
