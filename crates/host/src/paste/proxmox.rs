//! `qm config ID` of Proxmox VE: a VM's whole definition, a key and its value a line.
//!
//! ```text
//! cores: 8
//! cpu: kvm64
//! ide0: local-zfs:vm-101-disk-1,cache=writeback,size=120G
//! net0: e1000=BC:24:11:AA:BB:CC,bridge=vmbr0
//! ```
//! What is not there has Proxmox's default: a CPU model by name, one socket of one core, no cache, threads of QEMU for disks. Source: qm.conf(5),
//! Proxmox VE 8.2.

use super::{Pasted, Text};
use crate::machine::{Disk, Fact, GuestTopology, Interface};
use base::CpuSet;
use std::collections::BTreeMap;

/// Keys that nearly every VM has; several of them say that it is one.
const USUAL: &[&str] =
    &["boot", "cores", "memory", "net0", "numa", "ostype", "scsihw", "smbios1", "sockets", "vmgenid"];

/// Keys of disks that a guest works on; those of firmware and of CDs are none.
const BUSES: &[&str] = &["ide", "sata", "scsi", "virtio"];

/// What Proxmox shows of Hyper-V to a guest whose type is a Windows, from qm.conf's `ostype` on (PVE/QemuServer/CPUConfig.pm).
const OF_WINDOWS: [&str; 6] = ["relaxed", "vapic", "spinlocks", "vpindex", "synic", "stimer"];

/// `qm config 101`: what follows is of that VM.
pub(super) fn command(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(id) = asked(text.at(at)) else { return 0 };
    pasted.domain = id.to_string();
    1
}

/// The lines behind that, or pasted without it.
pub(super) fn config(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let lines = (at..text.lines.len()).map_while(|line| Some((line, pair(text.at(line))?)));
    let pairs: BTreeMap<&str, (usize, &str)> = lines.map(|(line, (key, value))| (key, (line, value))).collect();
    let end = pairs.values().map(|(line, _)| line + 1).max().unwrap_or(at);
    if USUAL.iter().filter(|key| pairs.contains_key(**key)).count() < 4 {
        return 0;
    }
    let id = pasted.domain.parse::<u32>().ok();
    let of = |key: &str| pairs.get(key).map(|(_, value)| *value);
    let number = |key: &str| of(key).and_then(|value| value.parse::<u32>().ok());
    let name = of("name").map_or_else(|| id.map_or_else(|| "VM".to_owned(), |id| id.to_string()), str::to_owned);
    let fact = |key: &str| pairs.get(key).map_or_else(|| text.place(at), |(line, _)| text.place(*line));
    pasted.domain.clone_from(&name);
    let Some(domain) = pasted.named() else { return end - at };
    let (sockets, cores) = (number("sockets").unwrap_or(1), number("cores").unwrap_or(1));
    domain.proxmox = Some(id.unwrap_or(0));
    domain.whole = Some(text.place(at));
    domain.vcpus = sockets.checked_mul(cores).filter(|vcpus| *vcpus <= base::cpus::MOST_CPUS);
    domain.topology = Some(Fact::new(GuestTopology { sockets, dies: 1, cores, threads: 1 }, fact("cores")));
    domain.cpu_mode = of("cpu").map(|model| {
        let is_hosts = matches!(model.split(',').next(), Some("host" | "max"));
        Fact::new(if is_hosts { "host-passthrough" } else { "custom" }.to_owned(), fact("cpu"))
    });
    domain.memory_bytes = of("memory").and_then(|mib| mib.parse::<u64>().ok()?.checked_mul(1 << 20));
    domain.huge_pages = of("hugepages").is_some();
    domain.cpuset = of("affinity").and_then(CpuSet::parse).map(|cpus| Fact::new(cpus, fact("affinity")));
    // It switches these on by itself, and Hyper-V's clock with them.
    if of("ostype").is_some_and(|kind| kind.starts_with("win")) {
        domain.hyperv = Some(Fact::new(OF_WINDOWS.map(str::to_owned).into(), fact("ostype")));
        domain.timers.insert("hypervclock".to_owned(), Fact::new(true, fact("ostype")));
    }
    domain.windows = of("ostype")
        .filter(|kind| kind.starts_with('w'))
        .map(|kind| Fact::new(format!("its type is {kind}"), fact("ostype")));
    for (key, (line, value)) in &pairs {
        let place = text.place(*line);
        domain.disks.extend(disk(key, value, &place));
        domain.interfaces.extend(interface(key, value, &place));
    }
    domain.iothreads = domain.disks.iter().filter(|disk| disk.iothread.is_some()).count() as u32;
    end - at
}

