//! Threads that wait because their group counts for less than the one of those that run meanwhile.

use super::slice::unit;
use super::starved::with_victims;
use crate::placement::culprits::{Kind, Verdict, is_real_time};
use crate::placement::model::{Demand, Model};
use base::number::counted;
use base::shell::quoted;
use base::{Cost, CostKind, Severity};
use facts::rule::Hit;
use facts::starvation::UNIT;
use host::machine::{Fact, Parting, Role, Thread, is_within_group, own_unit};
use std::collections::{BTreeMap, BTreeSet};

/// A group that counts for so much more than another one takes most of what both want: our own limit.
pub(in crate::placement) const HEAVIER: f64 = 2.0;

/// Groups of VMs that got little of a CPU beside a group with more weight, one finding for each of them.
pub(crate) fn outweighed(model: &Model) -> Vec<Hit> {
    let mut groups: BTreeMap<&str, (Parting<'_>, Vec<&Verdict>)> = BTreeMap::new();
    for verdict in model.verdicts.all() {
        if let Some(parting) = parting(model, verdict) {
            groups.entry(parting[0].0).or_insert((parting, Vec::new())).1.push(verdict);
        }
    }
    groups.into_values().map(|(parting, victims)| hit(model, parting, &victims)).collect()
}

/// Where a victim and whoever ran meanwhile are in groups of which the victim's is lighter by far.
fn parting<'a>(model: &'a Model, verdict: &Verdict) -> Option<Parting<'a>> {
    let machine = &model.machine;
    let victim = &machine.threads[verdict.victim];
    let winner = verdict.winner()?;
    let is_full = winner.kind == Kind::Overcommit;
    let rival = match winner.threads.first() {
        Some(position) => &machine.threads[*position],
        None if is_full => busiest(model, victim)?,
        None => return None,
    };
    // A real-time policy comes before all weights.
    if victim.vm.is_none() || is_real_time(victim) || is_real_time(rival) {
        return None;
    }
    // What VMs weigh themselves, where all are short, PLC-OVERCOMMIT says.
    let parting = machine.parting(victim, rival).filter(|[(own, _), _]| !is_full || vm_of(model, own).is_none())?;
    let [own, other] = parting.map(|(_, weight)| weight.value as f64);
    // A group's weight is divided among its threads by what they want (`calc_group_shares`, kernel/sched/fair.c, Linux 6.12).
    let each = |(path, weight): (&str, &Fact<u64>)| weight.value as f64 / wanted(model, path).max(1.0);
    let [own_each, other_each] = parting.map(each);
    (other > own && other >= HEAVIER * own && other_each >= HEAVIER * own_each).then_some(parting)
}

/// The group of a victim by whose weight it gets little, as PLC-WEIGHT says.
pub(super) fn lighter<'a>(model: &'a Model, verdict: &Verdict) -> Option<&'a str> {
    parting(model, verdict).map(|[(own, _), _]| own)
}

/// The vCPU of another VM that ran most.
fn busiest<'a>(model: &'a Model, victim: &Thread) -> Option<&'a Thread> {
    let others = model.machine.threads.iter().filter(|thread| thread.vm.is_some() && thread.vm != victim.vm);
    let vcpus = others.filter(|thread| matches!(thread.role, Role::Vcpu(_)));
    let ran = |thread: &Thread| thread.run_share.as_ref().map_or(0.0, |run| run.value);
    vcpus.max_by(|a, b| ran(a).total_cmp(&ran(b)))
}

fn inside<'a>(model: &'a Model, path: &str) -> impl Iterator<Item = &'a Thread> {
    let is_inside =
        move |thread: &&Thread| thread.time_group.as_deref().is_some_and(|group| is_within_group(group, path));
    model.machine.threads.iter().filter(is_inside)
}

/// CPUs that the threads of a group want together.
fn wanted(model: &Model, path: &str) -> f64 {
    inside(model, path).map(|thread| Demand::of(thread).likely).sum()
}

/// The VM that a group is of, where all its threads are of one. A slice is nobody's, however few are in it.
fn vm_of<'a>(model: &'a Model, path: &str) -> Option<&'a str> {
    let vms: BTreeSet<Option<&str>> = inside(model, path).map(|thread| thread.vm.as_deref()).collect();
    vms.first().copied().flatten().filter(|_| vms.len() == 1 && !path.ends_with(".slice"))
}

/// The weight of a VM beside others: as its group has it, else as it was defined.
pub(super) fn of_vm(model: &Model, vm: &str) -> Option<u64> {
    let group = model.machine.threads_of(vm).find_map(|thread| thread.time_group.as_deref());
    // Its own group is the highest that is of it alone.
    let above = group.into_iter().flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at]).chain([path]));
    let own = above.filter(|path| !path.is_empty()).find(|path| vm_of(model, path).is_some());
    let told = own.and_then(|path| model.machine.weights.get(path)).map(|weight| weight.value);
    let domain = || model.machine.domains.iter().find(|domain| domain.name == vm);
    told.or_else(|| domain()?.cpu_shares.as_ref().map(|told| told.value))
}

