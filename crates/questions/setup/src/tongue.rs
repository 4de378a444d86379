//! Commands in the words of whoever manages a VM: rules type libvirt's, and this one table has what the others have for it.
//!
//! ```text
//! virsh schedinfo db --set vcpu_quota=-1  --Proxmox-->  qm set 102 --cpulimit 0
//!                                         --KubeVirt->  kubectl edit vm db -n shop   # spec.template.spec.domain.resources.limits.cpu
//! ```
//! `taskset` works everywhere, until the VM stops: then its manager starts it as it is defined, and the line says what keeps it.
//! The table with its sources is tongue.tsv.

use crate::{bootloader, proxmox};
use base::Finding;
use base::shell::quoted;
use host::Machine;
use host::machine::{Domain, Manager, unit_of};

/// What a line of libvirt says, and the same for the others.
struct Phrase {
    /// All of these stand in the line.
    has: Vec<&'static str>,
    /// As the columns of the table; nothing: the line stays as it is.
    said: [&'static str; 5],
}

/// The first that fits is taken, so narrow ones come first.
fn phrases() -> impl Iterator<Item = Phrase> {
    let rows = include_str!("tongue.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| {
        let mut columns = row.split('\t');
        let has = columns.next().unwrap_or_default().split(" & ").collect();
        let mut said = [""; 5];
        said.iter_mut().zip(columns).for_each(|(said, column)| *said = column);
        Phrase { has, said }
    })
}

/// Of KubeVirt, whose CPU manager chooses the CPUs of a pod.
const PINS: &str =
    "domain.cpu: dedicatedCpuPlacement: true, isolateEmulatorThread: true; the CPU manager then chooses the CPUs";

/// A finding's commands as the managers of the VMs that they name have them.
pub(crate) fn translated(machine: &Machine, finding: &mut Finding) {
    [&mut finding.fix, &mut finding.undo].into_iter().for_each(|lines| bootloader::spoken(machine, lines));
    let domains: Vec<(String, Speaker<'_>)> = machine
        .domains
        .iter()
        .map(|domain| {
            (quoted(&domain.name).into_owned(), Speaker { machine, domain, manager: machine.manager_of(domain) })
        })
        // Of whom no command was read, nobody knows that it was started by hand: libvirt's words are those people know.
        .filter(|(_, speaker)| match speaker.manager {
            Manager::Libvirt => false,
            Manager::Qemu => speaker.domain.by_command,
            _ => true,
        })
        .collect();
    if domains.is_empty() {
        return;
    }
    let of = |line: &str| -> Option<&Speaker<'_>> {
        // `virsh VERB NAME ..`: the name is the third word.
        let (_, rest) = line.strip_prefix("virsh ")?.split_once(' ')?;
        let named = |(name, _): &&(String, Speaker<'_>)| {
            rest.strip_prefix(name.as_str()).is_some_and(|rest| !rest.starts_with(|next: char| !next.is_whitespace()))
        };
        domains.iter().find(named).map(|(_, speaker)| speaker)
    };
    let named = |line: &String| {
        domains.iter().find(|(name, _)| line.contains(&format!(" {name} "))).map(|(name, _)| name.clone())
    };
    let own_words: Vec<String> = finding.fix.iter().filter_map(named).collect();
    if proxmoxs_own(finding, &of) {
        return;
    }
    for lines in [&mut finding.fix, &mut finding.undo] {
        let mut said: Vec<String> = Vec::new();
        for line in lines.drain(..) {
            let line = of(&line).map_or_else(|| line.clone(), |speaker| speaker.spoken(&line));
            if !said.contains(&line) {
                said.push(line);
            }
        }
        *lines = said;
    }
    // Where both ways are one setting of the manager, the way back is what it had.
    if !finding.undo.is_empty() && finding.undo.iter().all(|line| finding.fix.contains(line)) {
        let manager = own_words.first().and_then(|name| domains.iter().find(|(known, _)| known == name));
        finding.undo = manager.map_or_else(Vec::new, |(name, speaker)| {
            vec![
                speaker
                    .spoken(&format!("virsh edit {name}   # these fields as they were: note them before the change")),
            ]
        });
    }
    // A pod's pins are not ours to set: nothing is applied that its manager does not know of.
    let is_pods = |change: &base::Change| {
        of(&change.command()).is_some_and(|speaker| matches!(speaker.manager, Manager::KubeVirt { .. }))
    };
    finding.changes.retain(|change| !is_pods(change));
    let binds = |finding: &Finding| {
        let pins = |line: &String| {
            ["taskset ", "virsh vcpupin ", "virsh emulatorpin "].iter().any(|verb| line.starts_with(verb))
        };
        finding.fix.iter().any(pins)
    };
    // Whose threads the commands bind: the subject may be the one that keeps its CPU.
    let threads_of = |domain: &Domain| {
        let tids: Vec<String> =
            machine.threads_of(&domain.name).filter_map(|thread| Some(format!(" {}", thread.tid?))).collect();
        move |line: &String| {
            let command = line.split("   #").next().unwrap_or_default();
            command.starts_with("taskset ") && tids.iter().any(|tid| command.ends_with(tid.as_str()))
        }
    };
    let is_bound = |(name, speaker): &&(String, Speaker<'_>)| {
        let binds = threads_of(speaker.domain);
        finding.fix.iter().any(|line| binds(line) || line.contains(&format!("pin {name} ")))
    };
    let subject = quoted(&finding.subject);
    let own = domains.iter().find(is_bound).or_else(|| domains.iter().find(|(name, _)| *name == subject));
    // What a pod's threads share no mask of ours ends: its CPU manager gives helpers a CPU of their own.
    let shares = ["PLC-OVERLAP", "PLC-STARVED", "PLC-WORKERS", "PLC-STACKED"].contains(&finding.rule);
    let of_pod = own.filter(|(_, speaker)| matches!(speaker.manager, Manager::KubeVirt { .. }));
    let is_told = finding.fix.iter().any(|line| line.starts_with("kubectl "));
    let told = of_pod.filter(|_| shares && !is_told && !binds(finding));
    let keeps = |(name, speaker): &(String, Speaker<'_>)| match &speaker.manager {
        Manager::Proxmox(0) => Some("# until the VM stops; to keep it: qm set VMID --affinity LIST".to_owned()),
        Manager::Proxmox(id) => Some(format!("# until the VM stops; to keep it: qm set {id} --affinity LIST")),
        Manager::KubeVirt { .. } => Some(format!("# until the VM stops; to keep it, in its VirtualMachine: {PINS}")),
        Manager::OpenStack { flavor, .. } => {
            let flavor = flavor.as_deref().map_or("FLAVOR".into(), quoted);
            // What nova pinned is dedicated already: then its emulator threads are what has no CPUs of its own.
            let mut pins = speaker.domain.vcpu_pins.values();
            let is_dedicated = pins.len() > 0 && pins.all(|pin| pin.value.len() == 1);
            let (within, property) = match is_dedicated {
                true => ("cpu_dedicated_set", "hw:emulator_threads_policy=share"),
                false => ("cpu_shared_set, which must have these CPUs,", "hw:cpu_policy=dedicated"),
            };
            Some(format!(
                "# until nova starts it anew, and within [compute] {within} of nova.conf alone; to keep it: openstack flavor set {flavor} --property {property}, \
                 of a flavor of its own, then openstack server resize"
            ))
        }
        Manager::Incus { program } => {
            Some(format!("# until the VM stops; to keep it: {program} config set {name} limits.cpu=LIST"))
        }
        Manager::Libvirt | Manager::Qemu => None,
    };
    let kept: Vec<String> = domains.iter().filter(is_bound).filter_map(keeps).collect();
    if let Some((name, speaker)) = told {
        finding.fix.push(speaker.spoken(&format!("virsh emulatorpin {name} LIST")));
        finding.undo.push(speaker.spoken(&format!("virsh edit {name}   # these fields as they were")));
    }
    finding.fix.extend(kept);
}

