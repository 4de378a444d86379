//! Domain XML becomes a [`Domain`], also out of a paste that holds only some of its elements.
//!
//! In: text of `virsh dumpxml`, or elements of it one after the other (`<interface>..</interface><interface>..`).
//! Nothing is fetched, entities of one's own are refused (no DTD), and size, number and depth of elements are bounded
//! ([`budget`]). Elements and attributes: libvirt.org/formatdomain.html.

use super::{Disk, Domain, Fact, GuestTopology, Interface, Nova, xml_bounds};
use crate::budget;
use base::CpuSet;
use roxmltree::{Document, Node, ParsingOptions};

/// An element of the XML.
pub type Element<'a, 'input> = Node<'a, 'input>;

/// The domains in a text; elements outside of any are told of the domain `without`.
///
/// # Errors
/// If it is no XML: what is wrong with it, and the line.
pub fn domains_of(text: &str, file: &str, line: usize, without: &str) -> Result<Vec<Domain>, String> {
    xml_bounds::check(text).map_err(|(at, reason)| {
        let row = text[..at].matches('\n').count();
        format!("{file}:{}: XML {reason}, so it was not read", line + row)
    })?;
    // A paste may hold several elements and no root, but a declaration may not stand inside of one.
    let text = text.trim_start();
    let declared = text.strip_prefix("<?xml").and_then(|rest| rest.find("?>")).map_or(0, |end| "<?xml".len() + end + 2);
    let whole = format!("<paste>{}</paste>", &text[declared..]);
    let options = ParsingOptions { allow_dtd: false, nodes_limit: budget::XML_NODES };
    let document = Document::parse_with_options(&whole, options)
        .map_err(|error| format!("{file}:{}: XML: {error}", line + error.pos().row as usize - 1))?;
    // The document would count lines from its beginning for each element.
    let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at).collect();
    let at = |node: Node<'_, '_>| format!("{file}:{}", line + ends.partition_point(|end| *end < node.range().start));
    let root = document.root_element();
    let mut domains: Vec<Domain> = Vec::new();
    for node in root.descendants().filter(|node| node.has_tag_name("domain") && child(*node, "name").is_some()) {
        let name = child(node, "name").and_then(|name| name.text()).unwrap_or_default().trim().to_owned();
        let mut domain = Domain { name, whole: Some(at(node)), id: number(node, "id"), ..Domain::default() };
        if let Some(status) = node.parent().filter(|parent| parent.has_tag_name("domstatus")) {
            running(&mut domain, status);
        }
        let kind = node.attribute("type").filter(|kind| *kind == "qemu");
        domain.translated = kind.map(|kind| Fact::new(format!("<domain type='{kind}'>"), at(node)));
        node.children().for_each(|part| take(&mut domain, part, &at));
        domains.push(domain);
    }
    let mut loose = Domain { name: without.to_owned(), ..Domain::default() };
    root.children().filter(Node::is_element).for_each(|part| take(&mut loose, part, &at));
    if loose != (Domain { name: without.to_owned(), ..Domain::default() }) {
        domains.push(loose);
    }
    Ok(domains)
}

/// What libvirt notes of a running domain (`/run/libvirt/qemu/NAME.xml`, qemuDomainObjPrivateXMLFormat of libvirt 9.0): its
/// process and the threads of its vCPUs.
fn running(domain: &mut Domain, status: Node<'_, '_>) {
    let id = |node: Node<'_, '_>| node.attribute("pid")?.parse().ok();
    domain.pid = id(status);
    let vcpus =
        child(status, "vcpus").into_iter().flat_map(|vcpus| vcpus.children().filter(|node| node.has_tag_name("vcpu")));
    domain.vcpu_threads = vcpus.filter_map(|vcpu| Some((number(vcpu, "id")?, id(vcpu)?))).collect();
}

fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|child| child.has_tag_name(name))
}

fn attribute(node: Node<'_, '_>, name: &str) -> Option<String> {
    node.attribute(name).map(str::to_owned)
}

