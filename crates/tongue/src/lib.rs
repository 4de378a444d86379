//! Commands in the words of whoever manages a VM: rules type libvirt's, and this one table has what the others have for it.
//!
//! ```text
//! virsh schedinfo db --set vcpu_quota=-1  --Proxmox-->  qm set 102 --cpulimit 0
//!                                         --KubeVirt->  kubectl edit vm db -n shop   # spec.template.spec.domain.resources.limits.cpu
//! ```
//! `taskset` works everywhere, until the VM stops: then its manager starts it as it is defined, and the line says what keeps it.
//! The table with its sources is tongue.tsv.

pub mod bootloader;
mod by_command;
pub mod disk_limits;
pub mod groups;
pub mod holders;
mod proxmox;

use base::shell::quoted;
use base::{CpuSet, Finding};
use host::Machine;
use host::machine::{Domain, Manager, Role};

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

/// What a pod has not of that, as its threads show; none where all of it is in force.
fn pins_of(machine: &Machine, domain: &Domain) -> Option<&'static str> {
    let own = |wanted: fn(Role) -> bool| -> Vec<&CpuSet> {
        let threads = machine.threads_of(&domain.name).filter(move |thread| wanted(thread.role));
        threads.filter_map(|thread| Some(&thread.affinity.as_ref()?.value)).collect()
    };
    let vcpus = own(|role| matches!(role, Role::Vcpu(_)));
    let all = vcpus.iter().fold(CpuSet::default(), |all, set| all.or(set));
    let is_dedicated = !vcpus.is_empty() && vcpus.iter().all(|set| set.len() == 1) && all.len() == vcpus.len();
    let emulators = own(|role| role == Role::Emulator);
    let is_apart = !emulators.is_empty() && emulators.iter().all(|set| !set.meets(&all));
    match (is_dedicated, is_apart) {
        (true, true) => None,
        (true, false) => {
            Some("domain.cpu.isolateEmulatorThread: true; the CPU manager then gives the emulator a CPU of its own")
        }
        (false, _) => Some(PINS),
    }
}

