//! Commands in the words of whoever manages a VM: rules type libvirt's, and this one table has what the others have for it.
//!
//! ```text
//! virsh schedinfo db --set vcpu_quota=-1  --Proxmox-->  qm set 102 --cpulimit 0
//!                                         --KubeVirt->  kubectl edit vm db -n shop   # spec.template.spec.domain.resources.limits.cpu
//! ```
//! `taskset` works everywhere, until the VM stops: then its manager starts it as it is defined, and the line says what keeps it.
//! Sources: qm(1) of Proxmox VE 8.2; KubeVirt 1.3, api/v1 (VirtualMachineInstanceSpec), user guide, dedicated CPU resources.

use super::model::Model;
use base::Finding;
use base::shell::quoted;
use host::machine::{Domain, Manager};

/// What a line of libvirt says, and the same for the others. `{comment}` is what stands behind its `#`.
struct Phrase {
    /// All of these stand in the line.
    has: &'static [&'static str],
    proxmox: &'static str,
    /// Below `spec.template.spec` of the VirtualMachine; none: the line does not exist there.
    kubevirt: &'static str,
}

const fn phrase(has: &'static [&'static str], proxmox: &'static str, kubevirt: &'static str) -> Phrase {
    Phrase { has, proxmox, kubevirt }
}

/// The first that fits is taken, so narrow ones come first.
const PHRASES: &[Phrase] = &[
    phrase(
        &["virsh emulatorpin"],
        "qm set {id} --affinity LIST   # of all its threads; CPUs for the emulator alone are taskset's",
        PINS,
    ),
    phrase(
        &["virsh vcpupin"],
        "qm set {id} --affinity LIST   # of all its threads, from the next start; one by one with taskset",
        PINS,
    ),
    phrase(&["virsh iothreadpin"], "qm set {id} --affinity LIST   # of all its threads; one by one with taskset", PINS),
    phrase(
        &["schedinfo", "quota"],
        "qm set {id} --cpulimit 0   # now: qm config {id} | grep cpulimit",
        "domain.resources.limits.cpu",
    ),
    phrase(
        &["schedinfo", "cpu_shares"],
        "qm set {id} --cpuunits 100   # now: qm config {id} | grep cpuunits",
        "domain.resources.requests.cpu: its weight",
    ),
    phrase(&["schedinfo"], "qm config {id} | grep -E 'cpulimit|cpuunits'", "domain.resources"),
    phrase(&["virsh setvcpus"], "qm set {id} --cores N   # from the next start", "domain.cpu.cores"),
    phrase(&["virsh setmem"], "qm set {id} --balloon 0", "domain.memory.guest"),
    phrase(
        &["virsh numatune"],
        "qm set {id} --numa 1 --numa0 cpus=LIST,hostnodes=N,memory=MB,policy=bind",
        "domain.cpu.numa.guestMappingPassthrough: {}",
    ),
    phrase(
        &["blkdeviotune"],
        "qm config {id} | grep -E 'iops|mbps'   # the limits of each disk",
        "# KubeVirt sets no such limit: the storage class does",
    ),
    phrase(
        &["virsh edit", "as it was"],
        "qm config {id}   # before the change: it has the options as they were",
        "{comment}",
    ),
    phrase(
        &["virsh edit", "as they were"],
        "qm config {id}   # before the change: it has the options as they were",
        "{comment}",
    ),
    phrase(
        &["virsh edit", "<numa>"],
        "qm set {id} --numa 1 --numa0 cpus=LIST,memory=MB,hostnodes=N,policy=bind   # one for each node",
        "domain.cpu.numa.guestMappingPassthrough: {}, with dedicatedCpuPlacement and hugepages",
    ),
    phrase(
        &["virsh edit", "topoext"],
        "qm set {id} --cpu EPYC-v4   # models named EPYC show threads; sockets and cores: --sockets S --cores C",
        "domain.cpu.features: name topoext, policy require",
    ),
    phrase(
        &["virsh edit", "<topology"],
        "qm set {id} --sockets S --cores C   # Proxmox shows no threads",
        "domain.cpu: sockets, cores, threads ({comment})",
    ),
    phrase(
        &["virsh edit", "hyperv"],
        "qm set {id} --ostype win11   # switches these parts of Hyper-V on",
        "domain.features.hyperv ({comment})",
    ),
    phrase(&["virsh edit", "hugepages"], "qm set {id} --hugepages any", "domain.memory.hugepages.pageSize: 2Mi"),
    phrase(
        &["virsh edit", "fewer"],
        "qm set {id} --net0 virtio,bridge=BRIDGE,queues=N   # fewer; qm config {id} has the rest of net0, to be kept",
        "domain: devices.networkInterfaceMultiqueue: false, or cpu.isolateEmulatorThread: true",
    ),
    phrase(
        &["virsh edit", "queues"],
        "qm set {id} --net0 virtio,bridge=BRIDGE,queues=N   # qm config {id} has the rest of net0, to be kept",
        "domain.devices.networkInterfaceMultiqueue: true",
    ),
    phrase(
        &["virsh edit", "<model type='virtio'/>"],
        "qm set {id} --net0 virtio,bridge=BRIDGE   # qm config {id} has the rest of net0, to be kept",
        "domain.devices.interfaces: model: virtio",
    ),
    phrase(
        &["virsh edit", "host-model"],
        "qm set {id} --cpu host   # or a named model, where it is migrated",
        "domain.cpu.model: host-passthrough, or host-model where it is migrated",
    ),
    phrase(&["virsh edit", "<iothreads>"], "qm set {id} --scsihw virtio-scsi-single", "domain.ioThreadsPolicy: auto"),
    phrase(
        &["virsh edit", "iothread="],
        "qm set {id} --scsi0 VOLUME,iothread=1,aio=native,cache=none   # qm config {id} has the volume",
        "domain.devices.disks: dedicatedIOThread: true, cache: none, io: native",
    ),
    phrase(
        &["virsh edit", "cache="],
        "qm set {id} --scsi0 VOLUME,cache=none   # qm config {id} has the volume",
        "domain.devices.disks: cache: none",
    ),
    phrase(&["virsh edit", "hpet"], "qm set {id} --args '-machine hpet=off'", "domain.clock.timer.hpet.present: false"),
    phrase(
        &["virsh edit", "kvmclock"],
        "qm set {id} --cpu host,flags=+kvmclock   # qm config {id} has its flags",
        "domain.clock.timer.kvm.present: true",
    ),
    phrase(&["virsh edit"], "qm config {id}   # {comment}: qm set has an option for it, or --args", "{comment}"),
    phrase(
        &["virsh "],
        "qm config {id}   # what it is set to",
        "kubectl get vmi {name} -n {namespace} -o yaml   # what it is set to",
    ),
];

