//! A VM by QEMU's command line: what it was started with, where no libvirt describes it.
//!
//! In: `/proc/<pid>/cmdline`, arguments ended by zero bytes. Out: a [`Domain`] without pins, because QEMU takes none.
//! ```text
//! -smp 4,sockets=1,cores=2,threads=2    -m 4G    -cpu host    -object iothread,id=io0
//! -netdev tap,id=n0,vhost=on,queues=2   -device virtio-net-pci,netdev=n0     or JSON: -netdev {"type":"tap",..}
//! -blockdev {"node-name":"s",..,"cache":{"direct":true}}   -blockdev {"node-name":"f","file":"s",..}   -device virtio-blk-pci,drive=f
//! ```
//! Options: qemu(1) 7.2; a comma in a value is doubled (docs/system/invocation, "QemuOpts"). Libvirt writes JSON since 8.0.

use super::{Disk, Domain, Fact, GuestTopology, Interface, small_monitor};
use base::CpuSet;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// An option's keys and values; what has no key is `type`.
pub(crate) type Keys = BTreeMap<String, String>;

/// Describes the VM `name`; facts are quoted by `place`.
pub(crate) fn domain_of(command: &str, name: &str, place: &str) -> Domain {
    let mut domain = Domain {
        name: name.to_owned(),
        by_command: !command.is_empty(),
        monitor: small_monitor(command),
        ..Domain::default()
    };
    let options = options_of(command);
    let drives = Drives::of(&options);
    // Where a part of Hyper-V is shown, nobody forgot it.
    let is_hyperv = |key: &String| ["hv-", "hv_", "+hv-", "+hv_"].iter().any(|begin| key.starts_with(begin));
    let shows_hyperv = options.iter().any(|(option, keys)| *option == "cpu" && keys.keys().any(is_hyperv));
    for (option, keys) in &options {
        let of = |key: &str| keys.get(key).map(String::as_str);
        let kind = of("type").or(of("driver")).or(of("qom-type")).unwrap_or_default();
        match *option {
            "smp" => processors(&mut domain, keys, place),
            "m" => domain.memory_bytes = of("type").or(of("size")).and_then(|size| bytes(size, 1 << 20)),
            "accel" if kind == "tcg" => translated(&mut domain, "-accel tcg", place),
            "machine" | "M" if of("accel") == Some("tcg") => translated(&mut domain, "-machine accel=tcg", place),
            "cpu" => {
                if let Some(on) = of("topoext").map(|on| on == "on").or(of("+topoext").map(|_| true)) {
                    domain.features.insert("topoext".to_owned(), Fact::new(on, place));
                }
                if of("kvm") == Some("off") {
                    domain.features.insert("kvm".to_owned(), Fact::new(false, place));
                }
                let shown = keys.keys().filter(|key| is_hyperv(key));
                let shown: BTreeSet<String> = shown.map(|key| key.trim_start_matches('+')[3..].to_owned()).collect();
                domain.hyperv = (!shown.is_empty()).then(|| Fact::new(shown, place));
                domain.cpu_mode = cpu_mode(kind, keys).map(|mode| Fact::new(mode.to_owned(), place));
            }
            "rtc" if of("base") == Some("localtime") && !shows_hyperv => {
                domain.windows =
                    Some(Fact::new("its clock is in local time, and -cpu has no hv- flag".to_owned(), place));
            }
            "readconfig" => domain.read_config = of("type").map(str::to_owned),
            "mem-path" => domain.huge_pages |= kind.contains("hugepages"),
            "object" if kind == "iothread" => domain.iothreads += 1,
            "object" if kind.starts_with("memory-backend-") => {
                domain.huge_pages |= of("mem-path").is_some_and(|path| path.contains("hugepages"));
                let nodes = of("host-nodes").and_then(CpuSet::parse).filter(|nodes| !nodes.is_empty());
                let policy = of("policy").unwrap_or("default").to_owned();
                // Each cell of a guest has a backend of its own.
                let others = domain.memory_nodes.take();
                domain.memory_nodes = match (nodes, others) {
                    (Some(nodes), Some((others, _))) => Some((nodes.or(&others), policy)),
                    (nodes, others) => nodes.map(|nodes| (nodes, policy)).or(others),
                };
            }
            "numa" if kind == "node" => cell(&mut domain, keys, &options, place),
            "nic" if kind != "none" => domain.interfaces.push(interface(keys, kind, &[], place)),
            "netdev" => domain.interfaces.push(interface(keys, kind, &drives.devices, place)),
            "drive" if of("if") != Some("none") || of("file").is_some() => {
                domain.disks.extend(disk(keys, place).map(|disk| drives.seen_by_guest(disk, of("id"))));
            }
            "device" if kind == "vfio-pci" => {
                let address = of("host").unwrap_or_default();
                let address =
                    if address.matches(':').count() == 1 { format!("0000:{address}") } else { address.to_owned() };
                domain.host_devices.push(Fact::new(address, place));
            }
            "device" if kind == "usb-tablet" => domain.unused.push(Fact::new("USB tablet".to_owned(), place)),
            "device" => domain.disks.extend(drives.disk(keys, kind, place)),
            _ => {}
        }
    }
    domain
}