fn number(node: Node<'_, '_>, name: &str) -> Option<u32> {
    node.attribute(name)?.parse().ok()
}

/// Takes an element that stands below `<domain>`, or that was pasted alone.
fn take(domain: &mut Domain, node: Node<'_, '_>, at: &dyn Fn(Node<'_, '_>) -> String) {
    let set = |text: Option<&str>| CpuSet::parse(text?).map(|set| Fact::new(set, at(node)));
    match node.tag_name().name() {
        "vcpu" => {
            domain.vcpus = node.text().and_then(|text| text.trim().parse().ok());
            domain.cpuset = set(node.attribute("cpuset"));
        }
        "iothreads" => {
            let count = node.text().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
            domain.iothreads = domain.iothreads.max(count);
        }
        // More ids than the count says raise the count.
        "iothreadids" => {
            let ids = node.children().filter(|child| child.has_tag_name("iothread"));
            domain.iothread_ids.extend(ids.filter_map(|child| number(child, "id")));
            domain.iothreads = domain.iothreads.max(domain.iothread_ids.len() as u32);
        }
        "memory" => domain.memory_bytes = memory(node),
        "currentMemory" => domain.current_memory_bytes = memory(node),
        "memoryBacking" => {
            domain.huge_pages = child(node, "hugepages").is_some();
            let access = child(node, "access").and_then(|access| access.attribute("mode"));
            domain.shared_memory |= access == Some("shared");
        }
        "cputune" => {
            let told =
                |name| child(node, name).and_then(|child| Some((child.text()?.trim().parse::<i64>().ok()?, child)));
            // libvirt's own period.
            let period = told("period").map_or(100_000, |(period, _)| period).max(1);
            domain.vcpu_quota = told("quota")
                .filter(|(quota, _)| *quota > 0)
                .map(|(quota, child)| Fact::new(quota as f64 / period as f64, at(child)));
            domain.cpu_shares =
                told("shares").and_then(|(shares, child)| Some(Fact::new(u64::try_from(shares).ok()?, at(child))));
            node.children().for_each(|part| take(domain, part, at));
        }
        "vcpusched" => {
            let policy = node.attribute("scheduler").unwrap_or_default().to_owned();
            let vcpus = node.attribute("vcpus").and_then(CpuSet::parse).unwrap_or_default();
            domain.realtime.push(Fact::new((vcpus, policy, number(node, "priority").unwrap_or(0)), at(node)));
        }
        "devices" | "features" => node.children().for_each(|part| take(domain, part, at)),
        "vcpupin" => {
            if let (Some(vcpu), Some(pin)) = (number(node, "vcpu"), set(node.attribute("cpuset"))) {
                domain.vcpu_pins.insert(vcpu, pin);
            }
        }
        "emulatorpin" => domain.emulator_pins.extend(set(node.attribute("cpuset"))),
        "iothreadpin" => {
            if let (Some(thread), Some(pin)) = (number(node, "iothread"), set(node.attribute("cpuset"))) {
                domain.iothread_pins.insert(thread, pin);
            }
        }
        "numatune" => {
            domain.memory_nodes = child(node, "memory").and_then(|memory| {
                let nodes = CpuSet::parse(memory.attribute("nodeset")?)?;
                Some((nodes, memory.attribute("mode").unwrap_or("strict").to_owned()))
            });
            for bound in node.children().filter(|child| child.has_tag_name("memnode")) {
                // `preferred` is no binding: such a cell may have memory of other nodes as well.
                let is_bound = bound.attribute("mode").is_none_or(|mode| matches!(mode, "strict" | "restrictive"));
                let nodes = bound.attribute("nodeset").and_then(CpuSet::parse).filter(|_| is_bound);
                if let (Some(cell), Some(nodes)) = (number(bound, "cellid"), nodes) {
                    domain.cells.entry(cell).or_default().nodes = Some(Fact::new(nodes, at(bound)));
                }
            }
        }
        "cpu" => {
            domain.cpu_mode = attribute(node, "mode").map(|mode| Fact::new(mode, at(node)));
            for feature in node.children().filter(|child| child.has_tag_name("feature")) {
                let is_on = matches!(feature.attribute("policy"), None | Some("require" | "force" | "optional"));
                let name = feature.attribute("name").unwrap_or_default().to_owned();
                domain.features.insert(name, Fact::new(is_on, at(feature)));
            }
            domain.shared_memory |= node.descendants().any(|cell| cell.attribute("memAccess") == Some("shared"));
            let cells = |numa: Node<'_, '_>| numa.children().filter(|child| child.has_tag_name("cell")).count() as u32;
            domain.guest_nodes = child(node, "numa").map_or(0, cells);
            let told = child(node, "numa").into_iter().flat_map(|numa| numa.children());
            // libvirt numbers those without a number in their order.
            for (cell, position) in told.filter(|child| child.has_tag_name("cell")).zip(0..) {
                let known = domain.cells.entry(number(cell, "id").unwrap_or(position)).or_default();
                known.vcpus = cell.attribute("cpus").and_then(CpuSet::parse).unwrap_or_default();
                known.memory_bytes = cell.attribute("memory").and_then(|told| amount(cell, told));
            }
            domain.topology = child(node, "topology").map(|node| {
                let count = |name| number(node, name).unwrap_or(1);
                let (sockets, dies) = (count("sockets"), count("dies"));
                let shown = GuestTopology { sockets, dies, cores: count("cores"), threads: count("threads") };
                Fact::new(shown, at(node))
            });
        }
        "hyperv" => {
            let is_on = |child: &Node<'_, '_>| child.is_element() && child.attribute("state") == Some("on");
            let on = node.children().filter(is_on).map(|child| child.tag_name().name().to_owned());
            domain.hyperv = Some(Fact::new(on.collect(), at(node)));
            domain.windows.get_or_insert_with(|| Fact::new("it is shown parts of Hyper-V".to_owned(), at(node)));
        }
        // QEMU has a word of `-cpu` for it.
        "kvm" => {
            let hidden = child(node, "hidden").filter(|hidden| hidden.attribute("state") == Some("on"));
            domain.features.extend(hidden.map(|hidden| ("kvm".to_owned(), Fact::new(false, at(hidden)))));
        }
        "clock" => {
            for timer in node.children().filter(|child| child.has_tag_name("timer")) {
                if let (Some(name), Some(present)) = (timer.attribute("name"), timer.attribute("present")) {
                    domain.timers.insert(name.to_owned(), Fact::new(present == "yes", at(timer)));
                }
            }
            if node.attribute("offset") == Some("localtime") {
                domain.windows.get_or_insert_with(|| Fact::new("its clock is in local time".to_owned(), at(node)));
            }
        }
        "metadata" => {
            let of = |name: &str| {
                let is_novas = |tag: &Node<'_, '_>| {
                    tag.tag_name().namespace().is_some_and(|space| space.contains("openstack.org"))
                };
                node.descendants().find(|tag| tag.tag_name().name() == name && is_novas(tag))
            };
            domain.nova = of("name").and_then(|tag| tag.text()).map(|server| Nova {
                server: server.trim().to_owned(),
                flavor: of("flavor").and_then(|tag| tag.attribute("name")).map(str::to_owned),
            });
            let is_windows =
                |child: &Node<'_, '_>| child.attribute("id").is_some_and(|id| id.contains("microsoft.com/win"));
            if let Some(named) = node.descendants().find(is_windows) {
                let id = named.attribute("id").unwrap_or_default();
                domain.windows = Some(Fact::new(format!("its definition names {id}"), at(named)));
            }
        }
        "interface" => {
            if node.attribute("type") == Some("hostdev") {
                domain.host_devices.push(Fact::new(pci_address(node).unwrap_or_default(), at(node)));
            }
            domain.interfaces.push(interface(node, at(node), domain.interfaces.len()));
        }
        "disk" if node.attribute("device").is_none_or(|device| device == "disk") => {
            domain.disks.push(disk(node, at(node)))
        }
        "hostdev" => domain.host_devices.push(Fact::new(pci_address(node).unwrap_or_default(), at(node))),
        _ => domain.unused.extend(unused(node).map(|device| Fact::new(device, at(node)))),
    }
}