fn hit(model: &Model, parting: Parting<'_>, victims: &[&Verdict]) -> Hit {
    let [(own, weight), (other, heavier)] = parting;
    let short: f64 = victims.iter().map(|verdict| verdict.waited).sum();
    let name = |path: &str| vm_of(model, path).map_or_else(|| unit(path).into_owned(), str::to_owned);
    let title = format!(
        "{} has a CPU weight of {} beside {} of {}: {} there {short:.2} CPUs short",
        name(own),
        weight.value,
        heavier.value,
        name(other),
        counted(victims.len() as u64, "thread is", "threads are"),
    );
    let mut hit = Hit::new(own, Severity::High, title)
        .seen(format!("{own} has the weight {}", weight.value), &weight.place)
        .seen(format!("{other} has the weight {}", heavier.value), &heavier.place);
    hit = with_victims(model, hit, victims);
    hit.cost = Cost::of(CostKind::Measured, short, UNIT);
    let vms = victims.iter().filter_map(|verdict| model.machine.threads[verdict.victim].vm.as_ref());
    hit.explains.extend(vms.map(|vm| format!("PLC-STARVED@{vm}")));
    hit.explains.dedup();
    // Who is lighter than usual is set to it, and who is heavier as well; else the heavier one to what the lighter one has.
    let usual = usual(weight);
    let level = weight.value.max(usual);
    if weight.value < level {
        set(model, parting[0], level, &mut hit);
    }
    if heavier.value > level {
        set(model, parting[1], level, &mut hit);
    }
    if hit.fix.is_empty() {
        hit.fix.push("grep -H . /sys/fs/cgroup/*/cpu.weight   # of both groups: who sets them?".to_owned());
    }
    hit
}

/// The weight of a group of which nobody said anything, of the two versions' files.
fn usual(weight: &Fact<u64>) -> u64 {
    if weight.place.ends_with("cpu.shares") { 1_024 } else { 100 }
}

/// What gives a group another weight: in the words of libvirt for a VM, of its owner for others.
fn set(model: &Model, (path, weight): (&str, &Fact<u64>), to: u64, hit: &mut Hit) {
    if let Some(vm) = vm_of(model, path) {
        let line = |weight: u64| format!("virsh schedinfo {} --live --config --set cpu_shares={weight}", quoted(vm));
        hit.first.push(format!("virsh schedinfo {}   # what is set, and for whom is it meant?", quoted(vm)));
        hit.fix.push(line(to));
        hit.undo.push(line(weight.value));
        return;
    }
    let Some(owners) = of_owner(path, &of_systemd(weight, to), &of_systemd(weight, weight.value)) else {
        if !weight.place.starts_with("sys/fs/cgroup/") {
            return;
        }
        // Made by a program of its own, of which systemd knows nothing.
        let line = |weight: u64, file: &str| format!("echo {weight} > {}", quoted(&format!("/{file}")));
        hit.fix.push(line(to, &weight.place));
        hit.undo.push(line(weight.value, &weight.place));
        return;
    };
    hit.first.extend(owners.first);
    hit.fix.push(owners.fix);
    hit.undo.extend(owners.undo);
}

/// What bounds a container of Proxmox, whose group `/lxc` is all containers' together: a limit, as no weight of its own counts beside a
/// VM's (pct(1), Proxmox VE 8.2, cpulimit; 0: none).
pub(super) fn of_container(path: &str) -> Option<Owners> {
    let id = quoted(path.strip_prefix("/lxc/")?.split('/').next()?);
    Some(Owners {
        first: Some(format!("pct config {id} | grep cpulimit   # none: 0")),
        fix: format!("pct set {id} --cpulimit 1"),
        undo: Some(format!("pct set {id} --cpulimit 0")),
    })
}

/// The commands of whoever owns a group.
pub(super) struct Owners {
    pub first: Option<String>,
    pub fix: String,
    pub undo: Option<String>,
}

/// What gives a group another weight and the one that it had, both as systemd has them. A container's share of what several want is its
/// manager's (Incus 6.0, instance options, limits.cpu.allowance), a pod's its request.
pub(super) fn of_owner(path: &str, to: &str, was: &str) -> Option<Owners> {
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
pub(super) fn of_systemd(weight: &Fact<u64>, value: u64) -> String {
    let usual = usual(weight);
    match value {
        0 => "idle".to_owned(),
        value if value == usual => String::new(),
        value => (value * 100 / usual).max(1).to_string(),
    }
}
