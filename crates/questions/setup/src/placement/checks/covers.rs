//! Masks of several CPUs that take in what another VM has for itself: its pins are right, and who floats is to leave them alone.

use super::nova;
use super::slice::enough;
use super::starved::with_victims;
use crate::placement::culprits::{Reporter, Verdict, cpus_named};
use crate::placement::held::{covered, held};
use crate::placement::model::{BUSY, Model};
use crate::placement::solver::Kind;
use base::number::{counted, list, many};
use base::shell::quoted;
use base::{Cost, CostKind, CpuSet, Evidence, Severity};
use facts::rule::Hit;
use facts::starvation::UNIT;
use host::machine::{Role, Thread};
use std::collections::{BTreeMap, BTreeSet};

/// VMs that a title names.
const MOST_NAMED: usize = 3;

/// VMs with one mask that takes in CPUs of others, and which these are.
struct Mask<'a> {
    set: &'a CpuSet,
    covered: CpuSet,
    vms: BTreeSet<&'a str>,
    threads: Vec<&'a Thread>,
}

/// One finding for each such mask by which somebody starves.
pub(crate) fn covering(model: &Model) -> Vec<Hit> {
    let machine = &model.machine;
    let held = held(machine);
    let mut masks: BTreeMap<String, Mask<'_>> = BTreeMap::new();
    for thread in machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_))) {
        let (Some(vm), Some(set)) = (thread.vm.as_deref(), thread.affinity.as_ref().map(|set| &set.value)) else {
            continue;
        };
        let covered = covered(machine, &held, thread);
        // Who may run anywhere is PLC-FLOAT's.
        if covered.is_empty() || machine.topology.online.is_within(set) {
            continue;
        }
        let mask = Mask { set, covered: CpuSet::default(), vms: BTreeSet::new(), threads: Vec::new() };
        let mask = masks.entry(set.to_string()).or_insert(mask);
        mask.covered = mask.covered.or(&covered);
        mask.vms.insert(vm);
        mask.threads.push(thread);
    }
    masks.values().filter_map(|mask| hit(model, mask, &held)).collect()
}

fn hit(model: &Model, mask: &Mask<'_>, held: &BTreeMap<u32, &str>) -> Option<Hit> {
    let machine = &model.machine;
    let concerns = |verdict: &&Verdict| {
        let victim = &machine.threads[verdict.victim];
        let is_its = victim.vm.as_deref().is_some_and(|vm| mask.vms.contains(vm));
        is_its || victim.affinity.as_ref().is_some_and(|set| set.value.is_within(&mask.covered))
    };
    let victims: Vec<&Verdict> = model.verdicts.of_reporter(Reporter::Covers).filter(concerns).collect();
    if victims.is_empty() {
        return None;
    }
    let short: f64 = victims.iter().map(|verdict| verdict.waited).sum();
    let owners: BTreeSet<&str> = mask.covered.iter().filter_map(|cpu| held.get(&cpu).copied()).collect();
    let title = format!(
        "{} may run on {}, which {} by {} pins: {} {short:.2} CPUs short",
        named(&mask.vms),
        cpus_named(&mask.covered),
        if owners.len() == 1 {
            format!("{} has for itself", named(&owners))
        } else {
            format!("{} have for themselves", named(&owners))
        },
        if owners.len() == 1 { "its" } else { "their" },
        counted(victims.len() as u64, "thread is", "threads are"),
    );
    let mut hit = Hit::new(format!("cpus-{}", mask.set), Severity::High, title);
    let place = mask.threads.first().and_then(|thread| thread.affinity.as_ref()).map_or("", |set| set.place.as_str());
    hit = hit.seen(
        format!("{} of {} may run on {}", many(mask.threads.len() as u64, "vCPU"), named(&mask.vms), mask.set),
        place,
    );
    for owner in owners.iter().take(MOST_NAMED) {
        let own: CpuSet = mask.covered.iter().filter(|cpu| held.get(cpu) == Some(owner)).collect();
        let what = format!("vCPUs of {owner} are bound to {own}, which no vCPU of another VM is bound to alone");
        hit = hit.with(Evidence::in_table(what, "placement.threads").key("vm", *owner));
    }
    hit = with_victims(model, hit, &victims);
    hit.cost = Cost::of(CostKind::Measured, short, UNIT);
    narrowed(model, mask, &mut hit);
    if hit.changes.is_empty() && hit.fix.is_empty() {
        hit.fix.push(model.proposal.why_none());
    }
    Some(hit)
}

fn narrowed(model: &Model, mask: &Mask<'_>, hit: &mut Hit) {
    let wanted = wanted(model, mask);
    let rest = room(model, mask, wanted);
    if wanted > rest.len() as f64 + SHORT {
        crowded(model, mask, &rest, wanted, hit);
    } else {
        narrow(model, mask, &rest, hit);
    }
    shared_set(model, mask, &rest, hit);
}

