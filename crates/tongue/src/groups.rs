//! Groups of tasks in the words of whoever made them: a container's manager, Kubernetes, systemd, or a program of its own.

use base::CpuSet;
use base::shell::quoted;
use host::Machine;
use host::machine::{Container, Fact, Quota, is_within_group, own_unit, quota_line, unit_of};
use std::borrow::Cow;

/// What is typed: what to look at before, the change, and the way back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typed {
    /// What shows who set it.
    pub first: Vec<String>,
    /// The commands.
    pub fix: Vec<String>,
    /// Their way back.
    pub undo: Vec<String>,
}

/// A group as a sentence has it: a container by its manager's number, else the unit.
pub fn named(path: &str) -> Cow<'_, str> {
    match Container::of_group(path) {
        Some(container @ Container::Engine { .. }) => container.label().into(),
        _ => unit(path),
    }
}

/// A group by its unit, as one types it.
pub fn unit(path: &str) -> Cow<'_, str> {
    quoted(unit_of(path).unwrap_or(path))
}

/// A set, and the way back: what is not set there comes from above. Version 1 has the set in each group below as well, as programs that make
/// groups often have, and systemd leaves it alone (systemd.resource-control(5), AllowedCPUs: the unified hierarchy alone).
pub fn cpus(machine: &Machine, path: &str, cpus: &CpuSet, now: &CpuSet) -> Typed {
    let mut hit = Typed::default();
    let effective = |machine: &'_ Machine, path: &str| {
        machine.cgroups.get(path)?.effective.clone().map(|set| (set.value, set.place))
    };
    let group = machine.cgroups.get(path);
    let is_first = effective(machine, path).is_some_and(|(_, place)| place.starts_with(VERSION_ONE));
    // A group that a program made has no unit to set.
    if is_first || own_unit(path).is_none() {
        let is_set = |path: &str| is_first || machine.cgroups.get(path).is_some_and(|group| group.cpus.is_some());
        let has_it = |path: &str| is_set(path) && effective(machine, path).is_some_and(|(set, _)| set == *now);
        let below = machine.cgroups.keys().filter(|below| is_within_group(below, path) && has_it(below));
        let root = if is_first { VERSION_ONE } else { VERSION_TWO };
        let files: Vec<String> = below.map(|below| format!("/{root}{below}/cpuset.cpus")).collect();
        let line = |file: &String, cpus: &CpuSet| format!("echo {cpus} > {}", quoted(file));
        hit.fix.extend(files.iter().map(|file| line(file, cpus)));
        // A group has no CPUs that the one above it lacks, so the way back begins below.
        hit.undo.extend(files.iter().rev().map(|file| line(file, now)));
        return hit;
    }
    if let Some(container @ Container::Engine { .. }) = Container::of_group(path) {
        let line = |cpus: &CpuSet| container.set(&format!("--cpuset-cpus {cpus}"), "");
        hit.first.push(container.shown());
        hit.fix.push(line(cpus));
        hit.undo.push(line(now));
        return hit;
    }
    let was_set = group.is_none_or(|group| group.cpus.is_some());
    let line = |cpus: &str| gives(path, cpus);
    hit.first.push(format!("systemctl show -p AllowedCPUs {}   # who set it, and for whom?", unit(path)));
    hit.fix.push(line(&cpus.to_string()));
    hit.undo.push(line(&if was_set { now.to_string() } else { String::new() }));
    hit
}

/// The line that sets the CPUs of a group of version 2.
pub fn gives(path: &str, cpus: &str) -> String {
    if let Some(container @ Container::Engine { .. }) = Container::of_group(path) {
        return container.set(&format!("--cpuset-cpus {cpus}"), "");
    }
    match own_unit(path).map(quoted) {
        Some(unit) => format!("systemctl set-property --runtime {unit} AllowedCPUs={cpus}"),
        None => format!("echo {cpus} > {}", quoted(&format!("/{VERSION_TWO}{path}/cpuset.cpus"))),
    }
}

/// Where version 1 has sets of CPUs, and version 2.
const VERSION_ONE: &str = "sys/fs/cgroup/cpuset";
const VERSION_TWO: &str = "sys/fs/cgroup";

