//! Pins by themselves: who was put where, and does that fit the machine?

use super::starved::starves;
use crate::placement::model::{BUSY, Demand, Model};
use crate::rule::Hit;
use base::number::{list, many, percent};
use base::setting::ThreadId;
use base::shell::quoted;
use base::{Change, Evidence, Setting, Severity};
use host::machine::{Role, Thread};
use std::collections::BTreeMap;

/// The one CPU that a thread is bound to.
fn only_cpu(thread: &Thread) -> Option<u32> {
    let set = &thread.affinity.as_ref()?.value;
    set.first().filter(|_| set.len() == 1)
}

/// Whether a thread is known to be idle.
fn is_idle(thread: &Thread) -> bool {
    thread.run_share.as_ref().is_some_and(|run| run.value < BUSY)
        && thread.wait_share.as_ref().is_none_or(|wait| wait.value < BUSY)
}

fn who(thread: &Thread, of: &str) -> String {
    let vm = thread.vm.as_deref().unwrap_or_default();
    let mut ran =
        thread.run_share.as_ref().map_or("CPU share unknown".to_owned(), |run| format!("ran {}", percent(run.value)));
    if let Some(wait) = thread.wait_share.as_ref().filter(|_| starves(thread)) {
        ran = format!("{ran}, waited {}", percent(wait.value));
    }
    if vm == of { format!("{} ({ran})", thread.role) } else { format!("{} of {vm} ({ran})", thread.role) }
}

/// vCPUs by the one CPU that they are bound to, where there are several on it that are not known to be idle.
fn stacks(model: &Model) -> BTreeMap<u32, Vec<&Thread>> {
    let mut on: BTreeMap<u32, Vec<&Thread>> = BTreeMap::new();
    for thread in model.machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_)) && !is_idle(thread))
    {
        if let Some(cpu) = only_cpu(thread) {
            on.entry(cpu).or_default().push(thread);
        }
    }
    on.retain(|_, threads| threads.len() > 1);
    on
}

/// Threads that stand in each other's way by their pins.
pub(super) fn told(model: &Model) -> impl Iterator<Item = &Thread> {
    stacks(model).into_values().flatten()
}

/// Two vCPUs bound to one CPU, unless one of them is known to be idle.
pub fn stacked(model: &Model) -> Vec<Hit> {
    let mut hits: BTreeMap<String, Hit> = BTreeMap::new();
    for (cpu, threads) in stacks(model) {
        let (first, later) = (threads[0], &threads[1..]);
        for thread in later {
            let (Some(vm), Some(pin)) = (&thread.vm, &thread.affinity) else { continue };
            let hit = hits.remove(vm).unwrap_or_else(|| Hit::new(vm, Severity::Medium, ""));
            let mut hit = hit.seen(format!("CPU {cpu}: {} and {}", who(first, vm), who(thread, vm)), &pin.place);
            if starves(first) || starves(thread) {
                hit.severity = Severity::High;
            }
            let parted = apart(model, first, thread).into_iter().filter(|change| !hit.changes.contains(change));
            let parted: Vec<Change> = parted.collect();
            hit.changes.extend(parted);
            hits.insert(vm.clone(), hit);
        }
    }
    let mut hits: Vec<Hit> = hits.into_values().collect();
    for hit in &mut hits {
        let mut cpus: Vec<String> =
            hit.evidence.iter().filter_map(|seen| Some(seen.what.split_once(':')?.0.to_owned())).collect();
        let stacked = cpus.len();
        cpus.dedup();
        let carry = if cpus.len() == 1 { "carries" } else { "carry" };
        let vcpus = if stacked == cpus.len() { "two vCPUs" } else { "more than one vCPU" };
        let subject = &hit.subject;
        hit.title = format!("{} of {subject} {carry} {vcpus}: {}", many(cpus.len() as u64, "CPU"), list(&cpus));
        if hit.changes.is_empty() {
            hit.fix.push(format!(
                "virsh vcpupin {} VCPU CPU --live   # no better place found: use fewer vCPUs, or accept sharing",
                quoted(&hit.subject)
            ));
        }
    }
    hits
}