/// Where the host's device sits on the PCI bus: `<source><address domain='0x0000' bus='0x04' slot='0x10' function='0x1'/>`.
fn pci_address(node: Node<'_, '_>) -> Option<String> {
    let address = child(child(node, "source")?, "address")?;
    let part = |name| u32::from_str_radix(address.attribute(name)?.trim_start_matches("0x"), 16).ok();
    Some(format!(
        "{:04x}:{:02x}:{:02x}.{:x}",
        part("domain").unwrap_or(0),
        part("bus")?,
        part("slot")?,
        part("function")?
    ))
}

/// A device that a server's guest has no use for, by the list of the Red Hat Enterprise Linux 7 Virtualization Tuning and
/// Optimization Guide, 2.4.
fn unused(node: Node<'_, '_>) -> Option<String> {
    let kind = node.attribute("device").or_else(|| node.attribute("type")).unwrap_or_default();
    let model = node.attribute("model").unwrap_or_default();
    match node.tag_name().name() {
        "sound" => Some(format!("sound card {model}").trim_end().to_owned()),
        "input" if kind == "tablet" => Some("USB tablet".to_owned()),
        "disk" if matches!(kind, "cdrom" | "floppy") => Some(format!("{kind} drive")),
        "controller" if kind == "usb" && model != "none" => Some("USB controller".to_owned()),
        "video" => {
            let model = node.children().find(|child| child.has_tag_name("model"));
            let is_there = model.and_then(|model| model.attribute("type")) != Some("none");
            is_there.then(|| "video card".to_owned())
        }
        _ => None,
    }
}

