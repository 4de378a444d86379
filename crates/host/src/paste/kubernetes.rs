//! What Kubernetes says of a VM: the definition of KubeVirt (`kubectl get vmi -o yaml`), and `kubectl describe pod`.
//!
//! ```text
//! kind: VirtualMachineInstance      spec.domain.cpu.cores: 4    devices.disks[0].disk.bus: sata    interfaces[0].model: e1000e
//! QoS Class: Burstable              Containers.compute.Limits.cpu: 4
//! ```
//! Both are names and values that belong together by how far they stand from the left. Source: KubeVirt user guide 1.2, "Virtual hardware",
//! "Disks and volumes", "Interfaces and networks"; kubectl 1.29.

use super::{Pasted, Text};
use crate::machine::{Complaint, Disk, Domain, Fact, GuestTopology, Interface};
use std::collections::{BTreeMap, BTreeSet};

/// Kinds of object that define a VM.
const VMS: [&str; 2] = ["VirtualMachineInstance", "VirtualMachine"];

/// How an interface is bound, as KubeVirt calls it.
const BINDINGS: &[&str] = &["bridge", "macvtap", "masquerade", "passt", "slirp", "sriov"];

/// Lines between the head of an object and its kind, of which annotations may be many.
const MOST_HEAD: usize = 64;

/// A value, by the names above it.
struct Value {
    line: usize,
    path: String,
    told: String,
}

/// A VM's definition.
pub(super) fn vm(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let is_kind = |line: usize| text.at(line).strip_prefix("kind: ").is_some_and(|kind| VMS.contains(&kind.trim()));
    let is_head = text.at(at).starts_with("apiVersion: kubevirt.io/");
    if !(is_kind(at) || is_head && (at..at + MOST_HEAD).any(is_kind)) {
        return 0;
    }
    let (values, end) = values(text, at);
    let of = |path: &str| values.iter().find(|value| value.path == path);
    let told = |path: &str| of(path).map_or("", |value| value.told.as_str());
    let (name, namespace) = (told("metadata.name").to_owned(), told("metadata.namespace").to_owned());
    let called = if namespace.is_empty() { name.clone() } else { format!("{namespace}_{name}") };
    pasted.domain.clone_from(&called);
    for value in &values {
        let path = ["spec.template.", "spec."].iter().find_map(|above| value.path.strip_prefix(above));
        pasted.quote(path.unwrap_or(&value.path), &called, &value.told, text.place(value.line));
    }
    let definition: BTreeMap<&str, (&str, String)> = values
        .iter()
        .filter_map(|value| {
            let path = value.path.split_once("spec.domain.")?.1;
            Some((path, (value.told.as_str(), text.place(value.line))))
        })
        .collect();
    if !definition.is_empty()
        && let Some(domain) = pasted.named()
    {
        define(domain, &definition, text.place(at));
        domain.kubevirt = Some((namespace, name));
        domain.is_completed |= values.iter().any(|value| COMPLETED.iter().any(|part| value.path.starts_with(part)));
        let system = of("status.guestOSInfo.id").filter(|value| value.told == "mswindows");
        domain.windows =
            system.map(|value| text.fact("its agent names mswindows".to_owned(), value.line)).or(domain.windows.take());
    }
    end - at
}

/// Other objects that add to what a definition says.
const COMPLETED: [&str; 2] = ["spec.preference", "spec.instancetype"];

