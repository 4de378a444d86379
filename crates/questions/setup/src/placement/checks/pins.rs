//! Pins by themselves: who was put where, and does that fit the machine?

use super::evidence::is_of_host;
use super::left_off;
use super::starved::with_victims;
use crate::placement::culprits::{Reporter, Verdict, cpus_named, only_cpu, stack_of, starves};
use crate::placement::model::{Model, ROOM};
use crate::placement::proposal::Subject;
use base::number::{list, many, percent};
use base::shell::quoted;
use base::{Cost, CostKind, CpuSet, Evidence, Severity};
use facts::rule::Hit;
use facts::starvation::UNIT;
use host::machine::{Fact, Role, Thread};
use std::collections::BTreeMap;
use tongue::bootloader::parameter;

/// A thread with what it ran, and its VM where that is not `of`.
pub(super) fn who(thread: &Thread, of: &str) -> String {
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
    for thread in &model.machine.threads {
        if let Some(cpu) = stack_of(thread) {
            on.entry(cpu).or_default().push(thread);
        }
    }
    on.retain(|_, threads| threads.len() > 1);
    on
}

/// What gave a vCPU the policy fifo, under which it runs until it sleeps.
fn fifo<'a>(model: &'a Model, thread: &Thread) -> Option<&'a Fact<(CpuSet, String, u32)>> {
    let (vm, Role::Vcpu(number)) = (thread.vm.as_deref()?, thread.role) else { return None };
    let domain = model.machine.domains.iter().find(|domain| domain.name == vm)?;
    domain.realtime.iter().find(|told| told.value.1 == "fifo" && told.value.0.contains(number))
}