/// What takes a limit away, and what sets it again: of libvirt by the name of its kind (virsh(1), schedinfo), a group of several VMs by
/// its unit, a container's of the `all` CPUs of the host by its manager.
pub fn lifted(subject: &str, several: bool, path: &str, quota: &Quota, all: f64) -> (String, String) {
    let cpus = quota.cpus.value;
    if several {
        if let Some(container) = Container::of_group(path) {
            let line = |cpus: f64| container.set(&format!("--cpus {cpus}"), &format!("limits=cpu={cpus}"));
            let none = if matches!(container, Container::Engine { .. }) { all } else { 0.0 };
            return (format!("{}   # no limit", line(none)), line(cpus));
        }
        if own_unit(path).is_none() && quota.cpus.place.starts_with("sys/fs/cgroup/") {
            // A program made it by its own, and systemd knows nothing of it.
            let place = &quota.cpus.place;
            return (quota_line(place, None), quota_line(place, Some(cpus)));
        }
        let unit = unit(path);
        let line = |value: &str| format!("systemctl set-property --runtime {unit} CPUQuota={value}");
        return (line(""), line(&format!("{:.0}%", cpus * 100.0)));
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    let kind = ["vcpu", "emulator", "iothread"].into_iter().find(|kind| last.starts_with(kind)).unwrap_or("global");
    let line = |quota: &str| format!("virsh schedinfo {} --live --config --set {kind}_quota={quota}", quoted(subject));
    (line("-1"), line(&format!("{:.0}   # with {kind}_period=100000", cpus * 1e5)))
}

/// The weight of a group of which nobody said anything, of the two versions' files.
pub fn usual(weight: &Fact<u64>) -> u64 {
    if weight.place.ends_with("cpu.shares") { 1_024 } else { 100 }
}

/// What bounds a container of Proxmox, whose group `/lxc` is all containers' together: a limit, as no weight of its own counts beside a
/// VM's (pct(1), Proxmox VE 8.2, cpulimit; 0: none).
pub fn of_container(path: &str) -> Option<Owners> {
    let id = quoted(path.strip_prefix("/lxc/")?.split('/').next()?);
    Some(Owners {
        first: Some(format!("pct config {id} | grep cpulimit   # none: 0")),
        fix: format!("pct set {id} --cpulimit 1"),
        undo: Some(format!("pct set {id} --cpulimit 0")),
    })
}

/// The commands of whoever owns a group.
pub struct Owners {
    /// What shows who set it.
    pub first: Option<String>,
    /// The command.
    pub fix: String,
    /// Its way back.
    pub undo: Option<String>,
}

/// What gives a group another weight and the one that it had, both as systemd has them. A container's share of what several want is its
/// manager's (Incus 6.0, instance options, limits.cpu.allowance), a pod's its request.
pub fn of_owner(path: &str, to: &str, was: &str) -> Option<Owners> {
    let usual = |weight: &str| if weight.is_empty() { "100".to_owned() } else { weight.to_owned() };
    if path.contains("kubepods") {
        let first = "kubectl get pods -A -o yaml | grep -E ' uid:| cpu:|ownerReferences' -A 4   # which object made the pod, and what it requests";
        let set = |cpus: &str| format!("kubectl set resources OBJECT -n NAMESPACE --requests=cpu={cpus}");
        let fix = set(
            "N   # deployment/NAME or the like that made the pod: its request is the pod's weight relative to others",
        );
        return Some(Owners { first: Some(first.to_owned()), fix, undo: Some(set("N   # as it was")) });
    }
    if let Some(name) = path.split('/').find_map(|part| part.strip_prefix("lxc.payload.")) {
        let name = quoted(name);
        return Some(Owners {
            first: Some(format!(
                "incus config get {name} limits.cpu.allowance   # with LXD: lxc in place of incus; nothing: 100%"
            )),
            fix: format!("incus config set {name} limits.cpu.allowance={}%", usual(to)),
            undo: Some(format!("incus config set {name} limits.cpu.allowance={}%", usual(was))),
        });
    }
    if let Some(container @ Container::Engine { .. }) = Container::of_group(path) {
        let set = |weight: &str| container.weighing(weight.parse().unwrap_or(100), false);
        return Some(Owners { first: Some(container.shown()), fix: set(to), undo: Some(set(was)) });
    }
    // Below a unit its program makes groups of its own, of which systemd knows nothing.
    let unit = own_unit(path).map(quoted)?;
    let line = |weight: &str| format!("systemctl set-property --runtime {unit} CPUWeight={weight}");
    Some(Owners {
        first: Some(format!("systemctl show -p CPUWeight {unit}   # who set it, and for whom?")),
        fix: line(to),
        undo: Some(line(was)),
    })
}

/// A weight as `CPUWeight=` has it, of which 100 stands for 1,024 in version 1 (systemd.resource-control(5)); none where it is the usual
/// one, and `idle` for the 0 that a group with `cpu.idle` shows.
pub fn of_systemd(weight: &Fact<u64>, value: u64) -> String {
    let usual = usual(weight);
    match value {
        0 => "idle".to_owned(),
        value if value == usual => String::new(),
        value => (value * 100 / usual).max(1).to_string(),
    }
}

/// What gives a group another weight: of one VM, `vm`, in the words of libvirt, of others in those of its owner.
pub fn weighs(path: &str, vm: Option<&str>, weight: &Fact<u64>, to: u64) -> Typed {
    if let Some(vm) = vm.map(quoted) {
        let line = |weight: u64| format!("virsh schedinfo {vm} --live --config --set cpu_shares={weight}");
        let first = format!("virsh schedinfo {vm}   # what is set, and for whom is it meant?");
        return Typed { first: vec![first], fix: vec![line(to)], undo: vec![line(weight.value)] };
    }
    if let Some(owners) = of_owner(path, &of_systemd(weight, to), &of_systemd(weight, weight.value)) {
        return Typed {
            first: owners.first.into_iter().collect(),
            fix: vec![owners.fix],
            undo: owners.undo.into_iter().collect(),
        };
    }
    if !weight.place.starts_with("sys/fs/cgroup/") {
        return Typed::default();
    }
    // Made by a program of its own, of which systemd knows nothing.
    let line = |value: u64| format!("echo {value} > {}", quoted(&format!("/{}", weight.place)));
    Typed { first: Vec::new(), fix: vec![line(to)], undo: vec![line(weight.value)] }
}