/// Of KubeVirt, whose CPU manager chooses the CPUs of a pod.
const PINS: &str =
    "domain.cpu: dedicatedCpuPlacement: true, isolateEmulatorThread: true; the CPU manager then chooses the CPUs";

/// A finding's commands as the managers of the VMs that they name have them.
pub(super) fn translated(model: &Model, finding: &mut Finding) {
    let domains: Vec<(String, Manager)> = model
        .machine
        .domains
        .iter()
        .map(|domain: &Domain| (quoted(&domain.name).into_owned(), model.machine.manager_of(domain)))
        .filter(|(_, manager)| matches!(manager, Manager::Proxmox(_) | Manager::KubeVirt { .. }))
        .collect();
    if domains.is_empty() {
        return;
    }
    let of = |line: &str| -> Option<&Manager> {
        // `virsh VERB NAME ..`: the name is the third word.
        let (_, rest) = line.strip_prefix("virsh ")?.split_once(' ')?;
        let named = |(name, _): &&(String, Manager)| {
            rest.strip_prefix(name.as_str()).is_some_and(|rest| !rest.starts_with(|next: char| !next.is_whitespace()))
        };
        domains.iter().find(named).map(|(_, manager)| manager)
    };
    for lines in [&mut finding.fix, &mut finding.undo] {
        let mut said: Vec<String> = Vec::new();
        for line in lines.drain(..) {
            let line = of(&line).map_or_else(|| line.clone(), |manager| spoken(&line, manager));
            if !said.contains(&line) {
                said.push(line);
            }
        }
        *lines = said;
    }
    // A pod's pins are not ours to set: nothing is applied that its manager does not know of.
    let is_pods = |change: &base::Change| matches!(of(&change.command()), Some(Manager::KubeVirt { .. }));
    finding.changes.retain(|change| !is_pods(change));
    let binds = finding.fix.iter().any(|line| line.starts_with("taskset "));
    let subject = quoted(&finding.subject);
    let own = domains.iter().find(|(name, _)| *name == subject);
    let keeps = own.and_then(|(_, manager)| match manager {
        Manager::Proxmox(id) => Some(format!("# until the VM stops; to keep it: qm set {id} --affinity LIST")),
        Manager::KubeVirt { .. } => Some(format!("# until the VM stops; to keep it, in its VirtualMachine: {PINS}")),
        Manager::Libvirt | Manager::Qemu => None,
    });
    if let Some(keeps) = keeps.filter(|_| binds) {
        finding.fix.push(keeps);
    }
}

