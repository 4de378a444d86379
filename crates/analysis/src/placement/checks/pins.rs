//! Pins by themselves: who was put where, and does that fit the machine?

use super::starved::starves;
use crate::placement::model::{BUSY, Demand, Model};
use crate::placement::proposal::Subject;
use crate::rule::Hit;
use base::number::{list, many, percent};
use base::shell::quoted;
use base::{CpuSet, Evidence, Severity};
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
            let both = [first, *thread].map(|thread| (thread.vm.as_deref(), thread.role));
            let parted = model.proposal.part(|_, of| both.contains(&(Some(of.vm.as_str()), of.role)));
            hit.changes.extend(parted.into_iter().filter(|change| !hit.changes.contains(change)).collect::<Vec<_>>());
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
            hit.fix.push(model.proposal.why_none());
        }
    }
    hits
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
            let used: f64 = threads.iter().map(|thread| Demand::of(thread).low).sum();
            let or_more = if threads.iter().any(|thread| thread.run_share.is_none()) { " or more" } else { "" };
            hit = hit.seen(
                format!(
                    "{} on CPUs {}, one core; they used {used:.2} CPUs{or_more}",
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
        let subject = &hit.subject;
        hit.changes = model.proposal.part(|unit, of| of.vm == *subject && unit.stuck.is_some());
        if hit.changes.is_empty() {
            hit.fix.push(format!("virsh vcpupin {} VCPU CPU --live   # one isolated CPU each", quoted(subject)));
        }
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
        let roles: Vec<Role> = outside.iter().map(|thread| thread.role).collect();
        hit.changes = model.proposal.part(|_, of| of.vm == domain.name && roles.contains(&of.role));
        if hit.changes.is_empty() {
            hit.fix.push(format!("taskset -cp CPU TID   # one isolated CPU of {free} for each vCPU"));
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
        hit.changes = model.proposal.part(|_, of| of.vm == domain.name);
        if hit.changes.is_empty() {
            hit.fix.push(model.proposal.why_none());
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

/// Vhost threads that may run outside the emulator's pin; one that was pinned within it keeps to it.
pub fn late(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in model.machine.domains.iter().filter(|_| !model.pasted) {
        let Some(pin) = domain.emulator_pins.last() else { continue };
        let late: Vec<_> = model
            .helpers(domain)
            .filter(|thread| {
                let outside = |set: &CpuSet| !set.is_within(&pin.value) && set.len() > 1;
                thread.role == Role::Vhost && thread.affinity.as_ref().is_some_and(|set| outside(&set.value))
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
        }
        hit.changes = model.proposal.part(|_, of| of.vm == domain.name && of.role == Role::Vhost);
        if hit.changes.is_empty() {
            hit.fix.push(model.proposal.why_none());
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
        let out: Vec<i32> = model
            .helpers(domain)
            .filter(|thread| thread.role == Role::Vhost && thread.cgroup.as_deref() == Some("/"))
            .filter_map(|thread| thread.tid)
            .collect();
        if confined && !out.is_empty() {
            let title =
                format!("the cgroup of {} does not contain {}", domain.name, many(out.len() as u64, "vhost thread"));
            let hit = Hit::new(&domain.name, Severity::Medium, title);
            let mut hit = out.iter().fold(hit, |hit, tid| {
                hit.seen(format!("thread {tid} is in the root cgroup"), format!("proc/{tid}/cgroup"))
            });
            let escaped = |of: &Subject| of.threads.iter().any(|(thread, _)| out.contains(&thread.tid));
            hit.changes = model.proposal.part(|_, of| of.vm == domain.name && escaped(of));
            hits.push(hit);
        }
    }
    hits
}
