//! `qm config ID` of Proxmox VE: a VM's whole definition, a key and its value a line; and `pct config ID`, that of a container.
//!
//! ```text
//! cores: 8
//! cpu: kvm64
//! ide0: local-zfs:vm-101-disk-1,cache=writeback,size=120G
//! net0: e1000=BC:24:11:AA:BB:CC,bridge=vmbr0
//! ```
//! What is not there has Proxmox's default: a CPU model by name, one socket of one core, no cache, threads of QEMU for disks. Sources: qm.conf(5) and
//! pct.conf(5), Proxmox VE 8.2.

use super::{Pasted, Text};
use crate::machine::{Disk, Fact, GaugeKind, GuestTopology, Interface};
use base::CpuSet;
use std::collections::BTreeMap;

/// Keys that nearly every VM has; several of them say that it is one.
const USUAL: &[&str] =
    &["boot", "cores", "memory", "net0", "numa", "ostype", "scsihw", "smbios1", "sockets", "vmgenid"];

/// The same of a container.
const OF_CONTAINERS: &str =
    "arch cores cpulimit cpuunits features hostname memory mp0 net0 ostype rootfs swap unprivileged";

/// What only containers have.
const ONLY_CONTAINERS: [&str; 4] = ["hostname", "rootfs", "swap", "unprivileged"];

/// Keys of disks that a guest works on; those of firmware and of CDs are none.
const BUSES: &[&str] = &["ide", "sata", "scsi", "virtio"];

/// What Proxmox shows of Hyper-V to a guest whose type is a Windows, from qm.conf's `ostype` on (PVE/QemuServer/CPUConfig.pm).
const OF_WINDOWS: [&str; 6] = ["relaxed", "vapic", "spinlocks", "vpindex", "synic", "stimer"];

/// `qm config 101`, `pct config 101`, or the file of either: what follows is of that VM or container.
pub(super) fn command(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(id) = asked(text.at(at)) else { return 0 };
    pasted.domain = id.to_string();
    // Somebody's notes stand above the keys, as comments.
    let notes = (at + 1..text.lines.len()).take_while(|line| text.at(*line).starts_with('#')).count();
    let is_note =
        pair(text.at(at + 1 + notes)).is_some() && (at + 1..=at + notes).all(|line| asked(text.at(line)).is_none());
    if is_note { 1 + notes } else { 1 }
}

/// Parts of Proxmox VE that run VMs, of those that `pveversion -v` lists.
const OF_VMS: [&str; 4] = ["proxmox-ve", "pve-manager", "pve-qemu-kvm", "qemu-server"];

/// `pveversion -v`: `proxmox-ve: 8.2.0 (running kernel: 6.8.4-2-pve)`, and a part and its version a line.
pub(super) fn versions(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if !text.at(at).starts_with("proxmox-ve: ") || !text.at(at).contains("(running kernel: ") {
        return 0;
    }
    let part = |line: usize| {
        let (name, version) = text.at(line).split_once(": ")?;
        let is_name =
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.+".contains(&byte));
        let is_version = version.bytes().any(|byte| byte.is_ascii_digit()) || version == "residual config";
        (is_name && is_version).then_some((name, version))
    };
    let parts: Vec<_> = (at..text.lines.len()).map_while(part).collect();
    for (line, (name, version)) in parts.iter().enumerate().filter(|(_, (name, _))| OF_VMS.contains(name)) {
        pasted.quote(name, "", version, text.place(at + line));
    }
    parts.len()
}

/// What is set for all nodes together, below the command that prints it.
pub(super) fn datacenter(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if !text.at(at).contains("/etc/pve/datacenter.cfg") {
        return 0;
    }
    let lines = (at + 1..text.lines.len()).map_while(|line| Some((line, pair(text.at(line))?)));
    let mut end = at + 1;
    for (line, (key, value)) in lines {
        pasted.quote(&format!("{DATACENTER}{key}"), "", value, text.place(line));
        // The unit of all its limits is KiB/s (pve-docs, datacenter.cfg.5).
        let limit = value.split(',').find_map(|part| part.trim().strip_prefix("migration=")?.parse::<f64>().ok());
        if let Some(kib) = limit.filter(|kib| key == "bwlimit" && *kib > 0.0) {
            let rate = base::number::bytes(kib * 1_024.0);
            pasted.summarize(format!("datacenter.cfg limits a migration to {kib} KiB/s, {rate}/s."), text.place(line));
        }
        end = line + 1;
    }
    if end > at + 1 { end - at } else { 0 }
}

/// What stands before the keys of `datacenter.cfg` where they are quoted.
const DATACENTER: &str = "datacenter.cfg, ";

/// A key and its value, and the line.
type Pairs<'a> = BTreeMap<&'a str, (usize, &'a str)>;

/// Those from a line on which a run of them begins: within one they were asked before, and were none of Proxmox's.
fn pairs<'a>(text: &Text<'a>, at: usize) -> Pairs<'a> {
    if at.checked_sub(1).is_some_and(|before| pair(text.at(before)).is_some()) {
        return Pairs::new();
    }
    let lines = (at..text.lines.len()).map_while(|line| Some((line, pair(text.at(line))?)));
    lines.map(|(line, (key, value))| (key, (line, value))).collect()
}