/// Options in order, each with what stands behind it; those that take nothing are left out, or have the next one's name.
pub(crate) fn options_of(command: &str) -> Vec<(&str, Keys)> {
    let arguments: Vec<&str> = command.split('\0').collect();
    arguments.windows(2).filter_map(|pair| Some((pair[0].strip_prefix('-')?, keys(pair[1])))).collect()
}

/// `key=value,..` or a JSON object; of objects within it as `outer.key`, the way both forms call it. Lists are left alone.
fn keys(text: &str) -> Keys {
    let mut keys = Keys::new();
    if let Ok(Value::Object(object)) = serde_json::from_str::<Value>(text) {
        let mut inner: Vec<(String, Value)> = object.into_iter().collect();
        while let Some((key, value)) = inner.pop() {
            let plain = match value {
                Value::Object(object) => {
                    inner.extend(object.into_iter().map(|(name, value)| (format!("{key}.{name}"), value)));
                    continue;
                }
                Value::String(text) => text,
                Value::Bool(on) => if on { "on" } else { "off" }.to_owned(),
                Value::Number(number) => number.to_string(),
                Value::Null | Value::Array(_) => continue,
            };
            keys.insert(key, plain);
        }
        return keys;
    }
    for part in text.replace(",,", "\u{1}").split(',') {
        let (key, value) = part.split_once('=').unwrap_or(("type", part));
        // Only what stands first may leave out its key; `on` later is a switch.
        let key = if keys.contains_key("type") && key == "type" { value } else { key };
        keys.insert(key.to_owned(), value.replace('\u{1}', ","));
    }
    keys
}

/// What libvirt was asked for, as far as QEMU's option shows it. Its host-model becomes the nearest model by name with the features that
/// the host has beside it, as somebody may ask for them by hand: then nobody knows which it was.
fn cpu_mode(model: &str, keys: &Keys) -> Option<&'static str> {
    // Models of no processor, of which host-model never makes one.
    let is_generic = ["kvm", "qemu", "x86-64"].iter().any(|begin| model.starts_with(begin));
    let is_changed = !is_generic && keys.keys().any(|key| key != "type");
    match model {
        "host" | "max" => Some("host-passthrough"),
        _ if is_changed => Some(NAMED_OR_HOST_MODEL),
        _ => Some("custom"),
    }
}

/// A CPU model of which a command line does not tell whether it was asked for by its name.
pub const NAMED_OR_HOST_MODEL: &str = "a named model, or host-model";

/// A node that the guest is shown, with the host's nodes of its memory: those of the backend that it names.
fn cell(domain: &mut Domain, keys: &Keys, options: &[(&str, Keys)], place: &str) {
    let number = keys.get("nodeid").and_then(|number| number.parse().ok()).unwrap_or(domain.guest_nodes);
    domain.guest_nodes = domain.guest_nodes.saturating_add(1);
    let memory = keys.get("memdev");
    let is_its = |(option, of): &&(&str, Keys)| *option == "object" && memory.is_some() && of.get("id") == memory;
    let backend = options.iter().find(is_its).map(|(_, keys)| keys);
    let is_bound = |keys: &&Keys| keys.get("policy").is_some_and(|policy| policy == "bind");
    let nodes = backend.filter(is_bound).and_then(|keys| CpuSet::parse(keys.get("host-nodes")?));
    let known = domain.cells.entry(number).or_default();
    known.vcpus = keys.get("cpus").and_then(|cpus| CpuSet::parse(cpus)).unwrap_or_default();
    known.memory_bytes = backend.and_then(|keys| bytes(keys.get("size")?, 1));
    known.nodes = nodes.filter(|nodes| !nodes.is_empty()).map(|nodes| Fact::new(nodes, place));
}