fn define(domain: &mut Domain, told: &BTreeMap<&str, (&str, String)>, place: String) {
    let of = |path: &str| told.get(path).map(|(value, place)| (*value, place));
    let number = |path: &str| of(path).and_then(|(value, _)| value.parse::<u32>().ok());
    let [sockets, cores, threads] = ["cpu.sockets", "cpu.cores", "cpu.threads"].map(number);
    if sockets.or(cores).or(threads).is_some() {
        let [sockets, cores, threads] = [sockets, cores, threads].map(|count| count.unwrap_or(1));
        let vcpus = sockets.checked_mul(cores).and_then(|all| all.checked_mul(threads));
        domain.vcpus = vcpus.filter(|vcpus| *vcpus <= base::cpus::MOST_CPUS);
        domain.topology = Some(Fact::new(GuestTopology { sockets, dies: 1, cores, threads }, place));
    }
    let model = of("cpu.model");
    domain.cpu_mode = model.map(|(model, place)| {
        let mode = if matches!(model, "host-passthrough" | "host-model") { model } else { "custom" };
        Fact::new(mode.to_owned(), place)
    });
    for (timer, called) in [("hpet", "hpet"), ("kvm", "kvmclock"), ("hyperv", "hypervclock")] {
        // A timer that is named is there, unless it says otherwise.
        if let Some((present, place)) = told.iter().find_map(|(path, (value, place))| {
            let key = path.strip_prefix("clock.timer.")?.strip_prefix(timer)?;
            (key.is_empty() || key.starts_with('.')).then_some((key != ".present" || *value == "true", place))
        }) {
            domain.timers.insert(called.to_owned(), Fact::new(present, place));
        }
    }
    let shown = told.iter().filter_map(|(path, (value, place))| {
        let name = path.strip_prefix("features.hyperv.")?.split('.').next()?;
        (!(path.ends_with(".enabled") && *value == "false")).then(|| (name.to_lowercase(), place))
    });
    for (name, place) in shown {
        let known = domain.hyperv.get_or_insert_with(|| Fact::new(BTreeSet::new(), place));
        known.value.insert(if name == "synictimer" { "stimer".to_owned() } else { name });
    }
    domain.fields =
        told.iter().map(|(path, (value, place))| ((*path).to_owned(), Fact::new((*value).to_owned(), place))).collect();
    domain.huge_pages = of("memory.hugepages.pageSize").is_some();
    domain.memory_bytes = of("memory.guest").and_then(|(size, _)| bytes(size));
    for place in 0.. {
        let disk = |key: &str| of(&format!("devices.disks[{place}].{key}"));
        let inner = |key: &str| ["disk", "lun"].iter().find_map(|kind| disk(&format!("{kind}.{key}")));
        let Some((name, line)) = disk("name") else { break };
        let owned = |value: Option<(&str, &String)>| value.map(|(value, _)| value.to_owned());
        domain.disks.extend(inner("bus").map(|bus| Disk {
            place: line.clone(),
            target: name.to_owned(),
            bus: owned(Some(bus)),
            cache: owned(disk("cache")),
            io: owned(disk("io")),
            ..Disk::default()
        }));
    }
    for place in 0.. {
        let of = |key: &str| of(&format!("devices.interfaces[{place}].{key}"));
        let Some((name, line)) = of("name") else { break };
        // A virtual function has no model; one that is not bound yet has no kind.
        let binding = BINDINGS.iter().find(|binding| of(binding).is_some()).filter(|binding| **binding != "sriov");
        domain.interfaces.extend(binding.map(|binding| Interface {
            place: line.clone(),
            name: name.to_owned(),
            kind: (*binding).to_owned(),
            model: Some(of("model").map_or("virtio", |(model, _)| model).to_owned()),
            ..Interface::default()
        }));
    }
}

/// `8Gi`, `512M`.
fn bytes(size: &str) -> Option<u64> {
    let end = size.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(size.len());
    let unit = match &size[end..] {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "K" | "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return None,
    };
    size[..end].parse::<u64>().ok()?.checked_mul(unit)
}

/// `kubectl describe pod`: its class, node, limits and requests, and whatever else it says.
pub(super) fn pod(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let begins = |line: usize, name: &str| text.at(line).starts_with(name);
    if !begins(at, "Name:") || !(at + 1..at + 4).any(|line| begins(line, "Namespace:")) {
        return 0;
    }
    let (values, end) = values(text, at);
    let name = values.first().map_or(String::new(), |value| value.told.clone());
    for value in &values[1.min(values.len())..] {
        pasted.quote(&value.path, &name, &value.told, text.place(value.line));
        if let Some(container) = value.path.strip_suffix("State.Reason").filter(|_| value.told == "OOMKilled") {
            let container = container.trim_end_matches("Last ").trim_end_matches('.');
            let path = format!("{container}.Limits.memory");
            let limit = values.iter().find(|value| value.path == path).map_or("", |value| &value.told);
            let limit = if limit.is_empty() { String::new() } else { format!(", its limit of memory: {limit}") };
            let line = format!("{container}: Reason: OOMKilled{limit}");
            if let Some(complaint) = Complaint::of(&line) {
                pasted.complain(complaint, text.place(value.line));
            }
        }
    }
    end - at
}

/// Names and values from a line on, until one that stands at the left and has no name; and where that is.
fn values(text: &Text<'_>, at: usize) -> (Vec<Value>, usize) {
    let (mut values, mut end): (Vec<Value>, usize) = (Vec::new(), at);
    let mut above: Vec<(usize, String, bool)> = Vec::new();
    let mut items: BTreeMap<String, usize> = BTreeMap::new();
    while end < text.lines.len() && !text.at(end).is_empty() {
        let line = text.lines[end].trim_end();
        let mut indent = line.len() - line.trim_start().len();
        let mut rest = line.trim_start();
        while let Some(item) = rest.strip_prefix("- ") {
            above.retain(|(depth, _, is_item)| *depth < indent || *depth == indent && !is_item);
            let list = joined(&above);
            let count = items.entry(list).and_modify(|count| *count += 1).or_insert(0);
            above.push((indent, format!("[{count}]"), true));
            indent += line.len().min(rest.len() - item.trim_start().len());
            rest = item.trim_start();
        }
        let pair = rest.split_once(':').filter(|(name, told)| {
            let is_name = !name.is_empty() && !name.contains(['"', '(', '{']);
            is_name && (told.is_empty() || told.starts_with([' ', '\t']))
        });
        match pair {
            Some((name, told)) => {
                above.retain(|(depth, _, is_item)| *depth < indent || *depth == indent && *is_item);
                above.push((indent, name.trim().to_owned(), false));
                if !told.trim().is_empty() {
                    let told = told.trim().trim_matches(['"', '\'']).to_owned();
                    values.push(Value { line: end, path: joined(&above), told });
                }
            }
            // A list of words, or a sentence below its name.
            None if indent > 0 || !above.is_empty() && line.starts_with('-') => {
                values.push(Value { line: end, path: joined(&above), told: rest.to_owned() });
            }
            None => break,
        }
        end += 1;
    }
    (values, end)
}