/// A finding about one device of a VM whose definition Proxmox showed, in the words of that: true if it is one.
fn proxmoxs_own<'a>(finding: &mut Finding, of: &dyn Fn(&str) -> Option<&'a Speaker<'a>>) -> bool {
    let spelled = finding.fix.iter().find_map(|line| {
        let speaker = of(line)?;
        let Manager::Proxmox(id) = speaker.manager else { return None };
        proxmox::spelled(speaker.domain, id, &finding.subject, &speaker.spoken(line)).filter(|_| id > 0)
    });
    let Some(spelled) = spelled else { return false };
    (finding.fix, finding.undo) = (spelled.fix, spelled.undo);
    true
}

/// Who says a line: a VM, and whoever manages it.
struct Speaker<'a> {
    machine: &'a Machine,
    domain: &'a Domain,
    manager: Manager,
}

impl Speaker<'_> {
    /// A line of libvirt in the manager's words.
    fn spoken(&self, line: &str) -> String {
        let comment = line.split_once("# ").map_or("", |(_, comment)| comment);
        let command = line.split("   #").next().unwrap_or_default();
        let value = command.rsplit_once('=').map_or("N", |(_, value)| value);
        let Some(phrase) = phrases().find(|phrase| phrase.has.iter().all(|word| line.contains(word))) else {
            return line.to_owned();
        };
        let [proxmox, kubevirt, openstack, incus, qemu] = phrase.said;
        let own = quoted(&self.domain.name);
        let said = match &self.manager {
            Manager::Proxmox(0) => proxmox.replace("{id}", "VMID"),
            Manager::Proxmox(id) => proxmox.replace("{id}", &id.to_string()),
            Manager::KubeVirt { namespace, name } => {
                // Where the definition has none, it is that of whoever types.
                let (place, name) = (format!(" -n {}", quoted(namespace)), quoted(name));
                let place = if namespace.is_empty() { "" } else { &place };
                let said = kubevirt.replace("{pins}", PINS).replace("{name}", &name).replace(" -n {namespace}", place);
                match said.starts_with("kubectl") || said.starts_with('#') {
                    true => said,
                    false => format!("kubectl edit vm {name}{place}   # spec.template.spec: {said}"),
                }
            }
            Manager::OpenStack { server, flavor } => {
                let flavor = flavor.as_deref().map_or("FLAVOR".into(), quoted);
                openstack.replace("{name}", &quoted(server)).replace("{flavor}", &flavor)
            }
            Manager::Incus { program } => match incus.strip_prefix("incus ") {
                Some(rest) => format!("{program} {}", rest.replace("{name}", &own)),
                None => incus.to_owned(),
            },
            Manager::Qemu => {
                let threads = || self.machine.threads_of(&self.domain.name);
                let pid = threads().find_map(|thread| thread.pid);
                let said = pid.map_or_else(|| qemu.to_owned(), |pid| qemu.replace("PID", &pid.to_string()));
                let unit = threads().find_map(|thread| unit_of(thread.time_group.as_deref()?));
                let said = unit.map_or_else(|| said.clone(), |unit| said.replace("UNIT", &quoted(unit)));
                match said.split_once("   # ") {
                    Some((options, comment)) if said.starts_with('-') => {
                        format!("qemu-system-x86_64 {options} ...   # where {own} is started: {comment}")
                    }
                    None if said.starts_with('-') => {
                        format!("qemu-system-x86_64 {said} ...   # where {own} is started")
                    }
                    _ => said,
                }
            }
            Manager::Libvirt => String::new(),
        };
        // Nova writes the definition anew, so nothing is to be kept in it.
        let is_rewritten = matches!(self.manager, Manager::OpenStack { .. });
        if said.is_empty() && is_rewritten && line.contains("pin ") {
            return line.replacen(" --config", "", 1);
        }
        if said.is_empty() { line.to_owned() } else { said.replace("{comment}", comment).replace("{value}", value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(line: &str, manager: &Manager) -> String {
        let (machine, domain) = (Machine::default(), Domain { name: "db".into(), ..Domain::default() });
        Speaker { machine: &machine, domain: &domain, manager: manager.clone() }.spoken(line)
    }

    #[test]
    fn a_definition_without_a_namespace_is_of_whoever_types() {
        let here = Manager::KubeVirt { namespace: String::new(), name: "db".into() };
        assert_eq!(spoken("virsh domblklist db", &here), "kubectl get vmi db -o yaml   # what it is set to");
        let edit = "kubectl edit vm db   # spec.template.spec: domain.memory.hugepages.pageSize: 2Mi";
        assert_eq!(spoken("virsh edit db   # <memoryBacking><hugepages/></memoryBacking>", &here), edit);
    }

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
                "qm set 102 --numa 1 --hugepages 2   # huge pages need --numa; as many must be free first: grep HugePages_Free /proc/meminfo",
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
            for manager in [Manager::Incus { program: "incus" }, Manager::Qemu] {
                assert!(!spoken(line, &manager).contains("virsh"), "{line} by {manager:?}");
            }
        }
        let pins = spoken("virsh emulatorpin db 3 --live --config", &kubevirt);
        assert!(pins.contains("isolateEmulatorThread: true"), "{pins}");
        assert_eq!(spoken("virsh vcpupin db 0 3", &Manager::Libvirt), "virsh vcpupin db 0 3");
        let openstack = Manager::OpenStack { server: "shop db".into(), flavor: Some("m1.large".into()) };
        assert_eq!(spoken("virsh vcpupin db 0 3", &openstack), "virsh vcpupin db 0 3");
        assert_eq!(
            spoken("virsh edit db   # <memoryBacking><hugepages/></memoryBacking>", &openstack),
            "openstack flavor set m1.large --property hw:mem_page_size=large   # a flavor of its own; then openstack server resize --flavor THAT 'shop db'"
        );
        assert_eq!(
            spoken("virsh edit db   # <cpu mode='host-model'/>", &Manager::Qemu),
            "qemu-system-x86_64 -cpu host ...   # where db is started"
        );
    }

    #[test]
    fn no_phrase_hides_a_narrower_one_behind_it() {
        let all: Vec<Phrase> = phrases().collect();
        for (at, phrase) in all.iter().enumerate() {
            let hides = |other: &Phrase| phrase.has.iter().all(|word| other.has.iter().any(|own| own.contains(word)));
            assert!(!all[at + 1..].iter().any(hides), "{:?}", phrase.has);
        }
    }

    #[test]
    fn rows_have_a_cell_for_each_manager() {
        for row in include_str!("tongue.tsv").lines().filter(|line| !line.starts_with('#')) {
            assert_eq!(row.split('\t').count(), 6, "{row}");
        }
    }
}