/// The hit with what keeps VMs that may run anywhere off the CPUs that others have for themselves.
pub(super) fn kept_off<'a>(model: &'a Model, threads: &[&'a Thread], hit: &mut Hit) {
    let held = held(&model.machine);
    let vcpus = || threads.iter().copied().filter(|thread| matches!(thread.role, Role::Vcpu(_)));
    let covered =
        vcpus().map(|thread| covered(&model.machine, &held, thread)).fold(CpuSet::default(), |all, set| all.or(&set));
    let Some(set) = vcpus().find_map(|thread| Some(&thread.affinity.as_ref()?.value)).filter(|_| !covered.is_empty())
    else {
        return;
    };
    let vms = vcpus().filter_map(|thread| thread.vm.as_deref()).collect();
    narrowed(model, &Mask { set, covered, vms, threads: vcpus().collect() }, hit);
}

/// So many CPUs that what is left of a mask may lack: our own limit.
const SHORT: f64 = 0.1;

/// `web`, `web and db`, `5 VMs`.
fn named(vms: &BTreeSet<&str>) -> String {
    let names: Vec<String> = vms.iter().map(|vm| (*vm).to_owned()).collect();
    if names.len() > MOST_NAMED { many(names.len() as u64, "VM") } else { list(&names) }
}

/// CPUs that these VMs want together.
fn wanted(model: &Model, mask: &Mask<'_>) -> f64 {
    let units = model.proposal.task.units.iter().zip(&model.proposal.subjects);
    units.filter(|(_, of)| mask.vms.contains(of.vm.as_str())).map(|(unit, _)| unit.demand).sum()
}

/// What is left of the mask; where that is less than is wanted, with as many idle CPUs as nobody has.
fn room(model: &Model, mask: &Mask<'_>, wanted: f64) -> CpuSet {
    let machine = &model.machine;
    let rest = mask.set.without(&mask.covered);
    let limits = mask.threads.iter().filter_map(|thread| machine.limit_of(thread));
    let isolated = machine.topology.isolated.clone().unwrap_or_default();
    let free = limits.fold(model.unbound().without(&isolated), |free, (_, limit)| free.and(&limit.value));
    let idle: CpuSet = free.iter().filter(|cpu| model.has_room(*cpu)).collect();
    rest.or(&enough(model, &idle, wanted - rest.len() as f64))
}

/// The masks of these vCPUs, and of helpers beside them that run.
fn narrow(model: &Model, mask: &Mask<'_>, rest: &CpuSet, hit: &mut Hit) {
    let proposal = &model.proposal;
    let units = proposal.task.units.iter().zip(&proposal.subjects).enumerate();
    let concerned = units.filter(|(_, (unit, of))| {
        let now = unit.now.as_ref();
        let is_vcpu = unit.kind == Kind::Vcpu && now == Some(mask.set);
        let helps = unit.kind == Kind::Helpers && unit.demand > BUSY && now.is_some_and(|now| now.meets(&mask.covered));
        mask.vms.contains(of.vm.as_str()) && (is_vcpu || helps)
    });
    let to: Vec<(usize, CpuSet)> = concerned.map(|(unit, _)| (unit, rest.clone())).collect();
    let Some((changes, missing)) = proposal.moving(&to) else { return };
    let now = proposal.now().map_or(0.0, |now| proposal.missing(now));
    let what = format!("CPUs short: {now:.2} now, {missing:.2} with these commands (modelled)");
    hit.evidence.push(Evidence::in_table(what, "placement.plans"));
    hit.changes = changes;
}

/// What is left is too little for all of them, and nobody has idle CPUs: one of them goes, before the masks are narrowed.
fn crowded(model: &Model, mask: &Mask<'_>, rest: &CpuSet, wanted: f64, hit: &mut Hit) {
    let left = format!("{} left, and they want {wanted:.1}", counted(rest.len() as u64, "CPU is", "CPUs are"));
    let covered = cpus_named(&mask.covered);
    let Some(server) = mask.vms.iter().find_map(|vm| nova::server(model, vm)) else {
        let (who, then) = (named(&mask.vms), "and then their masks without");
        hit.fix.push(format!("# one of {who} to another host, or fewer vCPUs for them, {then} {covered}: {left}"));
        return;
    };
    nova::migrates(hit, &server, &format!("this or others of these: without {covered} {left}"));
}

/// Where nova gave the mask, it gives it again at each start: the set that it takes it from is what is wrong.
fn shared_set(model: &Model, mask: &Mask<'_>, rest: &CpuSet, hit: &mut Hit) {
    if !mask.vms.iter().all(|vm| nova::server(model, vm).is_some()) {
        return;
    }
    hit.first.push(
        "grep -E 'cpu_(shared|dedicated)_set' /etc/nova/nova.conf   # [compute]: no CPU may be in both".to_owned(),
    );
    hit.fix.push(format!(
        "crudini --set /etc/nova/nova.conf compute cpu_shared_set {}   # without {}; then restart nova-compute: each instance has it from its next hard reboot",
        quoted(&rest.to_string()),
        cpus_named(&mask.covered)
    ));
    hit.undo.push("grep cpu_shared_set /etc/nova/nova.conf   # before the change: it has what was set".to_owned());
}