/// What the best plan that parts two vCPUs does with them.
fn apart(model: &Model, first: &Thread, second: &Thread) -> Vec<Change> {
    let proposal = &model.proposal;
    let unit = |thread: &Thread| {
        let is = |subject: &super::super::proposal::Subject| {
            Some(&subject.vm) == thread.vm.as_ref() && subject.role == thread.role
        };
        proposal.subjects.iter().position(is)
    };
    let (Some(first), Some(second)) = (unit(first), unit(second)) else { return Vec::new() };
    let plan = proposal.better().into_iter().find(|plan| !plan.places[first].meets(&plan.places[second]));
    plan.map(|plan| [first, second].iter().flat_map(|unit| proposal.changes(plan, *unit)).collect()).unwrap_or_default()
}

/// vCPUs of one domain on threads of one core, while the guest is shown no threads.
pub fn siblings(model: &Model) -> Vec<Hit> {
    let topology = &model.machine.topology;
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        if domain.topology.as_ref().is_some_and(|shown| shown.value.threads > 1) {
            continue;
        }
        let mut cores: BTreeMap<u32, Vec<&Thread>> = BTreeMap::new();
        for thread in model.vcpus(domain) {
            if let Some(cpu) = only_cpu(thread).and_then(|cpu| topology.cpus.get(&cpu)) {
                cores.entry(cpu.core).or_default().push(thread);
            }
        }
        cores.retain(|_, threads| {
            let mut cpus: Vec<Option<u32>> = threads.iter().map(|thread| only_cpu(thread)).collect();
            cpus.sort_unstable();
            cpus.dedup();
            cpus.len() > 1
        });
        if cores.is_empty() {
            continue;
        }
        let count: usize = cores.values().map(Vec::len).sum();
        let title =
            format!("{count} vCPUs of {} run on sibling threads of {}", domain.name, many(cores.len() as u64, "core"));
        let mut hit = Hit::new(&domain.name, Severity::Medium, title).of_domain(&domain.name);
        if domain.vcpu_count() > 0 && domain.vcpu_count().is_multiple_of(2) {
            hit = hit.filling("N", domain.vcpu_count() / 2);
        }
        for (core, threads) in &cores {
            let names: Vec<String> = threads.iter().map(|thread| thread.role.to_string()).collect();
            let wanted: f64 = threads.iter().map(|thread| Demand::of(thread).low).sum();
            hit = hit.seen(
                format!(
                    "{} on CPUs {}, one core; they used {wanted:.2} CPUs at most",
                    list(&names),
                    topology.of_core(*core)
                ),
                &topology.place,
            );
        }
        let shown = match &domain.topology {
            Some(shown) => ("the guest sees one thread per core".to_owned(), shown.place.clone()),
            None => ("the guest's topology is unknown".to_owned(), "unknown".to_owned()),
        };
        hits.push(hit.seen(shown.0, shown.1));
    }
    hits
}

/// Pins to CPUs that do not run.
pub fn offline(model: &Model) -> Vec<Hit> {
    let online = &model.machine.topology.online;
    if online.is_empty() {
        return Vec::new();
    }
    let mut hits: Vec<Hit> = Vec::new();
    for domain in &model.machine.domains {
        let vcpus = domain.vcpu_pins.iter().map(|(vcpu, pin)| (format!("vcpu {vcpu}"), pin));
        let emulator = domain.emulator_pins.last().map(|pin| ("the emulator".to_owned(), pin));
        let gone: Vec<_> = vcpus.chain(emulator).filter(|(_, pin)| !pin.value.is_within(online)).collect();
        if !gone.is_empty() {
            let title = format!("{} of {} name offline CPUs", many(gone.len() as u64, "pin"), domain.name);
            let hit = Hit::new(&domain.name, Severity::High, title);
            hits.push(gone.iter().fold(hit, |hit, (name, pin)| {
                hit.seen(
                    format!("{name} is bound to {}; CPUs {} are offline", pin.value, pin.value.without(online)),
                    &pin.place,
                )
            }));
        }
    }
    hits
}

/// Threads with several isolated CPUs in their mask.
pub fn isolated(model: &Model) -> Vec<Hit> {
    let Some(isolated) = model.machine.topology.isolated.as_ref().filter(|set| !set.is_empty()) else {
        return Vec::new();
    };
    let mut hits: Vec<Hit> = Vec::new();
    for thread in model.machine.threads.iter().filter(|thread| thread.role != Role::Other) {
        let Some(set) = &thread.affinity else { continue };
        let there = set.value.and(isolated);
        if there.len() < 2 || set.value.len() < 2 {
            continue;
        }
        let vm = thread.vm.clone().unwrap_or_else(|| thread.name.clone());
        let what = format!("{} may run on {}, of which {there} are isolated", thread.role, set.value);
        match hits.iter_mut().find(|hit| hit.subject == vm) {
            Some(hit) => hit.evidence.push(base::Evidence::new(what, &set.place)),
            None => hits.push(Hit::new(&vm, Severity::Medium, "").seen(what, &set.place)),
        }
    }
    for hit in &mut hits {
        hit.title = format!(
            "{} of {} may run on several isolated CPUs, and each will use only one",
            many(hit.evidence.len() as u64, "thread"),
            hit.subject
        );
        hit.fix.push(format!("virsh vcpupin {} VCPU CPU --live   # one isolated CPU each", quoted(&hit.subject)));
    }
    hits
}