fn translated(domain: &mut Domain, option: &str, place: &str) {
    domain.translated = Some(Fact::new(option.to_owned(), place));
}

fn processors(domain: &mut Domain, keys: &Keys, place: &str) {
    let number = |key: &str| keys.get(key).and_then(|value| value.parse::<u32>().ok());
    domain.vcpus = number("type").or(number("cpus"));
    if ["sockets", "cores", "threads"].iter().any(|key| keys.contains_key(*key)) {
        let shown = ["sockets", "dies", "cores", "threads"].map(|key| number(key).unwrap_or(1));
        let [sockets, dies, cores, threads] = shown;
        domain.topology = Some(Fact::new(GuestTopology { sockets, dies, cores, threads }, place));
        domain.vcpus = domain.vcpus.or_else(|| shown.into_iter().try_fold(1, u32::checked_mul));
    }
}

/// `4G`, `4096` (MiB), `4194304k`.
fn bytes(text: &str, plain: u64) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => plain,
        "b" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// A back end with the card that the guest sees of it, which `-nic` names beside it.
fn interface(keys: &Keys, kind: &str, devices: &[&Keys], place: &str) -> Interface {
    let id = keys.get("id");
    let device = devices.iter().find(|device| id.is_some() && device.get("netdev") == id);
    let model = device.and_then(|device| device.get("type").or(device.get("driver"))).or(keys.get("model"));
    let model = model.map(String::as_str);
    let model = model.map(|model| if model.starts_with("virtio-net") { "virtio" } else { model }.to_owned());
    let fds = |key: &str| keys.get(key).map(|fds| fds.split(':').count() as u32);
    let vhost = keys.get("vhost").is_some_and(|on| on == "on") || keys.contains_key("vhostfds");
    Interface {
        place: place.to_owned(),
        name: id.or(keys.get("ifname")).map_or(kind, String::as_str).to_owned(),
        kind: match kind {
            "vhost-user" => "vhostuser",
            "bridge" => "bridge",
            "tap" => "ethernet",
            other => other,
        }
        .to_owned(),
        source: keys.get("br").or(keys.get("ifname")).cloned(),
        mode: None,
        model,
        // Other back ends have no worker, and move no packet in QEMU: vhost-user, vhost-vdpa.
        driver: matches!(kind, "tap" | "bridge" | "user" | "socket" | "stream" | "dgram" | "l2tpv3" | "passt")
            .then(|| if vhost { "vhost" } else { "qemu" }.to_owned()),
        queues: keys.get("queues").and_then(|count| count.parse().ok()).or(fds("vhostfds")).or(fds("fds")),
    }
}

/// The devices that a guest sees of block devices, the nodes they are made of, and the iothreads.
struct Drives<'a> {
    /// By `node-name`.
    nodes: BTreeMap<&'a str, &'a Keys>,
    devices: Vec<&'a Keys>,
    /// Ids of iothreads, in their order.
    threads: Vec<&'a str>,
    is_q35: bool,
}

/// Nodes below one another; QEMU has two or three.
const MOST_NODES: usize = 8;

