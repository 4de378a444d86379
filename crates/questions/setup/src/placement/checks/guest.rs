//! How domains are defined. An element that is missing means something only where the whole XML was read.

use super::shape::{self, Formed};
use crate::placement::model::Model;
use base::number::{list, many};
use base::shell::{printable, quoted};
use base::{Evidence, Severity};
use facts::rule::Hit;
use host::machine::{Disk, Domain, Interface, Role};
use std::collections::BTreeMap;

/// vCPUs from which on one queue is few.
pub(in crate::placement) const MANY_VCPUS: u32 = 4;

/// Pairs of queues that are typed at most: what the guide of this rule calls useful.
const MOST_QUEUES: u32 = 8;

/// Share of a CPU above which a worker carries a load: our own threshold.
pub(in crate::placement) const LOADED: f64 = 0.5;

fn whole(model: &Model) -> impl Iterator<Item = (&Domain, &str)> {
    model.machine.domains.iter().filter_map(|domain| Some((domain, domain.whole.as_deref()?)))
}

/// vCPUs whose threads translate the guest's instructions.
pub(crate) fn translated(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        if let Some(told) = &domain.translated {
            let title = format!("{} does not use KVM: QEMU translates every instruction", domain.name);
            hits.push(
                Hit::new(&domain.name, Severity::High, title).of_domain(&domain.name).seen(&told.value, &told.place),
            );
            continue;
        }
        let mut names = model.vcpus(domain).filter(|thread| thread.name.ends_with("/TCG"));
        let Some(first) = names.next() else { continue };
        let title =
            format!("{} does not use KVM: QEMU emulates {}", domain.name, many(1 + names.count() as u64, "vCPU"));
        let place = first.last_cpu.as_ref().map(|cpu| &cpu.place).or(first.run_share.as_ref().map(|run| &run.place));
        let place = place.map_or("the thread's name", String::as_str);
        let hit = Hit::new(&domain.name, Severity::High, title).of_domain(&domain.name);
        hits.push(hit.seen(format!("a thread is called {}", first.name), place));
    }
    hits
}

/// Devices that a server has no use for.
pub(crate) fn unused(model: &Model) -> Vec<Hit> {
    let with = model.machine.domains.iter().filter(|domain| !domain.unused.is_empty());
    let hits = with.map(|domain| {
        let names: Vec<String> = domain.unused.iter().map(|device| device.value.clone()).collect();
        let hit = Hit::new(
            &domain.name,
            Severity::Info,
            format!("{} has devices that a server does not need: {}", domain.name, list(&names)),
        );
        domain.unused.iter().fold(hit.of_domain(&domain.name), |hit, device| hit.seen(&device.value, &device.place))
    });
    hits.collect()
}

/// A CPU model by name, or none.
pub(crate) fn cpu_mode(model: &Model) -> Vec<Hit> {
    let hits = model.machine.domains.iter().filter_map(|domain| {
        let told = domain.cpu_mode.as_ref().map(|mode| (mode.value.as_str(), mode.place.as_str()));
        let (mode, place) = told.or_else(|| Some(("none", domain.whole.as_deref()?)))?;
        let named = !matches!(mode, "host-passthrough" | "host-model" | "maximum");
        named.then(|| {
            let title = format!("{} does not get the host's CPU model (mode {mode})", domain.name);
            let hit = Hit::new(&domain.name, Severity::Low, title).of_domain(&domain.name);
            hit.seen(format!("cpu mode is {mode}"), place)
        })
    });
    hits.collect()
}

/// One thread a core while vCPUs share cores: two rules that contradict each other.
pub(crate) fn topology(model: &Model) -> Vec<Hit> {
    let siblings = super::cores::siblings(model);
    let hits = model.machine.domains.iter().filter_map(|domain| {
        let shown = domain.topology.as_ref()?;
        let fits = !matches!(super::shape::formed(model, domain), Formed::Mixed(..));
        let conflict = fits && siblings.iter().any(|hit| hit.subject == domain.name);
        let title = format!("two rules disagree on the topology of {}", domain.name);
        let counts = [(shown.value.sockets, "socket"), (shown.value.cores, "core"), (shown.value.threads, "thread")]
            .map(|(count, what)| many(count.into(), what))
            .join(", ");
        let pinned = "its vCPUs are pinned to sibling threads, which calls for threads='2' (PLC-SMT)";
        conflict.then(|| {
            Hit::new(&domain.name, Severity::Info, title)
                .of_domain(&domain.name)
                .seen(format!("the guest sees {counts}: one thread per core"), &shown.place)
                .with(Evidence::in_table(pinned, "placement.threads").key("vm", domain.name.as_str()))
        })
    });
    hits.collect()
}