/// A finding's commands as the managers of the VMs that they name have them.
pub fn translated(machine: &Machine, finding: &mut Finding) {
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
    let pid = finding.subject.rsplit('.').next().and_then(|pid| pid.parse().ok());
    let by_pid = |speaker: &Speaker<'_>| {
        machine.threads_of(&speaker.domain.name).any(|thread| pid.is_some() && thread.pid == pid)
    };
    if let Some((_, speaker)) = domains.iter().find(|(_, speaker)| by_pid(speaker)) {
        [&mut finding.fix, &mut finding.undo].into_iter().flatten().for_each(|line| *line = speaker.of_qemu(line));
    }
    if proxmoxs_own(finding, &of) {
        return;
    }
    for lines in [&mut finding.fix, &mut finding.undo] {
        let mut said: Vec<String> = Vec::new();
        for line in lines.drain(..) {
            let line = of(&line).map_or_else(|| line.clone(), |speaker| speaker.spoken(&line));
            // Nothing is to be typed for what is in force.
            if !line.is_empty() && !said.contains(&line) {
                said.push(line);
            }
        }
        *lines = said;
    }
    // Where both ways are one setting of the manager, the way back is what it had.
    let manager = own_words.first().and_then(|name| domains.iter().find(|(known, _)| known == name));
    let (ways, back) = (&finding.fix, &mut finding.undo);
    if back.iter().any(|line| ways.contains(line)) {
        let had = |(name, speaker): &(String, Speaker<'_>)| {
            speaker.spoken(&format!("virsh edit {name}   # these fields as they were: note them before the change"))
        };
        let had = manager.map(had);
        let is_way = |line: &String| ways.contains(line);
        back.iter_mut().filter(|line| is_way(line)).for_each(|line| had.iter().for_each(|had| line.clone_from(had)));
        back.retain(|line| !is_way(line));
        back.dedup();
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
        Manager::Proxmox(id) => {
            let id = if *id == 0 { "VMID".to_owned() } else { id.to_string() };
            Some(match kept_set(machine, speaker.domain, &finding.fix) {
                Some(set) => format!(
                    "# until the VM stops; qm set {id} --affinity {set} keeps this set for all its threads from its next start, a hookscript with \
                     taskset one for each"
                ),
                None => format!(
                    "# until the VM stops; --affinity has one set for all its threads and pins none alone: to keep it, qm set {id} --hookscript \
                     local:snippets/FILE, which has these lines at post-start with the new thread ids"
                ),
            })
        }
        Manager::KubeVirt { .. } => {
            let pins = pins_of(machine, speaker.domain)?;
            Some(format!("# until the VM stops; to keep it, in its VirtualMachine: {pins}"))
        }
        Manager::OpenStack { flavor, .. } => {
            let flavor = flavor.as_deref().map_or("FLAVOR".into(), quoted);
            // What nova pinned is dedicated already: then its emulator threads are what has no CPUs of its own.
            let mut pins = speaker.domain.vcpu_pins.values();
            // Where the finding types nova's own set, that keeps it.
            if finding.fix.iter().any(|line| line.contains("cpu_shared_set")) {
                return None;
            }
            let is_dedicated = pins.len() > 0 && pins.all(|pin| pin.value.len() == 1);
            let moves_vcpus = finding.fix.iter().any(|line| line.contains(&format!("vcpupin {name} ")));
            if is_dedicated && moves_vcpus {
                return Some("# until nova starts it anew, and within [compute] cpu_dedicated_set of nova.conf alone: it chooses the CPUs".to_owned());
            }
            let property = if is_dedicated { "hw:emulator_threads_policy=share" } else { "hw:cpu_policy=dedicated" };
            Some(format!(
                "# until nova starts it anew, and within [compute] cpu_shared_set, which must have these CPUs, of nova.conf alone; to keep it: openstack \
                 flavor set {flavor} --property {property}, of a flavor of its own, then openstack server resize"
            ))
        }
        // Refused while it runs and pins; a list gives each vCPU one CPU (internal/server/instance/drivers/driver_qemu.go, Incus 6).
        Manager::Incus { program } => Some(match kept_pins(machine, speaker.domain, &finding.fix) {
            Some(cpus) => format!(
                "# until the VM stops; to keep it: {program} stop {name}; {program} config set {name} limits.cpu={cpus}; {program} start {name}"
            ),
            None => {
                format!("# until the VM stops: limits.cpu of {program} pins vCPUs alone, one to each CPU of its list")
            }
        }),
        Manager::Monitor { program } => {
            Some(format!("# until the VM stops: what starts {program} is to bind its threads anew"))
        }
        Manager::Qemu => Some(
            "# until QEMU ends: what starts it is to bind its threads anew, which have other numbers then".to_owned(),
        ),
        Manager::Libvirt => None,
    };
    let kept: Vec<String> = domains.iter().filter(is_bound).filter_map(keeps).collect();
    if let Some((name, speaker)) = told {
        let line = speaker.spoken(&format!("virsh emulatorpin {name} LIST"));
        if !line.is_empty() {
            finding.fix.push(line);
            finding.undo.push(speaker.spoken(&format!("virsh edit {name}   # these fields as they were")));
        }
    }
    finding.fix.extend(kept);
    let is_pod =
        |vm: &str| domains.iter().any(|(name, of)| name == vm && matches!(of.manager, Manager::KubeVirt { .. }));
    if finding.rule == "PLC-CORE" && finding.subject.split('+').any(is_pod) {
        finding.fix.push(
            "# in this node's KubeletConfiguration: cpuManagerPolicyOptions: full-pcpus-only: \"true\", so that a pod gets whole cores; drained, \
             restart the kubelet without /var/lib/kubelet/cpu_manager_state"
                .to_owned(),
        );
    }
    if finding.fix.is_empty() && finding.rule != "PLC-PROPOSAL" {
        finding.fix.push(
            "# these CPUs are its pod's own, as the CPU manager chose them: it chooses anew when the VM starts"
                .to_owned(),
        );
    }
}

/// Where these lines send each vCPU of a VM; where they send none of them, where it is.
fn vcpus_after(machine: &Machine, domain: &Domain, lines: &[String]) -> Option<Vec<CpuSet>> {
    let typed = |tid: i32| {
        let mut own = lines.iter().filter_map(|line| {
            let mut words = line.split("   #").next()?.strip_prefix("taskset -cp ")?.split_whitespace();
            let set = CpuSet::parse(words.next()?)?;
            (words.next()?.parse() == Ok(tid)).then_some(set)
        });
        own.next()
    };
    let vcpus = machine.threads_of(&domain.name).filter(|thread| matches!(thread.role, Role::Vcpu(_)));
    let after: Option<Vec<(bool, CpuSet)>> = vcpus
        .map(|thread| {
            let moved = thread.tid.and_then(typed);
            Some((moved.is_some(), moved.or_else(|| Some(thread.affinity.as_ref()?.value.clone()))?))
        })
        .collect();
    let after = after.filter(|after| after.iter().any(|(moved, _)| *moved))?;
    Some(after.into_iter().map(|(_, set)| set).collect())
}