/// Pinned vCPUs on the CPUs of everybody, while isolated ones have no thread of any VM.
pub fn housekeeping(model: &Model) -> Vec<Hit> {
    let Some(isolated) = model.machine.topology.isolated.as_ref().filter(|set| !set.is_empty()) else {
        return Vec::new();
    };
    let free = isolated.and(&model.unbound());
    let mut hits: Vec<Hit> = Vec::new();
    for domain in model.machine.domains.iter().filter(|_| !free.is_empty()) {
        let outside = |thread: &&Thread| {
            let set = thread.affinity.as_ref().map(|set| &set.value);
            set.is_some_and(|set| !set.meets(isolated) && set.len() < model.machine.topology.online.len())
        };
        let outside: Vec<&Thread> = model.vcpus(domain).filter(outside).collect();
        let Some(first) = outside.first().and_then(|thread| thread.affinity.as_ref()) else { continue };
        let title = format!(
            "isolated CPUs {free} are unused, and {} of {} may not run on them",
            many(outside.len() as u64, "vCPU"),
            domain.name
        );
        let mut hit = Hit::new(&domain.name, Severity::Medium, title)
            .seen(format!("isolated: {isolated}"), "sys/devices/system/cpu/isolated")
            .seen(format!("a vCPU may run only on {}", first.value), &first.place);
        let managed = domain.whole.is_some() || !domain.vcpu_pins.is_empty();
        for (thread, cpu) in outside.iter().zip(free.iter()) {
            let (cpus, from) = (cpu.to_string(), thread.affinity.as_ref().map(|set| set.value.to_string()));
            match (thread.role, thread.id()) {
                (Role::Vcpu(vcpu), _) if managed => {
                    hit.changes.push(Setting::vcpu_pin(domain.name.clone(), vcpu).change(cpus, from));
                }
                (_, Some(thread)) => hit.changes.push(Setting::TaskAffinity(thread).change(cpus, from)),
                _ => {}
            }
        }
        if hit.changes.is_empty() {
            hit.fix.push(format!("taskset -cp {free} TID   # one isolated CPU for each vCPU"));
        }
        hits.push(hit);
    }
    hits
}

/// Domains that may run anywhere, beside domains whose vCPUs are pinned.
pub fn floating(model: &Model) -> Vec<Hit> {
    let online = &model.machine.topology.online;
    let pinned = model.of_vcpus();
    if online.is_empty() || pinned.is_empty() {
        return Vec::new();
    }
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        // Workers that a pin has not reached are PLC-LATE's.
        let late = |thread: &&Thread| thread.role == Role::Vhost && !domain.emulator_pins.is_empty() && !model.pasted;
        let threads: Vec<&Thread> = model.machine.threads_of(&domain.name).filter(|thread| !late(thread)).collect();
        let loose =
            threads.iter().filter(|thread| thread.affinity.as_ref().is_some_and(|set| online.is_within(&set.value)));
        let loose: Vec<_> = loose.collect();
        let Some(set) = loose.first().and_then(|thread| thread.affinity.as_ref()) else { continue };
        let title = format!(
            "{} of {} may run anywhere, including CPUs {pinned}, where vCPUs are pinned",
            many(loose.len() as u64, "thread"),
            domain.name
        );
        let mut hit =
            Hit::new(&domain.name, Severity::Medium, title).seen(format!("they may run on {}", set.value), &set.place);
        if let Some(plan) = model.proposal.better().first() {
            let of_this = |unit: &usize| model.proposal.subjects[*unit].vm == domain.name;
            let changes = (0..plan.places.len()).filter(of_this).flat_map(|unit| model.proposal.changes(plan, unit));
            hit.changes.extend(changes);
        }
        if hit.changes.is_empty() {
            let free = online.without(&pinned);
            hit.fix.push(format!(
                "virsh emulatorpin {} {free} --live   # and vcpupin: CPUs without pinned vCPUs",
                quoted(&domain.name)
            ));
        }
        hits.push(hit);
    }
    hits
}