/// `devices.disks[0].disk`.
fn joined(above: &[(usize, String, bool)]) -> String {
    let mut path = String::new();
    for (_, name, is_item) in above {
        if !path.is_empty() && !is_item {
            path.push('.');
        }
        path.push_str(name);
    }
    path
}

#[cfg(test)]
mod tests {
    use crate::machine::Manager;
    use crate::paste::read;

    #[test]
    fn a_definition_is_a_vm_and_all_of_it_is_shown() {
        let text = "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata:\n  name: db\n  namespace: shop\nspec:\n  template:\n    spec:\n      domain:\n\
            \x20       cpu:\n          cores: 3\n          threads: 2\n          dedicatedCpuPlacement: true\n        devices:\n          disks:\n\
            \x20         - disk:\n              bus: sata\n            name: root\n            dedicatedIOThread: true\n          - cdrom: {}\n            name: cd\n\
            \x20         interfaces:\n          - name: default\n            model: e1000e\n            bridge: {}\n          - name: fast\n            sriov: {}\n\
            \x20       memory:\n          guest: 4Gi\n          hugepages:\n            pageSize: 1Gi\n\nthat is all\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 1, "{:?}", machine.strange);
        let domain = &machine.domains[0];
        assert_eq!((domain.name.as_str(), domain.vcpus, domain.memory_bytes), ("shop_db", Some(6), Some(4 << 30)));
        assert_eq!((domain.disks.len(), domain.disks[0].bus.as_deref()), (1, Some("sata")));
        assert_eq!((domain.interfaces.len(), domain.interfaces[0].model.as_deref()), (1, Some("e1000e")));
        assert!(domain.huge_pages);
        assert_eq!(
            machine.manager_of(domain),
            Manager::KubeVirt { namespace: "shop".to_owned(), name: "db".to_owned() }
        );
        let told = |what: &str| machine.quoted.iter().find(|told| told.what == what).map(|told| told.value.as_str());
        assert_eq!(told("spec.domain.cpu.dedicatedCpuPlacement"), Some("true"));
        assert_eq!(told("spec.domain.devices.disks[0].dedicatedIOThread"), Some("true"));
    }

    #[test]
    fn a_pod_says_its_class_and_its_limits() {
        let text = "Name:         virt-launcher-db-x\nNamespace:    shop\nContainers:\n  compute:\n    Limits:\n      cpu:      4\n    Requests:\n      cpu:      2\nQoS Class:    Burstable\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let told: Vec<_> = machine.quoted.iter().map(|told| (told.what.as_str(), told.value.as_str())).collect();
        assert_eq!(
            told,
            [
                ("Namespace", "shop"),
                ("Containers.compute.Limits.cpu", "4"),
                ("Containers.compute.Requests.cpu", "2"),
                ("QoS Class", "Burstable")
            ]
        );
    }

    #[test]
    fn clocks_and_what_of_hyper_v_is_shown_are_those_of_the_definition() {
        let text = "kind: VirtualMachineInstance\nmetadata:\n  name: win\nspec:\n  domain:\n    clock:\n      utc: {}\n      timer:\n        hpet:\n          present: true\n\
            \x20       hyperv:\n          present: true\n        kvm:\n          present: false\n    features:\n      acpi: {}\n      hyperv:\n        relaxed: {}\n        synic: {}\n\
            \x20       synictimer:\n          direct: {}\n        vapic:\n          enabled: false\nstatus:\n  guestOSInfo:\n    id: mswindows\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let domain = &machine.domains[0];
        let timers: Vec<_> = domain.timers.iter().map(|(name, told)| (name.as_str(), told.value)).collect();
        assert_eq!(timers, [("hpet", true), ("hypervclock", true), ("kvmclock", false)]);
        let shown: Vec<_> = domain.hyperv.as_ref().unwrap().value.iter().map(String::as_str).collect();
        assert_eq!(shown, ["relaxed", "stimer", "synic"]);
        assert_eq!(domain.windows.as_ref().unwrap().place, "t:26");
    }

    #[test]
    fn a_container_that_was_killed_is_a_complaint_with_its_limit() {
        let text = "Name:   virt-launcher-x\nNamespace:  a\nContainers:\n  compute:\n    Last State:  Terminated\n      Reason:  OOMKilled\n    Limits:\n      memory:  4500Mi\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let [told] = &machine.complaints[..] else { panic!("{:?}", machine.complaints) };
        assert_eq!(told.value.line, "Containers.compute: Reason: OOMKilled, its limit of memory: 4500Mi");
        let ended = text.replace("OOMKilled", "Completed");
        assert!(read(&[("t".to_owned(), ended)]).complaints.is_empty());
    }
}
