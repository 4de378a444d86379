//! Cards of guests: emulated ones, those without vhost, queues, macvtaps.

use crate::placement::model::Model;
use base::Severity;
use base::number::{list, many};
use base::shell::{printable, quoted};
use facts::rule::Hit;
use host::machine::{Domain, Interface, Role};
use std::collections::BTreeMap;

/// vCPUs from which on one queue is few.
pub(in crate::placement) const MANY_VCPUS: u32 = 4;

/// Pairs of queues that are typed at most: what the guide of this rule calls useful.
const MOST_QUEUES: u32 = 8;

/// Share of a CPU above which a worker carries a load: our own threshold.
pub(in crate::placement) const LOADED: f64 = 0.5;

/// Whether QEMU emulates the card: each access to it is an exit to QEMU.
pub(super) fn emulated(interface: &Interface) -> bool {
    interface.model.as_deref().is_some_and(|model| !model.starts_with("virtio")) && interface.kind != "hostdev"
}

/// Whether QEMU's main loop carries the packets of a card that it does not emulate: a network within QEMU, or virtio without vhost.
pub(super) fn in_main_loop(interface: &Interface) -> bool {
    let is_virtios = interface.driver.as_deref() == Some("qemu") && !interface.kind.starts_with("vhost");
    !emulated(interface) && (interface.kind == "user" || is_virtios)
}

/// The element of a card that the kernel serves. Slirp has no back end in the kernel: only another kind of network has.
pub(super) fn with_vhost(interface: &Interface) -> &'static str {
    match interface.kind.as_str() {
        "user" => {
            "<interface type='bridge'>, <source bridge='BRIDGE'/>, <model type='virtio'/>; ip -br link show type bridge"
        }
        _ => "<model type='virtio'/> and <driver name='vhost'/>",
    }
}

/// Emulated cards, and virtio without vhost.
pub(crate) fn network(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        for interface in &domain.interfaces {
            let what = if emulated(interface) {
                let behind = if interface.kind == "user" { " behind slirp, a network within QEMU" } else { "" };
                format!(
                    "{} is an emulated {} card{behind}",
                    interface.name,
                    interface.model.as_deref().unwrap_or("card")
                )
            } else if interface.kind == "user" {
                format!("{} is a network within QEMU (slirp): every packet goes through its main loop", interface.name)
            } else if in_main_loop(interface) {
                format!("{} is served by QEMU's main loop (driver qemu)", interface.name)
            } else {
                continue;
            };
            let title = format!("{} of {} does not use vhost", interface.name, domain.name);
            let mut hit = Hit::new(format!("{}-{}", domain.name, interface.name), Severity::Low, title)
                .of_domain(&domain.name)
                .seen(what, &interface.place);
            let name = quoted(&domain.name);
            hit.fix.push(format!("virsh edit {name}   # {}", with_vhost(interface)));
            hit.undo.push(format!("virsh edit {name}   # the <interface> as it was"));
            hits.push(hit);
        }
    }
    hits.extend(vhost_absent(model));
    hits
}

/// virtio cards that the kernel would serve, on a host that has not loaded what serves them.
fn vhost_absent(model: &Model) -> Option<Hit> {
    let absent = model.machine.vhost_net.as_ref().filter(|told| !told.value)?;
    let served = |domain: &&Domain| {
        let has_worker = model.helpers(domain).any(|thread| thread.role == Role::Vhost);
        !has_worker && domain.interfaces.iter().any(|interface| interface.workers() != Some(0))
    };
    let served: Vec<&Domain> = model.machine.domains.iter().filter(served).collect();
    if served.is_empty() {
        return None;
    }
    let names: Vec<String> = served.iter().map(|domain| domain.name.clone()).collect();
    let title = format!("vhost_net is not loaded: QEMU's main loop carries the packets of {}", list(&names));
    let mut hit = Hit::new("vhost_net", Severity::Low, title)
        .seen("neither a module vhost_net nor a device vhost-net", &absent.place);
    for domain in served {
        let interface = domain.interfaces.iter().find(|interface| interface.workers() != Some(0));
        let place = interface.map_or("", |interface| interface.place.as_str());
        hit = hit.seen(format!("{} has a virtio card and no vhost thread", domain.name), place);
    }
    hit.fix.push("modprobe vhost_net   # then restart these VMs".to_owned());
    hit.fix.push("echo vhost_net > /etc/modules-load.d/kvmscope-vhost_net.conf   # keeps it after a reboot".to_owned());
    hit.undo.push("rm /etc/modules-load.d/kvmscope-vhost_net.conf; modprobe -r vhost_net".to_owned());
    Some(hit)
}

/// One queue for many vCPUs; where workers have no CPU to spare, that is a conflict of two rules instead.
pub(crate) fn queues(model: &Model) -> Vec<Hit> {
    let disputed = super::conflicts::queues(model);
    let mut hits = few_queues(model);
    hits.retain(|hit| disputed.iter().all(|other| other.subject != hit.subject));
    hits
}

/// One queue for many vCPUs, where its worker is known to be busy.
pub(super) fn few_queues(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in model.machine.domains.iter().filter(|domain| domain.vcpu_count() >= MANY_VCPUS) {
        let single = domain
            .interfaces
            .iter()
            .filter(|interface| interface.workers() != Some(0) && interface.queues.unwrap_or(1) == 1);
        let single: Vec<&Interface> = single.collect();
        let workers = model.helpers(domain).filter(|thread| thread.role == Role::Vhost);
        let busiest = workers.filter_map(|thread| thread.run_share.as_ref()).max_by(|a, b| a.value.total_cmp(&b.value));
        let (Some(interface), Some(run)) = (single.first(), busiest.filter(|run| run.value > LOADED)) else { continue };
        let title = format!(
            "{} has one queue for {}, and its worker used {:.2} CPUs",
            interface.name,
            many(domain.vcpu_count().into(), "vCPU"),
            run.value
        );
        let hit = Hit::new(format!("{}-{}", domain.name, interface.name), Severity::Medium, title);
        // More pairs than these cost more vectors and workers than they carry.
        let hit = hit.of_domain(&domain.name).filling("N", domain.vcpu_count().min(MOST_QUEUES));
        hits.push(
            hit.seen("one queue pair", &interface.place)
                .seen(format!("a vhost worker used {:.2} CPUs", run.value), &run.place),
        );
    }
    hits
}

/// Mode vepa with two guests on one card.
pub(crate) fn vepa(model: &Model) -> Vec<Hit> {
    let mut on: BTreeMap<&str, Vec<(&str, &Interface)>> = BTreeMap::new();
    for domain in &model.machine.domains {
        for interface in domain.interfaces.iter().filter(|interface| interface.mode.as_deref() == Some("vepa")) {
            on.entry(interface.source.as_deref().unwrap_or_default()).or_default().push((&domain.name, interface));
        }
    }
    on.retain(|_, users| users.iter().any(|user| user.0 != users[0].0));
    let hits = on.into_iter().map(|(device, users)| {
        let title = format!(
            "{} guests use {device} in mode vepa and reach each other only through the external switch",
            users.len()
        );
        let hit = Hit::new(device, Severity::Low, title);
        users.iter().fold(hit, |mut hit, (domain, interface)| {
            let edit = |mode: &str| {
                format!("virsh edit {}   # <source dev='{}' mode='{mode}'/>", quoted(domain), printable(device))
            };
            hit.fix.push(edit("bridge"));
            hit.undo.push(edit("vepa"));
            hit.seen(format!("{} of {domain}", interface.name), &interface.place)
        })
    });
    hits.collect()
}