/// All CPUs that the vCPUs of a VM have after these lines, where the scheduler moves threads between them: between isolated ones it does not.
fn kept_set(machine: &Machine, domain: &Domain, lines: &[String]) -> Option<CpuSet> {
    let all = vcpus_after(machine, domain, lines)?.iter().fold(CpuSet::default(), |all, set| all.or(set));
    machine.topology.isolated.as_ref().is_none_or(|isolated| !isolated.meets(&all)).then_some(all)
}

/// As many CPUs as a VM has vCPUs, where each has one of its own after these lines.
fn kept_pins(machine: &Machine, domain: &Domain, lines: &[String]) -> Option<CpuSet> {
    let after = vcpus_after(machine, domain, lines)?;
    let all = after.iter().fold(CpuSet::default(), |all, set| all.or(set));
    (after.iter().all(|set| set.len() == 1) && all.len() == after.len()).then_some(all)
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
    /// A command line of QEMU, which its manager writes, in the manager's words.
    fn of_qemu(&self, line: &str) -> String {
        let Some(options) = line.strip_prefix("qemu-system-x86_64 ").and_then(|rest| rest.split_once(" ...")) else {
            return line.to_owned();
        };
        let (options, own) = (options.0.replace('\'', ""), quoted(&self.domain.name));
        match &self.manager {
            Manager::Proxmox(id) if *id > 0 => {
                format!("qm set {id} --args {}   # with the args that qm config {id} has", quoted(&options))
            }
            Manager::Incus { program } => {
                format!("{program} config set {own} raw.qemu={}   # with what it has there", quoted(&options))
            }
            Manager::Qemu | Manager::Libvirt => line.to_owned(),
            _ => self.spoken(&format!("virsh edit {own}   # hyperv")),
        }
    }

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
                let Some(pins) = pins_of(self.machine, self.domain).or((!kubevirt.contains("{pins}")).then_some(""))
                else {
                    return String::new();
                };
                let said = kubevirt.replace("{pins}", pins).replace("{name}", &name).replace(" -n {namespace}", place);
                if kubevirt == "{comment}" && comment.contains('<') {
                    return format!("# a VirtualMachine has no field that is known here for {}", elements(comment));
                }
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
            Manager::Qemu | Manager::Monitor { .. } => self.by_command(line, qemu, comment),
            Manager::Libvirt => String::new(),
        };
        // Nova writes the definition anew, so nothing is to be kept in it.
        let is_rewritten = matches!(self.manager, Manager::OpenStack { .. });
        if said.is_empty() && is_rewritten && line.contains("pin ") {
            return line.replacen(" --config", "", 1);
        }
        if said.is_empty() {
            return line.to_owned();
        }
        let comment = if comment.contains('<') && !is_rewritten { elements(comment) } else { comment.to_owned() };
        let of_element = ["sockets", "cores", "threads", "nodeset"];
        let said = of_element.iter().fold(said, |said, name| {
            let told = line.split_once(&format!(" {name}='")).and_then(|(_, rest)| Some(rest.split_once('\'')?.0));
            said.replace(&format!("{{{name}}}"), told.unwrap_or("N"))
        });
        let cpus = by_command::quota_cpus(value).map_or("0".to_owned(), |cpus| cpus.to_string());
        said.replace("{comment}", &comment).replace("{value}", value).replace("{cpus}", &cpus)
    }
}

/// The elements of a comment by their names, for those to whom libvirt's are no words: `what libvirt calls <memtune>`.
fn elements(comment: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (at, _) in comment.match_indices('<') {
        let name = comment[at + 1..].split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    let names: Vec<String> = names.into_iter().map(|name| format!("<{name}>")).collect();
    format!("what libvirt calls {}", base::number::list(&names))
}

#[cfg(test)]
mod tests;