/// Two vCPUs bound to one CPU, unless one of them is known to be idle.
pub(crate) fn stacked(model: &Model) -> Vec<Hit> {
    let mut hits: BTreeMap<String, Hit> = BTreeMap::new();
    let mut victims: BTreeMap<String, Vec<&Verdict>> = BTreeMap::new();
    for (cpu, mut threads) in stacks(model) {
        // Told of the VM that waits, whichever of them was listed first.
        threads.sort_by_key(|thread| starves(thread));
        let (first, later) = (threads[0], &threads[1..]);
        let here = |verdict: &&Verdict| only_cpu(&model.machine.threads[verdict.victim]) == Some(cpu);
        let whose = later.iter().find_map(|thread| thread.vm.clone()).unwrap_or_default();
        victims.entry(whose).or_default().extend(model.verdicts.of_reporter(Reporter::Stacked).filter(here));
        for thread in later {
            let (Some(vm), Some(pin)) = (&thread.vm, &thread.affinity) else { continue };
            let hit = hits.remove(vm).unwrap_or_else(|| Hit::new(vm, Severity::Medium, ""));
            let mut hit = hit.seen(format!("CPU {cpu}: {} and {}", who(first, vm), who(thread, vm)), &pin.place);
            if let Some(told) = fifo(model, first).and(fifo(model, thread)) {
                let what = format!("both of CPU {cpu} run with fifo: while one runs, the other waits until it sleeps");
                hit.evidence.push(Evidence::new(what, &told.place));
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
        // Of real-time policies the evidence has lines of its own.
        cpus.retain(|cpu| !cpu.contains(" run with fifo"));
        let stacked = cpus.len();
        cpus.dedup();
        let carry = if cpus.len() == 1 { "carries" } else { "carry" };
        let vcpus = if stacked == cpus.len() { "two vCPUs" } else { "more than one vCPU" };
        let subject = &hit.subject;
        let stops = match hit.evidence.iter().any(|seen| seen.what.contains(" run with fifo")) {
            true => ", and of two with fifo one is stopped until the other sleeps",
            false => "",
        };
        hit.title = format!("{} of {subject} {carry} {vcpus}: {}{stops}", many(cpus.len() as u64, "CPU"), list(&cpus));
        if let Some(victims) = victims.remove(&hit.subject).filter(|victims| !victims.is_empty()) {
            let told = std::mem::replace(hit, Hit::new("", Severity::Info, ""));
            let short: f64 = victims.iter().map(|verdict| verdict.waited).sum();
            *hit = Hit {
                severity: Severity::High,
                cost: Cost::of(CostKind::Measured, short, UNIT),
                ..with_victims(model, told, &victims)
            };
            hit.title += &format!("; {} starve there, {short:.2} CPUs short", many(victims.len() as u64, "thread"));
        }
        if hit.changes.is_empty() {
            hit.fix.push(model.proposal.why_none());
        }
    }
    hits
}

/// Pins to CPUs that do not run. One in pasted text that cannot be of this host is of another one (EVD-HOSTS).
pub(crate) fn offline(model: &Model) -> Vec<Hit> {
    let online = &model.machine.topology.online;
    let known: CpuSet = model.machine.topology.cpus.keys().copied().collect();
    let is_here = |pin: &CpuSet| !model.pasted || is_of_host(&known, pin);
    if online.is_empty() {
        return Vec::new();
    }
    let mut hits: Vec<Hit> = left_off::left_off(model).into_iter().collect();
    for domain in &model.machine.domains {
        let vcpus = domain.vcpu_pins.iter().map(|(vcpu, pin)| (format!("vcpu {vcpu}"), pin));
        let emulator = domain.emulator_pins.last().map(|pin| ("the emulator".to_owned(), pin));
        let gone: Vec<_> =
            vcpus.chain(emulator).filter(|(_, pin)| is_here(&pin.value) && !pin.value.is_within(online)).collect();
        if !gone.is_empty() {
            let title = format!("{} of {} name offline CPUs", many(gone.len() as u64, "pin"), domain.name);
            // Who has other CPUs left is where it was wanted; who has none may run anywhere.
            let lost = gone.iter().any(|(_, pin)| !pin.value.meets(online));
            let waits = model
                .verdicts
                .all()
                .iter()
                .any(|verdict| model.machine.threads[verdict.victim].vm.as_deref() == Some(&domain.name));
            let severity = match (lost, waits) {
                (true, true) => Severity::High,
                (true, false) => Severity::Medium,
                (false, _) => Severity::Info,
            };
            let mut hit = Hit::new(&domain.name, severity, title);
            if lost && waits {
                hit.explains = ["PLC-STARVED", "PLC-FLOAT"].map(|rule| format!("{rule}@{}", domain.name)).into();
            }
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
pub(crate) fn isolated(model: &Model) -> Vec<Hit> {
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
        if let Some(now) = parameter(model.machine.setting("proc/cmdline").unwrap_or_default(), "isolcpus") {
            hit.fix.push(format!("# or boot without isolcpus={now}: then the scheduler moves threads between these CPUs, and the host's programs come there"));
        }
        let own = |verdict: &&Verdict| {
            let thread = &model.machine.threads[verdict.victim];
            thread.vm.as_ref().unwrap_or(&thread.name) == &hit.subject
        };
        let victims: Vec<&Verdict> = model.verdicts.of_reporter(Reporter::Isolation).filter(own).collect();
        if !victims.is_empty() {
            let told = std::mem::replace(hit, Hit::new("", Severity::Info, ""));
            *hit = Hit { severity: Severity::High, ..with_victims(model, told, &victims) };
        }
    }
    hits
}

/// Pinned vCPUs on the CPUs of everybody, while isolated ones have no thread of any VM.
pub(crate) fn housekeeping(model: &Model) -> Vec<Hit> {
    let Some(isolated) = model.machine.topology.isolated.as_ref().filter(|set| !set.is_empty()) else {
        return Vec::new();
    };
    let unused = |cpu: &u32| model.machine.cpu_use.get(cpu).is_none_or(|usage| usage.idle >= ROOM);
    let unused: CpuSet = isolated.and(&model.unbound()).iter().filter(unused).collect();
    let mut hits: Vec<Hit> = Vec::new();
    for domain in model.machine.domains.iter() {
        // No pin leads out of a group: CPUs of a partition are its owner's.
        let limits = model.vcpus(domain).filter_map(|thread| model.machine.limit_of(thread));
        let free = limits.fold(unused.clone(), |free, (_, limit)| free.and(&limit.value));
        if free.is_empty() {
            continue;
        }
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

/// Whether a thread may run on all CPUs.
fn roams(model: &Model, position: usize) -> bool {
    let set = model.machine.threads[position].affinity.as_ref();
    set.is_some_and(|set| model.machine.topology.online.is_within(&set.value))
}

/// Domains that may run anywhere, beside domains whose vCPUs are pinned.
pub(crate) fn floating(model: &Model) -> Vec<Hit> {
    let online = &model.machine.topology.online;
    let pinned = model.of_vcpus();
    if online.is_empty() || pinned.is_empty() {
        return Vec::new();
    }
    let mut hits = Vec::new();
    let mut typed: Option<String> = None;
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
        let of_this = |position: &usize| model.machine.threads[*position].vm.as_ref() == Some(&domain.name);
        let by_this = |verdict: &&Verdict| {
            let rival = verdict.winner().and_then(|winner| winner.threads.first());
            of_this(&verdict.victim) || rival.is_some_and(|rival| of_this(rival) && roams(model, *rival))
        };
        let victims: Vec<&Verdict> = model.verdicts.of_reporter(Reporter::Float).filter(by_this).collect();
        let victims: Vec<&Verdict> =
            victims.into_iter().filter(|verdict| !of_this(&verdict.victim) || roams(model, verdict.victim)).collect();
        if !victims.is_empty() {
            hit.severity = Severity::High;
            let cpus = cpus_named(&victims.iter().fold(CpuSet::default(), |all, verdict| all.or(&verdict.cpus)));
            let pinned = victims.iter().filter(|verdict| !of_this(&verdict.victim)).count() as u64;
            let threads = many(loose.len() as u64, "thread");
            hit.title = match pinned {
                0 => format!(
                    "{threads} of {} may run anywhere, and {} starved on {cpus}, where vCPUs are pinned",
                    domain.name,
                    victims.len()
                ),
                pinned => format!(
                    "{threads} of {} may run anywhere, and ran on {cpus}, where {} starved",
                    domain.name,
                    many(pinned, "pinned vCPU")
                ),
            };
            hit = with_victims(model, hit, &victims);
        }
        hit.changes = model.proposal.part(|_, of| of.vm == domain.name);
        if hit.changes.is_empty() && !victims.is_empty() {
            // One set for all of them: together they must fit.
            match typed {
                Some(ref first) => hit
                    .fix
                    .push(format!("kvmscope check   # after PLC-FLOAT@{first}, which keeps this VM off them as well")),
                None => {
                    let everybody = model
                        .machine
                        .threads
                        .iter()
                        .enumerate()
                        .filter(|(at, thread)| thread.vm.is_some() && roams(model, *at));
                    let everybody: Vec<&Thread> = everybody.map(|(_, thread)| thread).collect();
                    super::covers::kept_off(model, &everybody, &mut hit);
                    typed = (!hit.changes.is_empty()).then(|| domain.name.clone());
                }
            }
        }
        if hit.changes.is_empty() && hit.fix.is_empty() {
            hit.fix.push(model.proposal.why_none());
        }
        hits.push(hit);
    }
    hits
}

/// Vhost threads that may run outside the emulator's pin; one that was pinned within it keeps to it.
pub(crate) fn late(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in model.machine.domains.iter().filter(|_| !model.pasted) {
        let Some(pin) = domain.emulator_pins.last() else { continue };
        // A pin on CPUs that do not run has none: that is PLC-OFFLINE's.
        let online = &model.machine.topology.online;
        if !online.is_empty() && !pin.value.meets(online) {
            continue;
        }
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
pub(crate) fn escaped(model: &Model) -> Vec<Hit> {
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