/// A line of libvirt in a manager's words.
fn spoken(line: &str, manager: &Manager) -> String {
    let comment = line.split_once("# ").map_or("", |(_, comment)| comment);
    let Some(phrase) = PHRASES.iter().find(|phrase| phrase.has.iter().all(|word| line.contains(word))) else {
        return line.to_owned();
    };
    match manager {
        Manager::Proxmox(id) => phrase.proxmox.replace("{id}", &id.to_string()).replace("{comment}", comment),
        Manager::KubeVirt { namespace, name } => {
            let (namespace, name) = (quoted(namespace), quoted(name));
            let said = phrase
                .kubevirt
                .replace("{comment}", comment)
                .replace("{name}", &name)
                .replace("{namespace}", &namespace);
            match said.starts_with("kubectl") || said.starts_with('#') {
                true => said,
                false => format!("kubectl edit vm {name} -n {namespace}   # spec.template.spec: {said}"),
            }
        }
        Manager::Libvirt | Manager::Qemu => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manager_has_words_for_what_rules_type() {
        let proxmox = Manager::Proxmox(102);
        let kubevirt = Manager::KubeVirt { namespace: "shop".into(), name: "db".into() };
        for (line, of_proxmox, of_kubevirt) in [
            (
                "virsh schedinfo db --live --config --set vcpu_quota=-1",
                "qm set 102 --cpulimit 0   # now: qm config 102 | grep cpulimit",
                "kubectl edit vm db -n shop   # spec.template.spec: domain.resources.limits.cpu",
            ),
            (
                "virsh edit db   # <memoryBacking><hugepages/></memoryBacking>",
                "qm set 102 --hugepages any",
                "kubectl edit vm db -n shop   # spec.template.spec: domain.memory.hugepages.pageSize: 2Mi",
            ),
            (
                "virsh edit db   # remove the elements",
                "qm config 102   # remove the elements: qm set has an option for it, or --args",
                "kubectl edit vm db -n shop   # spec.template.spec: remove the elements",
            ),
            (
                "virsh domblklist db",
                "qm config 102   # what it is set to",
                "kubectl get vmi db -n shop -o yaml   # what it is set to",
            ),
        ] {
            assert_eq!((spoken(line, &proxmox).as_str(), spoken(line, &kubevirt).as_str()), (of_proxmox, of_kubevirt));
        }
        let pins = spoken("virsh emulatorpin db 3 --live --config", &kubevirt);
        assert!(pins.contains("isolateEmulatorThread: true"), "{pins}");
        assert_eq!(spoken("virsh vcpupin db 0 3", &Manager::Libvirt), "virsh vcpupin db 0 3");
    }

    #[test]
    fn no_phrase_hides_a_narrower_one_behind_it() {
        for (at, phrase) in PHRASES.iter().enumerate() {
            let hides = |other: &&Phrase| phrase.has.iter().all(|word| other.has.iter().any(|own| own.contains(word)));
            assert!(!PHRASES[at + 1..].iter().any(|other| hides(&other)), "{:?}", phrase.has);
        }
    }
}