/// `cores: 8`; keys are words of small letters and digits.
fn pair(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(": ")?;
    let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    is_key.then_some((key, value.trim()))
}

/// The number in `qm config 101`.
fn asked(line: &str) -> Option<u32> {
    line.split_once("qm config ")?.1.split_whitespace().next()?.parse().ok()
}

/// The first value and the others by their keys.
fn values(value: &str) -> (&str, BTreeMap<&str, &str>) {
    let mut parts = value.split(',');
    let first = parts.next().unwrap_or_default();
    (first, parts.filter_map(|part| part.split_once('=')).collect())
}

fn disk(key: &str, value: &str, place: &str) -> Option<Disk> {
    let bus = BUSES.iter().find(|bus| key.strip_prefix(**bus).is_some_and(is_number))?;
    let (volume, of) = values(value);
    if volume == "none" || of.get("media") == Some(&"cdrom") {
        return None;
    }
    let extension = || volume.rsplit_once('.').map(|(_, end)| end).filter(|end| ["raw", "qcow2", "vmdk"].contains(end));
    let limits: Vec<String> = of
        .iter()
        .filter(|(key, _)| key.starts_with("iops") || key.starts_with("mbps"))
        .map(|(key, value)| format!("{key} {value}"))
        .collect();
    Some(Disk {
        place: place.to_owned(),
        target: key.to_owned(),
        bus: Some((*bus).to_owned()),
        cache: of.get("cache").map(|cache| (*cache).to_owned()),
        io: of.get("aio").map(|io| (*io).to_owned()),
        iothread: (of.get("iothread") == Some(&"1")).then_some(1),
        format: of.get("format").copied().or_else(extension).map(str::to_owned),
        throttle: (!limits.is_empty()).then(|| limits.join(", ")),
    })
}

fn interface(key: &str, value: &str, place: &str) -> Option<Interface> {
    key.strip_prefix("net").filter(|number| is_number(number))?;
    let (card, of) = values(value);
    let model = card.split_once('=').map_or(card, |(model, _)| model);
    Some(Interface {
        place: place.to_owned(),
        name: key.to_owned(),
        kind: "bridge".to_owned(),
        source: of.get("bridge").map(|bridge| (*bridge).to_owned()),
        mode: None,
        model: Some(model.to_owned()),
        driver: (model == "virtio").then(|| "vhost".to_owned()),
        queues: of.get("queues").and_then(|queues| queues.parse().ok()),
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn a_definition_is_read_whole() {
        let text = "root@pve:~# qm config 101\nboot: order=ide0\ncores: 8\ncpu: kvm64\nide0: local-zfs:vm-101-disk-1.qcow2,cache=writeback,size=120G\n\
            ide2: none,media=cdrom\nmemory: 16384\nname: win\nnet0: e1000=BC:24:11:AA:BB:CC,bridge=vmbr0\nostype: win11\n\
            scsi0: local:vm-101-disk-2,aio=native,iothread=1,iops_rd=300\nscsihw: virtio-scsi-single\nsockets: 2\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let domain = &machine.domains[0];
        assert_eq!((domain.name.as_str(), domain.proxmox, domain.vcpus), ("win", Some(101), Some(16)));
        assert_eq!((domain.memory_bytes, domain.iothreads), (Some(16 << 30), 1));
        assert_eq!(domain.cpu_mode.as_ref().unwrap().value, "custom");
        assert!(domain.windows.is_some());
        let disks: Vec<_> = domain
            .disks
            .iter()
            .map(|disk| (disk.target.as_str(), disk.cache.as_deref(), disk.throttle.as_deref()))
            .collect();
        assert_eq!(disks, [("ide0", Some("writeback"), None), ("scsi0", None, Some("iops_rd 300"))]);
        assert_eq!(domain.disks[0].format.as_deref(), Some("qcow2"));
        assert_eq!(domain.interfaces[0].model.as_deref(), Some("e1000"));
        let other = read(&[("t".to_owned(), "cores: 8\nmemory: 1\n".to_owned())]);
        assert!(other.domains.is_empty(), "two keys are anybody's");
    }
}