/// More vCPUs that want to run than CPUs: by their measured wishes, or where they stay unknown by twice the CPUs.
pub fn overcommit(model: &Model) -> Vec<Hit> {
    let cpus = model.machine.topology.online.len();
    let vcpus: Vec<&Thread> =
        model.machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_))).collect();
    let known = vcpus.iter().filter(|thread| thread.run_share.is_some() && thread.wait_share.is_some()).count();
    let wanted: f64 = vcpus.iter().map(|thread| Demand::of(thread).likely).sum();
    if cpus == 0 || known < vcpus.len() || wanted <= cpus as f64 {
        return Vec::new();
    }
    let title = format!("{} vCPUs want {wanted:.1} CPUs; the host has {cpus}", vcpus.len());
    let mut hit = Hit::new("host", Severity::High, title).with(Evidence::in_table(
        format!("run and wait of {} vCPUs add up to {wanted:.1}", vcpus.len()),
        "placement.threads",
    ));
    let mut vms: BTreeMap<&str, usize> = BTreeMap::new();
    vcpus.iter().filter_map(|thread| thread.vm.as_deref()).for_each(|vm| *vms.entry(vm).or_default() += 1);
    for (vm, count) in vms.into_iter().filter(|(_, count)| *count > 1) {
        let vm = quoted(vm);
        hit.fix.push(format!("virsh setvcpus {vm} N --config   # fewer than {count}, from the next start"));
        hit.undo.push(format!("virsh setvcpus {vm} {count} --config"));
    }
    if hit.fix.is_empty() {
        hit.fix.push("kvmscope check --goal density   # which VMs could go to another host".to_owned());
    }
    vec![hit]
}

/// Vhost threads whose mask in force is not the emulator's pin.
pub fn late(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in model.machine.domains.iter().filter(|_| !model.pasted) {
        let Some(pin) = domain.emulator_pins.last() else { continue };
        let late: Vec<_> = model
            .helpers(domain)
            .filter(|thread| {
                thread.role == Role::Vhost && thread.affinity.as_ref().is_some_and(|set| set.value != pin.value)
            })
            .collect();
        if late.is_empty() {
            continue;
        }
        let title =
            format!("emulatorpin of {} has no effect on {}", domain.name, many(late.len() as u64, "vhost thread"));
        let mut hit =
            Hit::new(&domain.name, Severity::Medium, title).seen(format!("emulatorpin is {}", pin.value), &pin.place);
        for thread in late {
            let (Some(thread), Some(set)) = (thread.id(), &thread.affinity) else { continue };
            hit = hit.seen(format!("thread {} may run on {}", thread.tid, set.value), &set.place);
            hit.changes.push(Setting::TaskAffinity(thread).change(pin.value.to_string(), Some(set.value.to_string())));
        }
        hits.push(hit);
    }
    hits
}

/// Vhost threads in the root cgroup while their VM has one of its own.
pub fn escaped(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let confined = model
            .machine
            .threads_of(&domain.name)
            .any(|thread| thread.cgroup.as_deref().is_some_and(|group| group != "/"));
        let out: Vec<(ThreadId, Option<String>)> = model
            .helpers(domain)
            .filter(|thread| thread.role == Role::Vhost && thread.cgroup.as_deref() == Some("/"))
            .filter_map(|thread| Some((thread.id()?, thread.affinity.as_ref().map(|set| set.value.to_string()))))
            .collect();
        if confined && !out.is_empty() {
            let title =
                format!("the cgroup of {} does not contain {}", domain.name, many(out.len() as u64, "vhost thread"));
            let hit = Hit::new(&domain.name, Severity::Medium, title);
            let mut hit = out.iter().fold(hit, |hit, (ThreadId { tid, .. }, _)| {
                hit.seen(format!("thread {tid} is in the root cgroup"), format!("proc/{tid}/cgroup"))
            });
            let pin = domain.emulator_pin().map(|pin| pin.value.to_string());
            hit.changes.extend(pin.iter().flat_map(|cpus| {
                let moved = |(thread, from): &(ThreadId, Option<String>)| {
                    Setting::TaskAffinity(thread.clone()).change(cpus.clone(), from.clone())
                };
                out.iter().map(moved)
            }));
            hits.push(hit);
        }
    }
    hits
}
