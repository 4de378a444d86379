//! VMs: the options of their QEMUs, and what libvirt defines, element by element.
//!
//! ```text
//! -smp 4,sockets=1 -device virtio-net-pci,netdev=n0,id=net0      words: `-smp 4,sockets=1`, `-device virtio-net-pci,..`
//! <cputune><vcpupin vcpu='0' cpuset='4'/></cputune>               web: cputune/vcpupin[vcpu=0] cpuset = 4
//! ```
//! What each start makes up (descriptors, secrets, paths of one run) is left out.

use super::{Area, Setting, Settings, Value};
use crate::machine::command_line::{Keys, options_of};
use crate::machine::{vm_named_in, xml_bounds};
use crate::snapshot::DOMAINS;
use crate::{Snapshot, budget};
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::BTreeMap;

/// Keys of QEMU's options whose values are those of one start.
const KEYS_OF_ONE_START: &[&str] = &["fd", "fds", "vhostfd", "vhostfds", "password-secret", "keyid", "guest", "uuid"];
/// Options that say nothing of the guest.
const OPTIONS_OF_ONE_START: &[&str] =
    &["pidfile", "S", "incoming", "chardev", "qmp", "mon", "monitor", "msg", "sandbox", "uuid", "loadvm", "D"];
/// Where libvirt keeps files of one start (`virDomainDefGetShortName` is in their names, libvirt 9.0).
const PATHS_OF_ONE_START: &[&str] = &["/domain-", "/var/run/", "/run/"];
/// Elements of a domain's XML that a start makes, or that say nothing of the guest.
const ELEMENTS_OF_ONE_START: &[&str] = &["alias", "seclabel", "uuid", "metadata", "name"];
/// Attributes that tell elements of one name apart, the surest first.
const TELLS_APART: &[&str] = &["vcpu", "vcpus", "iothread", "id", "cell", "cellid", "name", "nodeset", "index", "dev"];

pub(super) fn settings(snapshot: &Snapshot) -> Settings {
    let mut settings = Settings::new();
    for place in snapshot.find("proc/<vm>/cmdline") {
        let Some(command) = snapshot.read(&place) else { continue };
        let Some(vm) = vm_named_in(&command.replace('\0', " ")) else { continue };
        let words = options_of(&command).iter().filter_map(|(option, keys)| word(option, keys)).collect();
        settings.insert((Area::Vm, format!("{vm} command line")), Setting { value: Value::Words(words), place });
    }
    let patterns = DOMAINS.iter().map(|pattern| snapshot.find(pattern));
    for place in patterns.into_iter().find(|paths| !paths.is_empty()).unwrap_or_default() {
        let Some(text) = snapshot.read(&place) else { continue };
        settings.extend(domains(&text, &place));
    }
    settings
}

/// `-device virtio-net-pci,id=net0,netdev=n0`; `None` for what is about one start alone.
fn word(option: &str, keys: &Keys) -> Option<String> {
    const FIRST: [&str; 3] = ["type", "driver", "qom-type"];
    if OPTIONS_OF_ONE_START.contains(&option) {
        return None;
    }
    let is_lasting = |(key, value): &(&String, &String)| {
        let ends = key.rsplit('.').next().unwrap_or(key);
        !KEYS_OF_ONE_START.contains(&ends) && !PATHS_OF_ONE_START.iter().any(|path| value.contains(path))
    };
    let first = FIRST.iter().find_map(|key| keys.get(*key)).filter(|value| !value.starts_with('-'));
    let rest = keys.iter().filter(is_lasting).filter(|(key, _)| !FIRST.contains(&key.as_str()));
    let rest = rest.map(|(key, value)| format!("{key}={value}"));
    let values: Vec<String> = first.cloned().into_iter().chain(rest).collect();
    if values.is_empty() && !keys.keys().all(|key| key == "type") {
        return None;
    }
    Some(format!("-{option} {}", values.join(",")).trim_end().to_owned())
}

/// What is no XML, or more of it than anybody writes, tells nothing here; who reads placements says so.
fn domains(text: &str, place: &str) -> Settings {
    let mut settings = Settings::new();
    if xml_bounds::check(text).is_err() {
        return settings;
    }
    let options = ParsingOptions { allow_dtd: false, nodes_limit: budget::XML_NODES };
    let Ok(document) = Document::parse_with_options(text, options) else { return settings };
    for domain in document.descendants().filter(|node| node.has_tag_name("domain")) {
        let named = domain.children().find(|child| child.has_tag_name("name")).and_then(|name| name.text());
        let Some(vm) = named.map(str::trim).filter(|name| !name.is_empty()) else { continue };
        let mut told = |path: &str, value: &str| {
            let setting = Setting { value: Value::Line(value.to_owned()), place: place.to_owned() };
            settings.insert((Area::Domain, format!("{vm}: {path}")), setting);
        };
        below(domain, "", &mut told);
    }
    settings
}

/// Tells all that stands below an element at `path`.
fn below(node: Node<'_, '_>, path: &str, told: &mut dyn FnMut(&str, &str)) {
    let children: Vec<Node<'_, '_>> = node.children().filter(Node::is_element).collect();
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for child in &children {
        let tag = child.tag_name().name();
        let number = numbers.entry(tag).or_default();
        *number += 1;
        if ELEMENTS_OF_ONE_START.contains(&tag) {
            continue;
        }
        let alike = children.iter().filter(|other| other.has_tag_name(tag)).count();
        let apart = TELLS_APART.iter().find_map(|name| Some((name, child.attribute(*name)?)));
        let own = match apart {
            Some((name, value)) => format!("{tag}[{name}={value}]"),
            None if alike > 1 => format!("{tag}[{number}]"),
            None => tag.to_owned(),
        };
        let path = if path.is_empty() { own } else { format!("{path}/{own}") };
        let rest = child.attributes().filter(|attribute| apart.is_none_or(|(name, _)| *name != attribute.name()));
        rest.for_each(|attribute| told(&format!("{path} {}", attribute.name()), attribute.value()));
        let text = child.text().map(str::trim).filter(|text| !text.is_empty());
        match text {
            Some(text) => told(&path, text),
            // That it is there is what it says: `<hugepages/>`.
            None if child.attributes().len() == 0 && !child.has_children() => told(&path, "there"),
            None => {}
        }
        below(*child, &path, told);
    }
}