/// Siblings that the guest is shown and does not have: its vCPUs are not pinned to the threads of a core.
pub(crate) fn false_siblings(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let hits = model.machine.domains.iter().filter_map(|domain| {
        let shown = domain.topology.as_ref().filter(|shown| shown.value.threads > 1)?;
        let threads = shown.value.threads as usize;
        // libvirt numbers threads of a core first, then cores, then sockets.
        let cores: Vec<Vec<u32>> = (0..domain.vcpu_count())
            .collect::<Vec<u32>>()
            .chunks(threads)
            .map(|chunk| {
                let sets = chunk.iter().filter_map(|vcpu| domain.vcpu_pin(*vcpu));
                topology.cores_of(&sets.fold(base::CpuSet::default(), |all, pin| all.or(&pin.value)))
            })
            .collect();
        let wrong = cores.iter().filter(|cores| cores.len() != 1).count();
        if wrong == 0 || topology.cpus.is_empty() || topology.cores_unknown || shape::lacks_topoext(model, domain) {
            return None;
        }
        let title = format!(
            "{} sees {threads} threads per core, but {wrong} of its {} match no core of the host",
            domain.name,
            many(cores.len() as u64, "core")
        );
        let mut hit = Hit::new(&domain.name, Severity::Low, title).of_domain(&domain.name);
        let name = quoted(&domain.name);
        match shape::formed(model, domain) {
            // They are siblings, in another order: that is put right while it runs.
            Formed::Reordered(formed, moves) if formed == shown.value.threads => {
                (hit.fix, hit.undo) = shape::pinning(domain, &moves);
                hit.needs = Some(base::Needs::Nothing);
            }
            Formed::Threads(formed) | Formed::Reordered(formed, _) => {
                hit.fix.push(format!("virsh edit {name}   # {}", shape::element(model, domain, formed)));
                hit.undo.push(format!("virsh edit {name}   # the <cpu> element as it was"));
            }
            Formed::Unknown | Formed::Cores | Formed::Mixed(..) => {
                let element = shape::element(model, domain, 1);
                hit.fix.push(format!(
                    "virsh edit {name}   # {element}, or pin the vCPUs of a guest core to one host core"
                ));
                hit.undo.push(format!("virsh edit {name}   # the <cpu> element as it was"));
            }
        }
        let what = format!("the guest sees {threads} threads per core");
        Some(
            hit.seen(what, &shown.place)
                .seen("the vCPUs of a guest core are not pinned to one host core of their own", "vcpupin"),
        )
    });
    hits.collect()
}

fn emulated(interface: &Interface) -> bool {
    interface.model.as_deref().is_some_and(|model| !model.starts_with("virtio")) && interface.kind != "hostdev"
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
            } else if interface.driver.as_deref() == Some("qemu") {
                format!("{} is served by QEMU's main loop (driver qemu)", interface.name)
            } else {
                continue;
            };
            let title = format!("{} of {} does not use vhost", interface.name, domain.name);
            let mut hit = Hit::new(format!("{}-{}", domain.name, interface.name), Severity::Low, title)
                .of_domain(&domain.name)
                .seen(what, &interface.place);
            let name = quoted(&domain.name);
            // Slirp has no back end in the kernel: only another kind of network has.
            let element = match interface.kind.as_str() {
                "user" => {
                    "<interface type='bridge'>, <source bridge='BRIDGE'/>, <model type='virtio'/>; ip -br link show type bridge"
                }
                _ => "<model type='virtio'/> and <driver name='vhost'/>",
            };
            hit.fix.push(format!("virsh edit {name}   # {element}"));
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
    hit.fix.push("modprobe vhost_net   # then start these VMs anew".to_owned());
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

pub(crate) fn disks(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        for disk in &domain.disks {
            let wrong = slow(disk, domain.whole.is_some());
            if !wrong.is_empty() {
                let title = format!("disk {} of {}: {}", disk.target, domain.name, list(&wrong));
                let hit = Hit::new(format!("{}-{}", domain.name, disk.target), Severity::Low, title);
                let mut hit = hit.of_domain(&domain.name);
                (hit.fix, hit.undo) = disk_element(domain, disk);
                hits.push(wrong.iter().fold(hit, |hit, what| hit.seen(what, &disk.place)));
            }
        }
    }
    hits
}