impl<'a> Drives<'a> {
    fn of(options: &'a [(&'a str, Keys)]) -> Self {
        let named = |wanted: &'static [&str]| {
            options.iter().filter(|(option, _)| wanted.contains(option)).map(|(_, keys)| keys)
        };
        let kind = |keys: &Keys| keys.get("type").or(keys.get("qom-type")).cloned().unwrap_or_default();
        let threads = named(&["object"]).filter(|keys| kind(keys) == "iothread");
        Self {
            nodes: named(&["blockdev"]).filter_map(|keys| Some((keys.get("node-name")?.as_str(), keys))).collect(),
            devices: named(&["device"]).collect(),
            threads: threads.filter_map(|keys| Some(keys.get("id")?.as_str())).collect(),
            is_q35: named(&["machine", "M"]).any(|keys| kind(keys).contains("q35")),
        }
    }

    /// The bus and the iothread of a device of that kind: its own, else its controller's, which its bus is named after.
    fn bus(&self, device: &Keys, kind: &str) -> Option<(&'static str, Option<u32>)> {
        let bus = match kind {
            _ if kind.starts_with("virtio-blk") || kind.starts_with("vhost-user-blk") => "virtio",
            "scsi-hd" | "scsi-block" => "scsi",
            // AHCI and IDE have the same disks, and q35 calls the buses of its AHCI `ide.0`.
            "ide-hd" if self.is_q35 || device.get("bus").is_some_and(|bus| !bus.starts_with("ide.")) => "sata",
            "ide-hd" => "ide",
            "usb-storage" => "usb",
            "nvme" => "nvme",
            _ => return None,
        };
        let controller = || {
            let id = device.get("bus")?.rsplit_once('.')?.0;
            self.devices.iter().find(|one| one.get("id").is_some_and(|known| known == id))?.get("iothread")
        };
        let thread = device.get("iothread").or_else(controller);
        Some((bus, thread.and_then(|thread| self.number(thread))))
    }

    /// The number of an iothread: libvirt has it in the name, else it counts from 1.
    fn number(&self, thread: &str) -> Option<u32> {
        let told = thread.strip_prefix("iothread").and_then(|number| number.parse().ok());
        told.or_else(|| Some(self.threads.iter().position(|known| *known == thread)? as u32 + 1))
    }

    /// The disk of a device whose `drive` is a node.
    fn disk(&self, device: &Keys, kind: &str, place: &str) -> Option<Disk> {
        let (bus, iothread) = self.bus(device, kind)?;
        let top = self.nodes.get(device.get("drive")?.as_str())?;
        let mut below = vec![*top];
        while let Some(next) = below.last().and_then(|node| self.nodes.get(node.get("file")?.as_str()))
            && below.len() < MOST_NODES
        {
            below.push(next);
        }
        // What is not a node of its own stands within the one above: `file.filename`.
        let inner = |key: &str| below.iter().rev().find_map(|node| node.get(&format!("file.{key}")).or(node.get(key)));
        let ignores_flushes = below.iter().any(|node| node.get("cache.no-flush").is_some_and(|on| on == "on"));
        let is_direct = inner("cache.direct").map(|on| on == "on");
        let writes_back = device.get("write-cache").is_none_or(|on| on != "off");
        let cache = match (ignores_flushes, is_direct, writes_back) {
            (true, ..) => Some("unsafe"),
            (_, Some(true), true) => Some("none"),
            (_, Some(true), false) => Some("directsync"),
            (_, _, false) => Some("writethrough"),
            (_, Some(false), true) => Some("writeback"),
            (_, None, true) => None,
        };
        Some(Disk {
            place: place.to_owned(),
            target: device.get("id").or(device.get("drive"))?.clone(),
            bus: Some(bus.to_owned()),
            cache: cache.map(str::to_owned),
            io: inner("aio").cloned(),
            iothread,
            format: top.get("driver").cloned(),
            throttle: None,
        })
    }

    /// A disk of `-drive` with the bus and the iothread of the device that has it.
    fn seen_by_guest(&self, mut disk: Disk, id: Option<&str>) -> Disk {
        let own = |device: &&&Keys| id.is_some() && device.get("drive").map(String::as_str) == id;
        let device = self.devices.iter().find(own);
        let kind = device.and_then(|device| device.get("type").or(device.get("driver")));
        if let Some((bus, iothread)) = device.zip(kind).and_then(|(device, kind)| self.bus(device, kind)) {
            (disk.bus, disk.iothread) = (Some(bus.to_owned()), iothread);
        }
        disk
    }
}

