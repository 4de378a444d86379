//! How domains are defined. An element that is missing means something only where the whole XML was read.

use super::shape::{self, Formed};
use crate::placement::model::Model;
use base::number::{list, many};
use base::shell::quoted;
use base::{Evidence, Severity};
use facts::rule::Hit;
use host::machine::{Domain, Manager, NAMED_OR_HOST_MODEL};

fn whole(model: &Model) -> impl Iterator<Item = (&Domain, &str)> {
    model.machine.domains.iter().filter_map(|domain| Some((domain, domain.whole.as_deref()?)))
}

/// vCPUs whose threads translate the guest's instructions.
pub(crate) fn translated(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        if let Some(told) = &domain.translated {
            let title = format!("{} does not use KVM: QEMU translates every instruction", domain.name);
            hits.push(with_kvm(model, domain, title).seen(&told.value, &told.place));
            continue;
        }
        let mut translated = model.vcpus(domain).filter(|thread| thread.name.ends_with("/TCG"));
        let Some(first) = translated.next() else { continue };
        // A list may be cut, so its threads are not counted.
        let title = format!("{} does not use KVM: QEMU emulates its vCPUs", domain.name);
        let place = first.last_cpu.as_ref().map(|cpu| &cpu.place).or(first.run_share.as_ref().map(|run| &run.place));
        let place = place.map_or("the thread's name", String::as_str);
        hits.push(with_kvm(model, domain, title).seen(format!("a thread is called {}", first.name), place));
    }
    hits
}

/// One that is to run with KVM, where the host has it.
fn with_kvm(model: &Model, domain: &Domain, title: String) -> Hit {
    let (mut hit, name) = (Hit::new(&domain.name, Severity::High, title).of_domain(&domain.name), quoted(&domain.name));
    // A list of threads has a name for it that nobody else knows.
    let is_known = domain.whole.is_some() || domain.by_command;
    if !is_known && model.machine.manager_of(domain) == Manager::Qemu {
        hit.fix.push("# <domain type='kvm'/> in its definition, or -accel kvm where it is started".to_owned());
        return hit;
    }
    hit.fix.push(format!("virsh edit {name}   # <domain type='kvm'/>, from the next start"));
    hit.undo.push(format!("virsh edit {name}   # the element as it was"));
    hit
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
        let named = !matches!(mode, "host-passthrough" | "host-model" | "maximum" | NAMED_OR_HOST_MODEL);
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