/// The element as it must read, of this disk's own format, with what has to be there first; and the way back.
fn disk_element(domain: &Domain, disk: &Disk) -> (Vec<String>, Vec<String>) {
    let name = quoted(&domain.name);
    let edit = |what: &str| format!("virsh edit {name}   # {what}");
    let is_emulated = matches!(disk.bus.as_deref(), Some("ide" | "sata"));
    let format = disk.format.as_ref().map_or(String::new(), |format| format!(" type='{}'", printable(format)));
    let thread = disk.iothread.unwrap_or(1);
    let (mut fix, mut undo) = (Vec::new(), Vec::new());
    if domain.iothreads < thread {
        fix.push(edit(&format!("<iothreads>{thread}</iothreads>, beside <vcpu>")));
        undo.push(edit("<iothreads> as it was"));
    }
    let bus = if is_emulated {
        let first = "the guest needs its virtio driver before it boots so (Windows: virtio-win); then the disk has another name in it";
        fix.push(format!("virsh domblklist {name}   # {first}"));
        format!(
            ", <target dev='vd{}' bus='virtio'/> without the <address> that it has",
            disk.target.strip_prefix("hd").or(disk.target.strip_prefix("sd")).unwrap_or("a")
        )
    } else {
        String::new()
    };
    fix.push(edit(&format!("<driver name='qemu'{format} cache='none' io='native' iothread='{thread}'/>{bus}")));
    undo.push(edit(&format!("the elements of disk {} as they were", printable(&disk.target))));
    (fix, undo)
}

/// What costs time; that something is not there counts only where the definition is whole.
fn slow(disk: &Disk, is_whole: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    if matches!(disk.bus.as_deref(), Some("ide" | "sata")) {
        wrong.push(format!("bus {} is emulated", disk.bus.as_deref().unwrap_or_default()));
    }
    let (cache, io) = (disk.cache.as_deref(), disk.io.as_deref());
    if cache == Some("writeback") && disk.format.as_deref() == Some("raw") {
        wrong.push("cache=writeback copies through the host's page cache".to_owned());
    }
    if cache == Some("writethrough") {
        wrong.push("cache=writethrough flushes after every write".to_owned());
    }
    if io == Some("native") && !matches!(cache, None | Some("none" | "directsync" | "default")) {
        wrong.push(format!("io=native with cache={} is refused or falls back to threads", cache.unwrap_or_default()));
    }
    if cache == Some("none") && io == Some("threads") {
        wrong.push("io=threads with cache=none uses a thread per request".to_owned());
    }
    if is_whole && disk.bus.as_deref() == Some("virtio") && disk.iothread.is_none() && io == Some("native") {
        wrong.push("no iothread: QEMU's main loop serves it".to_owned());
    }
    wrong
}

pub(crate) fn unsafe_cache(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        for disk in domain.disks.iter().filter(|disk| disk.cache.as_deref() == Some("unsafe")) {
            let title = format!("disk {} of {} loses data if the host crashes", disk.target, domain.name);
            hits.push(
                Hit::new(format!("{}-{}", domain.name, disk.target), Severity::High, title)
                    .of_domain(&domain.name)
                    .seen("cache='unsafe'", &disk.place),
            );
        }
    }
    hits
}

/// Disks with a limit.
pub(crate) fn throttled(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        for disk in &domain.disks {
            let Some(limits) = &disk.throttle else { continue };
            let to = if limits.is_empty() { String::new() } else { format!(": {limits}") };
            let title = format!("disk {} of {} is throttled on purpose{to}", disk.target, domain.name);
            hits.push(
                Hit::new(format!("{}-{}", domain.name, disk.target), Severity::Info, title)
                    .of_domain(&domain.name)
                    .filling("TARGET", quoted(&disk.target))
                    .seen("it has <iotune>", &disk.place),
            );
        }
    }
    hits
}

/// Guests on small pages that have a device of the host or a user-space switch.
pub(crate) fn huge_pages(model: &Model) -> Vec<Hit> {
    let hits = whole(model).filter_map(|(domain, place)| {
        let shared = domain.interfaces.iter().filter(|interface| interface.kind == "vhostuser").count();
        let devices = shared + domain.host_devices.len();
        (devices > 0 && !domain.huge_pages).then(|| {
            let title = format!(
                "{} is on 4 KiB pages, and {} into its memory",
                domain.name,
                if devices == 1 { "a device writes" } else { "devices write" }
            );
            Hit::new(&domain.name, Severity::Medium, title)
                .of_domain(&domain.name)
                .seen(format!("{} by vhostuser or hostdev", many(devices as u64, "device")), place)
                .seen("no <hugepages/>", place)
        })
    });
    hits.collect()
}