fn disk(keys: &Keys, place: &str) -> Option<Disk> {
    let of = |key: &str| keys.get(key).cloned();
    Some(Disk {
        place: place.to_owned(),
        target: of("id").or(of("file"))?,
        bus: of("if"),
        cache: of("cache"),
        io: of("aio"),
        iothread: None,
        format: of("format"),
        throttle: {
            let limits =
                keys.iter().filter(|(key, _)| key.starts_with("throttling.") || matches!(key.as_str(), "iops" | "bps"));
            let limits: Vec<String> = limits.map(|(key, value)| format!("{key} {value}")).collect();
            (!limits.is_empty()).then(|| limits.join(", "))
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_json_describe_a_vm() {
        let command = "/usr/bin/kvm\0-name\0web\0-smp\x008,sockets=1,dies=2,cores=2,threads=2\0-m\x004G\0-cpu\0host,+x2apic\0\
            -object\0iothread,id=io0\0-object\0{\"qom-type\":\"memory-backend-file\",\"mem-path\":\"/dev/hugepages/x\",\"host-nodes\":\"1\",\"policy\":\"bind\"}\0\
            -netdev\0tap,id=n0,ifname=tap0,vhost=on,queues=2\0-device\0virtio-net-pci,netdev=n0,mq=on\0\
            -netdev\0{\"type\":\"tap\",\"fds\":\"3:4\",\"vhost\":true,\"vhostfds\":\"5:6\",\"id\":\"n1\"}\0-device\0{\"driver\":\"e1000\",\"netdev\":\"n1\"}\0\
            -drive\0file=/a,,b.raw,if=virtio,cache=none,aio=native,format=raw\0-device\0vfio-pci,host=04:10.1\0-enable-kvm\0";
        let domain = domain_of(command, "web", "proc/9/cmdline");
        assert_eq!((domain.vcpus, domain.memory_bytes, domain.iothreads), (Some(8), Some(4 << 30), 1));
        assert!(domain.shows_groups());
        assert_eq!(domain.topology.unwrap().value, GuestTopology { sockets: 1, dies: 2, cores: 2, threads: 2 });
        assert_eq!((domain.cpu_mode.unwrap().value.as_str(), domain.huge_pages), ("host-passthrough", true));
        assert_eq!(domain.memory_nodes.unwrap().0.to_string(), "1");
        let [first, second] = &domain.interfaces[..] else { panic!("{:?}", domain.interfaces) };
        assert_eq!((first.workers(), first.source.as_deref()), (Some(2), Some("tap0")));
        assert_eq!((second.model.as_deref(), second.queues, second.workers()), (Some("e1000"), Some(2), Some(0)));
        let disk = &domain.disks[0];
        assert_eq!((disk.target.as_str(), disk.io.as_deref()), ("/a,b.raw", Some("native")));
        assert_eq!(domain.host_devices[0].value, "0000:04:10.1");
        let served =
            domain_of("kvm\0-netdev\0vhost-user,chardev=c,id=n2\0-device\0virtio-net-pci,netdev=n2\0", "v", "p");
        let served = &served.interfaces[0];
        assert_eq!((served.kind.as_str(), served.driver.as_deref(), served.workers()), ("vhostuser", None, Some(0)));
        assert!(domain.whole.is_none(), "nobody but libvirt's own XML says that there is no more");
        assert_eq!(domain_of("qemu\0-smp\0", "x", "p").vcpus, None);
        let is_windows = |cpu: &str, base: &str| {
            let command = format!("qemu\0-rtc\0base={base},driftfix=slew\0-cpu\0{cpu}\0");
            domain_of(&command, "w", "p").windows.is_some()
        };
        assert!(is_windows("host", "localtime") && is_windows("host,+x2apic", "localtime"));
        assert!(
            !is_windows("host", "utc")
                && !is_windows("host,hv_time", "localtime")
                && !is_windows("host,hv-passthrough=on", "localtime")
        );
    }

    #[test]
    fn a_disk_is_a_device_and_the_nodes_below_it() {
        let nodes = |direct: bool| {
            format!(
                "-blockdev\0{{\"driver\":\"host_device\",\"filename\":\"/dev/dm-1\",\"aio\":\"native\",\"node-name\":\"s\",\"cache\":{{\"direct\":{direct},\"no-flush\":false}}}}\0\
                 -blockdev\0{{\"node-name\":\"f\",\"driver\":\"raw\",\"file\":\"s\"}}\0"
            )
        };
        let of = |rest: &str| domain_of(&format!("qemu\0-object\0iothread,id=io-a\0{rest}"), "x", "p").disks;
        let virtio = "-device\0virtio-blk-pci,drive=f,id=virtio-disk0,iothread=io-a\0";
        let [disk] = &of(&(nodes(true) + virtio))[..] else { panic!("one disk") };
        assert_eq!((disk.target.as_str(), disk.bus.as_deref()), ("virtio-disk0", Some("virtio")));
        assert_eq!((disk.cache.as_deref(), disk.io.as_deref()), (Some("none"), Some("native")));
        assert_eq!((disk.format.as_deref(), disk.iothread), (Some("raw"), Some(1)));
        let cached = of(&(nodes(false) + &virtio.replace("virtio-blk-pci", "ide-hd,bus=ide.0")));
        assert_eq!((cached[0].bus.as_deref(), cached[0].cache.as_deref()), (Some("ide"), Some("writeback")));
        let plain = of(
            "-blockdev\0driver=qcow2,node-name=f,file.driver=file,file.filename=/a,cache.direct=on,file.aio=io_uring\0\
            -device\0virtio-scsi-pci,id=scsi0,iothread=io-a\0-device\0scsi-hd,drive=f,bus=scsi0.0,id=d,write-cache=off\0",
        );
        assert_eq!((plain[0].bus.as_deref(), plain[0].iothread), (Some("scsi"), Some(1)));
        assert_eq!((plain[0].cache.as_deref(), plain[0].io.as_deref()), (Some("directsync"), Some("io_uring")));
        assert_eq!(plain[0].format.as_deref(), Some("qcow2"));
        let drive = of("-drive\0file=/a,if=none,id=d0,cache=none\0-device\0virtio-blk-pci,drive=d0\0");
        assert_eq!(
            (drive.len(), drive[0].bus.as_deref(), drive[0].cache.as_deref()),
            (1, Some("virtio"), Some("none"))
        );
        assert!(
            of("-blockdev\0{\"node-name\":\"a\",\"file\":\"a\"}\0-device\0scsi-hd,drive=a\0").len() == 1,
            "a node below itself"
        );
    }

    #[test]
    fn a_card_in_one_option_and_cells_with_their_memory_are_read() {
        let command = "qemu\0-nic\0tap,model=e1000,ifname=tap0,script=no\0-nic\0none\0\
            -object\0memory-backend-ram,id=m0,size=4G,host-nodes=1,policy=bind\0-numa\0node,nodeid=0,cpus=0-1,memdev=m0\0\
            -object\0memory-backend-ram,id=m1,size=4G,host-nodes=0\0-numa\0node,nodeid=1,cpus=2-3,memdev=m1\0";
        let domain = domain_of(command, "x", "p");
        let [card] = &domain.interfaces[..] else { panic!("{:?}", domain.interfaces) };
        assert_eq!((card.name.as_str(), card.model.as_deref(), card.workers()), ("tap0", Some("e1000"), Some(0)));
        let [first, second] = [&domain.cells[&0], &domain.cells[&1]];
        assert_eq!((domain.guest_nodes, first.vcpus.to_string().as_str()), (2, "0-1"));
        assert_eq!((first.memory_bytes, first.nodes.as_ref().unwrap().value.to_string()), (Some(4 << 30), "1".into()));
        assert!(second.nodes.is_none(), "without a policy nothing is bound");
        assert_eq!(domain.memory_nodes.unwrap().0.to_string(), "0-1");
    }

    #[test]
    fn a_model_with_features_may_be_host_model() {
        let mode = |cpu: &str| domain_of(&format!("qemu\0-cpu\0{cpu}\0"), "x", "p").cpu_mode.unwrap().value;
        assert_eq!(mode("EPYC-Rome,x2apic=on,hypervisor=on"), NAMED_OR_HOST_MODEL);
        assert_eq!((mode("EPYC-Rome"), mode("kvm64,enforce,+sep")), ("custom".to_owned(), "custom".to_owned()));
        assert_eq!(mode("max,migratable=on"), "host-passthrough");
    }
}
