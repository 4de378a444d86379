//! NICs and interrupts: where they are, where they go, how often they come.
//!
//! Files and links: Documentation/ABI/testing/sysfs-class-net, sysfs-class-net-queues and sysfs-bus-pci, Linux 6.12. A macvtap
//! has a directory of the character device that QEMU opens (drivers/net/macvtap.c), a tap a file of its flags
//! (drivers/net/tun.c).

use super::Samples;
use crate::machine::{Fact, Irq, Machine, Nic, NicKind, Steering};
use crate::{Snapshot, paste};
use base::CpuSet;
use std::collections::{BTreeMap, BTreeSet};

/// Network devices but the loopback. A `numa_node` of -1 is unknown, not node 0.
pub(super) fn nics(samples: &Samples<'_>) -> Vec<Nic> {
    let names = samples.last.entries("sys/class/net");
    names.into_iter().filter(|name| name != "lo" && name != "bonding_masters").map(|name| nic(samples, name)).collect()
}

fn nic(samples: &Samples<'_>, name: String) -> Nic {
    let snapshot = samples.last;
    let of = |file: &str| format!("sys/class/net/{name}/{file}");
    let number = |file: &str| snapshot.line(&of(file))?.parse::<i64>().ok();
    let last_part = |path: String| path.rsplit('/').next().map(str::to_owned);
    let link = |file: &str| snapshot.link(&of(file)).and_then(last_part);
    let entries = snapshot.entries(&format!("sys/class/net/{name}"));
    let device = link("device");
    let node = number("device/numa_node").and_then(|node| u32::try_from(node).ok());
    let functions = number("device/sriov_numvfs").zip(number("device/sriov_totalvfs"));
    let of_device = snapshot.entries(&of("device"));
    let (rps, xps) =
        (steering(snapshot, &of("queues"), "rx", "rps_cpus"), steering(snapshot, &of("queues"), "tx", "xps_cpus"));
    let rate = |files: [&str; 2]| {
        let rates = files.map(|file| samples.rate(&of(&format!("statistics/{file}"))));
        Some(rates[0]? + rates[1]?)
    };
    Nic {
        kind: kind(&name, device.as_deref(), &entries),
        node: node.map(|node| Fact::new(node, of("device/numa_node"))),
        address: device.filter(|device| is_pci(device)),
        lower: entries.iter().filter_map(|file| file.strip_prefix("lower_").map(str::to_owned)).collect(),
        master: link("master"),
        irqs: of_device_irqs(snapshot, &of("device/msi_irqs")),
        rx_queues: rps.0,
        rps: rps.1,
        tx_queues: xps.0,
        xps: xps.1,
        packets_per_s: rate(["rx_packets", "tx_packets"]),
        bytes_per_s: rate(["rx_bytes", "tx_bytes"]),
        virtual_functions: functions.map(|(now, most)| (now.max(0) as u32, most.max(0) as u32)),
        functions: of_device
            .iter()
            .filter(|entry| entry.starts_with("virtfn"))
            .filter_map(|entry| link(&format!("device/{entry}")))
            .collect(),
        physical_function: link("device/physfn"),
        name,
        ..Nic::default()
    }
}

/// Nodes of devices that were given to VMs and of a switch's cards; its ports get them too.
pub(super) fn pci_nodes(snapshot: &Snapshot, machine: &mut Machine) {
    let node = |address: &str| {
        let path = format!("sys/bus/pci/devices/{address}/numa_node");
        let node = u32::try_from(snapshot.line(&path)?.parse::<i64>().ok()?).ok()?;
        Some(Fact::new(node, path))
    };
    let given = machine.domains.iter().flat_map(|domain| &domain.host_devices).map(|device| device.value.clone());
    let mut addresses: Vec<String> = given.collect();
    for port in machine.switch.bridges.iter_mut().flat_map(|bridge| &mut bridge.ports) {
        // `0000:3b:00.0,representor=[0]`
        let Some(address) = port.backing.as_deref().and_then(|backing| backing.split(',').next()) else { continue };
        if is_pci(address) {
            port.node = port.node.take().or_else(|| node(address));
            addresses.push(address.to_owned());
        }
    }
    machine.pci_nodes = addresses.into_iter().filter_map(|address| Some((address.clone(), node(&address)?))).collect();
}

fn kind(name: &str, device: Option<&str>, entries: &[String]) -> NicKind {
    let has = |entry: &str| entries.iter().any(|known| known == entry);
    match device {
        // Hyper-V's devices are called after their ids.
        Some(device)
            if device.starts_with("virtio") || device.starts_with("vif-") || device.matches('-').count() == 4 =>
        {
            NicKind::Paravirtual
        }
        Some(_) => NicKind::Physical,
        None if has("bridge") => NicKind::Bridge,
        None if has("macvtap") || name.starts_with("macvtap") => NicKind::Macvtap,
        None if has("tun_flags") => NicKind::Tap,
        None => NicKind::Other,
    }
}

/// `0000:04:00.0`.
fn is_pci(name: &str) -> bool {
    name.matches(':').count() == 2 && name.contains('.')
}

fn of_device_irqs(snapshot: &Snapshot, directory: &str) -> Vec<u32> {
    snapshot.names(directory).into_iter().filter_map(|irq| irq.parse().ok()).collect()
}

/// How many queues there are, and those that are tied to CPUs.
fn steering(snapshot: &Snapshot, queues: &str, way: &str, file: &str) -> (u32, Vec<Steering>) {
    let numbers = snapshot.names(queues).into_iter();
    let numbers: BTreeSet<u32> =
        numbers.filter_map(|name| name.strip_prefix(way)?.strip_prefix('-')?.parse().ok()).collect();
    let one = |queue: &u32| {
        let path = format!("{queues}/{way}-{queue}/{file}");
        let cpus = CpuSet::parse_mask(&snapshot.line(&path)?).filter(|cpus| !cpus.is_empty())?;
        Some(Steering { queue: *queue, cpus: Fact::new(cpus, path) })
    };
    (numbers.len() as u32, numbers.iter().filter_map(one).collect())
}

/// Interrupts that came at least once, with their masks.
pub(super) fn irqs(samples: &Samples<'_>) -> Vec<Irq> {
    const FILE: &str = "proc/interrupts";
    let read = |text: String| paste::read(&[(FILE.to_owned(), text)]).irqs;
    let before = samples.both(FILE).map(|(first, _, span)| {
        let by_number = read(first).into_iter().rev().map(|irq| (irq.number, irq));
        (by_number.collect::<BTreeMap<u32, Irq>>(), span as f64 / 1e9)
    });
    let mut irqs = samples.last.read(FILE).map(read).unwrap_or_default();
    irqs.retain(|irq| irq.counts.values().any(|count| *count > 0));
    for irq in &mut irqs {
        let of = |file: &str| format!("proc/irq/{}/{file}", irq.number);
        let set = |file: &str| CpuSet::parse(&samples.last.line(&of(file))?);
        irq.affinity = set("smp_affinity_list").map(|cpus| Fact::new(cpus, of("smp_affinity_list")));
        irq.effective = set("effective_affinity_list");
        irq.node = samples.last.line(&of("node")).and_then(|node| node.parse().ok());
        if let Some((before, span_s)) = &before
            && let Some(old) = before.get(&irq.number)
        {
            let rate = |(cpu, count): (&u32, &u64)| {
                let came = count.saturating_sub(old.counts.get(cpu).copied().unwrap_or(0));
                (came > 0).then_some((*cpu, came as f64 / span_s))
            };
            irq.per_s = irq.counts.iter().filter_map(rate).collect();
        }
    }
    irqs
}