/// Bytes of `<memory unit='KiB'>`.
fn memory(node: Node<'_, '_>) -> Option<u64> {
    amount(node, node.text()?)
}

/// A number of bytes in the unit of its element; libvirt's own unit is KiB.
fn amount(node: Node<'_, '_>, told: &str) -> Option<u64> {
    let amount: u64 = told.trim().parse().ok()?;
    let unit: u64 = match node.attribute("unit").unwrap_or("KiB") {
        "b" | "bytes" => 1,
        "KB" => 1_000,
        "k" | "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "M" | "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "G" | "GiB" => 1 << 30,
        "T" | "TiB" => 1 << 40,
        _ => return None,
    };
    amount.checked_mul(unit)
}

fn interface(node: Node<'_, '_>, place: String, position: usize) -> Interface {
    let (source, driver) = (child(node, "source"), child(node, "driver"));
    let of = |name: &str, key: &str| child(node, name).and_then(|node| attribute(node, key));
    let from = |key| source.and_then(|source| attribute(source, key));
    Interface {
        place,
        name: of("alias", "name").or_else(|| of("target", "dev")).unwrap_or_else(|| format!("interface {position}")),
        kind: attribute(node, "type").unwrap_or_default(),
        source: ["bridge", "dev", "network", "path"].into_iter().find_map(from),
        mode: from("mode"),
        model: of("model", "type"),
        driver: driver.and_then(|driver| attribute(driver, "name")),
        queues: driver.and_then(|driver| number(driver, "queues")),
    }
}