/// Whether a definition is a container's: a card is one end of a pair, and there is a file system instead of disks.
fn is_container(pairs: &Pairs<'_>) -> bool {
    let is_veth = |(key, (_, value)): (&&str, &(usize, &str))| {
        key.strip_prefix("net").is_some_and(is_number) && values(value).1.get("type") == Some(&"veth")
    };
    let is_own = ONLY_CONTAINERS.iter().any(|key| pairs.contains_key(*key)) || pairs.iter().any(is_veth);
    is_own && OF_CONTAINERS.split(' ').filter(|key| pairs.contains_key(*key)).count() >= 4
}

/// A container: no VM, so that its values stand as they are.
pub(super) fn container(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let pairs = pairs(text, at);
    if !is_container(&pairs) {
        return 0;
    }
    let id = Some(pasted.domain.as_str()).filter(|id| is_number(id));
    let host = pairs.get("hostname").map(|(_, name)| *name);
    let name = ["container", id.unwrap_or_default(), host.unwrap_or_default()];
    let name = name.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    pasted.unread(format!(
        "{name} is no VM: it runs on the host's kernel without KVM ({}); its limits are shown, and nothing else of it is judged",
        text.place(at)
    ));
    for (key, (line, value)) in &pairs {
        match (*key, value.parse::<f64>()) {
            // 0 is no limit.
            ("cpulimit", Ok(cpus)) if cpus > 0.0 => {
                pasted.gauge(GaugeKind::VcpuQuota, &name, cpus, text.place(*line));
            }
            ("memory" | "swap", Ok(_)) => pasted.quote(key, &name, &format!("{value} MiB"), text.place(*line)),
            _ => pasted.quote(key, &name, value, text.place(*line)),
        }
    }
    pairs.values().map(|(line, _)| line + 1).max().unwrap_or(at) - at
}

/// The lines of a VM, or pasted without the command.
pub(super) fn config(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let pairs = pairs(text, at);
    let end = pairs.values().map(|(line, _)| line + 1).max().unwrap_or(at);
    if USUAL.iter().filter(|key| pairs.contains_key(**key)).count() < 4 {
        // `grep` left some lines of it: they are no definition, and stand as they are.
        let Some(id) = at.checked_sub(1).and_then(|above| asked(text.at(above))) else { return 0 };
        for (key, (line, value)) in &pairs {
            pasted.quote(key, &format!("VM {id}"), value, text.place(*line));
        }
        return end - at;
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
    domain.options = pairs.iter().map(|(key, (_, value))| ((*key).to_owned(), (*value).to_owned())).collect();
    for (key, (line, value)) in &pairs {
        let place = text.place(*line);
        domain.disks.extend(disk(key, value, &place));
        domain.interfaces.extend(interface(key, value, &place));
    }
    domain.iothreads = domain.disks.iter().filter(|disk| disk.iothread.is_some()).count() as u32;
    end - at
}

/// `cores: 8`; keys are words of small letters and digits, and those that LXC itself knows begin with its name.
fn pair(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(": ")?;
    let is_word = |key: &str| key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_key = !key.is_empty() && is_word(key) || key.starts_with("lxc.");
    is_key.then_some((key, value.trim()))
}

/// The number in `qm config 101` or `/etc/pve/lxc/101.conf`.
fn asked(line: &str) -> Option<u32> {
    const COMMANDS: [&str; 2] = ["qm config ", "pct config "];
    const FOLDERS: [&str; 2] = ["/qemu-server/", "/lxc/"];
    let behind = |names: &[&str]| names.iter().find_map(|name| line.split_once(name)).map(|(_, rest)| rest);
    let number = match behind(&COMMANDS) {
        Some(rest) => rest.split_whitespace().next()?,
        None => line.split_once("/etc/pve").and_then(|_| behind(&FOLDERS))?.split_once(".conf")?.0,
    };
    number.parse().ok()
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
    fn a_container_is_no_vm_whatever_says_so() {
        let usual = "arch: amd64\ncores: 2\nmemory: 512\nostype: debian\n";
        for own in [
            "rootfs: local:subvol-7-disk-0,size=8G",
            "net0: name=eth0,bridge=vmbr0,type=veth",
            "cpulimit: 0.5\nswap: 0",
        ] {
            let text = format!("# cat /etc/pve/lxc/107.conf\n{usual}{own}\nlxc.idmap: u 0 100000 1005\n");
            let machine = read(&[("t".to_owned(), text)]);
            assert_eq!(machine.sources[0].2, 0, "{own}: {:?}", machine.strange);
            assert!(machine.domains.is_empty() && machine.unread[0].starts_with("container 107 is no VM"), "{own}");
            assert!(machine.quoted.iter().any(|told| told.what == "memory" && told.value == "512 MiB"), "{own}");
            assert_eq!(machine.gauges.len(), usize::from(own.contains("cpulimit")), "{own}");
        }
        let vm = read(&[("t".to_owned(), format!("{usual}net0: virtio=BC:24:11:AA:BB:CC,bridge=vmbr0\n"))]);
        assert_eq!(vm.domains.len(), 1, "a VM has none of a container's keys");
    }

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