fn disk(node: Node<'_, '_>, place: String) -> Disk {
    let of = |name: &str, key: &str| child(node, name).and_then(|node| attribute(node, key));
    Disk {
        place,
        target: of("target", "dev").unwrap_or_default(),
        bus: of("target", "bus"),
        cache: of("driver", "cache"),
        io: of("driver", "io"),
        iothread: child(node, "driver").and_then(|driver| number(driver, "iothread")),
        format: of("driver", "type"),
        throttle: child(node, "iotune").map(|iotune| {
            let limit = |limit: Node<'_, '_>| Some(format!("{} {}", limit.tag_name().name(), limit.text()?.trim()));
            iotune.children().filter(Node::is_element).filter_map(limit).collect::<Vec<_>>().join(", ")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_domain_is_read() {
        let text = "<?xml version='1.0'?>\n<domain type='kvm'><name>web</name><memory unit='GiB'>4</memory>\
            <vcpu placement='static' cpuset='0-3'>2</vcpu><iothreads>1</iothreads>\
            <cputune><vcpupin vcpu='0' cpuset='2'/><emulatorpin cpuset='0-1'/><iothreadpin iothread='1' cpuset='3'/></cputune>\
            <numatune><memory mode='strict' nodeset='1'/></numatune>\
            <memoryBacking><hugepages/></memoryBacking>\
            <cpu mode='host-passthrough'><topology sockets='1' cores='1' threads='2'/></cpu>\
            <devices><disk type='file' device='disk'><driver name='qemu' type='raw' cache='none' io='native' iothread='1'/>\
            <target dev='vda' bus='virtio'/></disk><disk type='file' device='cdrom'/>\
            <interface type='bridge'><source bridge='br0'/><model type='virtio'/></interface>\
            <input type='tablet' bus='usb'/><sound model='ich6'/></devices></domain>";
        let [domain] = &domains_of(text, "f", 1, "?").unwrap()[..] else { panic!("one domain") };
        assert_eq!((domain.name.as_str(), domain.memory_bytes, domain.huge_pages), ("web", Some(4 << 30), true));
        assert_eq!(domain.vcpu_pin(0).unwrap().value, CpuSet::one(2));
        assert_eq!(domain.vcpu_pin(1).unwrap().value.to_string(), "0-3");
        assert_eq!(domain.emulator_pin().unwrap().value.to_string(), "0-1");
        assert_eq!(domain.iothread_pins[&1].value, CpuSet::one(3));
        assert_eq!(domain.memory_nodes, Some((CpuSet::one(1), "strict".to_owned())));
        assert_eq!(domain.topology.as_ref().unwrap().value.threads, 2);
        assert_eq!((domain.disks.len(), domain.disks[0].iothread), (1, Some(1)));
        let unused: Vec<&str> = domain.unused.iter().map(|device| device.value.as_str()).collect();
        assert_eq!(unused, ["cdrom drive", "USB tablet", "sound card ich6"]);
        assert_eq!(domain.workers(), (0, 1), "virtio without a driver: vhost where /dev/vhost-net opens");
    }

    #[test]
    fn loose_elements_belong_to_the_domain_that_was_named() {
        let text = "<interface type='direct'><source dev='eth0' mode='vepa'/><model type='virtio'/>\
            <driver name='vhost' queues='4'/><alias name='net1'/></interface>\n<emulatorpin cpuset='1,3'/>";
        let [domain] = &domains_of(text, "f", 10, "web").unwrap()[..] else { panic!("one domain") };
        assert_eq!((domain.name.as_str(), domain.whole.as_deref(), domain.workers()), ("web", None, (4, 4)));
        assert_eq!(domain.emulator_pin().unwrap().place, "f:11");
        assert_eq!((domain.interfaces[0].name.as_str(), domain.interfaces[0].mode.as_deref()), ("net1", Some("vepa")));
    }

    #[test]
    fn entities_and_broken_xml_are_refused_with_their_line() {
        let bomb = "<!DOCTYPE d [<!ENTITY a 'aaaa'>]><domain><name>&a;</name></domain>";
        assert!(domains_of(bomb, "f", 1, "?").is_err());
        let error = domains_of("<interface>\n<source>\n</interface>", "f", 10, "?").unwrap_err();
        assert!(error.starts_with("f:12:"), "{error}");
    }
}
