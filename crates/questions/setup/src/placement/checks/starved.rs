//! Threads that waited for a CPU, and who kept them from it.
//!
//! A starved thread is reported once: by the rule whose change would end it (`culprits::Reporter`), else here.

use super::place::managed;
use super::programs;
use crate::placement::culprits::{Kind, Reporter, Verdict, called, cpus_named, explained, is_harmless, name, only_cpu};
use crate::placement::model::Model;
use crate::placement::proposal::{self, Advice, What};
use base::number::{counted, list, many, percent};
use base::shell::quoted;
use base::{Cell, Cost, CostKind, CpuSet, Evidence, Severity};
use facts::rule::Hit;
use facts::starvation::UNIT;
use host::machine::{Role, Thread};
use std::collections::{BTreeMap, BTreeSet};
use walk::kernel_threads::handles;

const MOST_TOLD: usize = 8;

/// The part of what threads are short of that a move of theirs must bring to be typed: our own limit.
const CURES: f64 = 0.1;

/// Causes in a title.
const MOST_CAUSES: usize = 2;

/// Starved threads whose cause no other rule tells, one finding for each VM; one for the host where a program starves several.
pub(crate) fn starved(model: &Model) -> Vec<Hit> {
    let verdicts: Vec<&Verdict> = model.verdicts.of_reporter(Reporter::Starved).collect();
    let mut vms_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for verdict in &verdicts {
        vms_of.entry(program(model, verdict).unwrap_or_default()).or_default().insert(subject(model, verdict));
    }
    let several = |verdict: &Verdict| program(model, verdict).is_some_and(|program| vms_of[program].len() > 1);
    let mut groups: Vec<(&str, Vec<&Verdict>)> = Vec::new();
    for verdict in verdicts {
        let subject = if several(verdict) { "host" } else { subject(model, verdict) };
        match groups.iter_mut().find(|(known, _)| *known == subject) {
            Some((_, group)) => group.push(verdict),
            None => groups.push((subject, vec![verdict])),
        }
    }
    groups.into_iter().map(|(subject, verdicts)| hit(model, subject, &verdicts)).collect()
}

/// The VM of a victim; a polling thread by its own name.
fn subject<'a>(model: &'a Model, verdict: &Verdict) -> &'a str {
    let thread = victim(model, verdict);
    thread.vm.as_deref().unwrap_or(&thread.name)
}

fn victim<'a>(model: &'a Model, verdict: &Verdict) -> &'a Thread {
    &model.machine.threads[verdict.victim]
}

/// The program of the host that starves a thread; empty: programs that are not listed.
fn program<'a>(model: &'a Model, verdict: &Verdict) -> Option<&'a str> {
    let winner = verdict.winner().filter(|winner| winner.kind == Kind::Programs)?;
    Some(winner.threads.first().map_or("", |position| model.machine.threads[*position].name.as_str()))
}

fn hit(model: &Model, subject: &str, verdicts: &[&Verdict]) -> Hit {
    let short: f64 = verdicts.iter().map(|verdict| verdict.waited).sum();
    let whose: BTreeSet<&str> = verdicts.iter().map(|verdict| self::subject(model, verdict)).collect();
    let several = whose.len() > 1;
    let whose = if several { many(whose.len() as u64, "VM") } else { subject.to_owned() };
    let who = match verdicts {
        [one] if victim(model, one).vm.is_some() => format!("{} of {whose}", called(victim(model, one))),
        _ => format!("{} of {whose}", many(verdicts.len() as u64, "thread")),
    };
    let title = format!("{who} starved, {short:.2} CPUs short: {}", causes(verdicts));
    let harmless = is_harmless(&model.machine, verdicts.iter().map(|verdict| victim(model, verdict)));
    let severity = if harmless { Severity::Low } else { Severity::High };
    let mut hit = with_victims(model, Hit::new(subject, severity, title), verdicts);
    hit.cost = Cost::of(CostKind::Measured, short, UNIT);
    if several {
        hit.explains = explained(model, verdicts);
    }
    if model.machine.topology.cpus.is_empty() {
        off_polling(model, verdicts, &mut hit);
    }
    if masked(model, verdicts, &mut hit) {
        return hit;
    }
    let winners = verdicts.iter().filter_map(|verdict| verdict.winner()).flat_map(|winner| &winner.threads);
    let fixed = winners.map(|position| &model.machine.threads[*position]).find(|thread| thread.is_fixed);
    if let Some(fixed) = fixed {
        let what = format!("{}: the kernel has it for one CPU, and refuses another mask", name(fixed));
        hit = hit.seen(what, "proc/PID/task/TID/stat, flags: PF_NO_SETAFFINITY");
    }
    let programs = programs::moved(model, verdicts);
    hit.changes = if programs.is_empty() { model.proposal.part(|_, of| of.vm == subject) } else { programs };
    // A move that costs more than it gives, or gives next to nothing of what they wait for, leaves those who take the CPU.
    match Advice::of(&model.machine, &model.proposal).take(&hit.changes) {
        proposal::Verdict::Loses => hit.changes.clear(),
        proposal::Verdict::Holds(now, after) if now - after < CURES * short => hit.changes.clear(),
        proposal::Verdict::Holds(..) | proposal::Verdict::Unknown => {}
    }
    if hit.changes.is_empty() {
        move_rivals(model, verdicts, &mut hit);
    } else {
        // What the kernel does there can go elsewhere, too: then the thread stays.
        move_kernel_work(model, verdicts, &mut hit);
    }
    hit
}

/// Where nobody told which CPUs there are: a vCPU that shares its CPU with a polling thread goes elsewhere, and which CPUs are taken is known.
fn off_polling(model: &Model, verdicts: &[&Verdict], hit: &mut Hit) {
    let polling = model.machine.switch.pmd_cpus();
    let is_polling = |position: &usize| model.machine.threads[*position].role == Role::Pmd;
    for verdict in verdicts {
        let threads = verdict.winner().map_or(&[][..], |winner| &winner.threads[..]);
        let thread = victim(model, verdict);
        let (Role::Vcpu(vcpu), Some(vm), Some(pin)) = (thread.role, &thread.vm, &thread.affinity) else { continue };
        if threads.is_empty() || !threads.iter().all(is_polling) || polling.is_empty() {
            continue;
        }
        let vm = quoted(vm);
        hit.fix.push(format!(
            "virsh vcpupin {vm} {vcpu} CPU   # CPU: one without a polling thread (these have {polling}) and without a vCPU ({})",
            model.of_vcpus()
        ));
        hit.undo.push(format!("virsh vcpupin {vm} {vcpu} {}", pin.value));
    }
}

/// A worker that is tied to no CPU comes to any of its mask: a thread that makes room for it meets it again. Where such workers are all
/// that the threads wait for, the mask loses the CPUs of vCPUs and polling threads, as long as others with room are left to it.
fn masked(model: &Model, verdicts: &[&Verdict], hit: &mut Hit) -> bool {
    let machine = &model.machine;
    let Some((mask, now)) = machine.setting(WORKQUEUES).and_then(|mask| Some((mask, CpuSet::parse_mask(mask)?))) else {
        return false;
    };
    let is_workers = |verdict: &&Verdict| {
        let threads = verdict.winner().map_or(&[][..], |winner| &winner.threads[..]);
        !threads.is_empty() && threads.iter().all(|position| is_unbound(&machine.threads[*position]))
    };
    let polling = machine.threads.iter().filter(|thread| thread.role == Role::Pmd);
    let polling = polling.filter_map(|thread| Some(thread.affinity.as_ref()?.value.clone()));
    let kept = polling.chain(machine.topology.isolated.clone());
    let rest = kept.fold(now.without(&model.of_vcpus()), |rest, cpus| rest.without(&cpus));
    let has_room = machine.cpu_use.is_empty() || rest.iter().any(|cpu| model.has_room(cpu));
    if !verdicts.iter().all(is_workers) || rest.is_empty() || rest == now || !has_room {
        return false;
    }
    hit.evidence.push(Evidence::new(format!("the kernel's workers may run on {}", cpus_named(&now)), WORKQUEUES));
    hit.fix.push(format!("echo {} > /{WORKQUEUES}   # the kernel's workers off CPUs of vCPUs", rest.mask_like(mask)));
    hit.undo.push(format!("echo {mask} > /{WORKQUEUES}"));
    true
}

/// `kworker/u16:2`: u stands for unbound.
fn is_unbound(thread: &Thread) -> bool {
    thread.name.starts_with("kworker/u")
}

/// What keeps the kernel's own work off the victims' CPUs: workers that are tied to none, threads that handle interrupts.
fn move_kernel_work(model: &Model, verdicts: &[&Verdict], hit: &mut Hit) {
    let winners = verdicts.iter().filter_map(|verdict| verdict.winner());
    let threads: Vec<&Thread> =
        winners.flat_map(|winner| &winner.threads).map(|position| &model.machine.threads[*position]).collect();
    let handlers: BTreeSet<u32> = threads.iter().filter_map(|thread| handles(&thread.name)).collect();
    for number in handlers.into_iter().take(2) {
        // Where this finding sends threads, nobody else is sent.
        let taken = hit.changes.iter().filter_map(|change| CpuSet::parse(&change.to));
        let free = taken.fold(model.unbound(), |free, taken| free.without(&taken));
        let irq = model.machine.irqs.iter().find(|irq| irq.number == number);
        let asked = irq.and_then(|irq| irq.affinity.as_ref());
        let path = format!("/proc/irq/{number}/smp_affinity_list");
        match (irq.is_some_and(|irq| irq.is_managed()), free.is_empty()) {
            (true, _) => hit.fix.push(managed(number)),
            (false, true) => {}
            (false, false) => {
                hit.fix.push(format!("echo {free} > {path}   # or this: its thread goes where the interrupt goes"));
                hit.undo.extend(asked.map(|asked| format!("echo {} > {path}", asked.value)));
            }
        }
    }
    let mask = model.machine.setting(WORKQUEUES).filter(|_| threads.iter().any(|thread| is_unbound(thread)));
    if let Some((mask, now)) = mask.and_then(|mask| Some((mask, CpuSet::parse_mask(mask)?))) {
        // Nor where this finding sends threads, nor where nothing else may run.
        let taken = hit.changes.iter().filter_map(|change| CpuSet::parse(&change.to));
        let isolated = model.machine.topology.isolated.iter().cloned();
        let rest = taken.chain(isolated).fold(now.without(&model.of_vcpus()), |rest, cpus| rest.without(&cpus));
        if !rest.is_empty() && rest != now {
            hit.fix.push(format!(
                "echo {} > /{WORKQUEUES}   # or this: workqueues of the kernel off the CPUs of vCPUs",
                rest.mask_like(mask)
            ));
            hit.undo.push(format!("echo {mask} > /{WORKQUEUES}"));
        }
    }
}

/// CPUs of the kernel's workers that are tied to none (Documentation/core-api/workqueue.rst, Linux 6.12).
const WORKQUEUES: &str = "sys/devices/virtual/workqueue/cpumask";

/// What moves those that keep threads waiting, where no placement moves the threads themselves.
fn move_rivals(model: &Model, verdicts: &[&Verdict], hit: &mut Hit) {
    let winners = || verdicts.iter().filter_map(|verdict| Some((*verdict, verdict.winner()?)));
    programs::held(model, verdicts, hit);
    let handlers = winners().flat_map(|(_, winner)| &winner.threads);
    let handlers: BTreeSet<u32> =
        handlers.filter_map(|position| handles(&model.machine.threads[*position].name)).collect();
    handlers.into_iter().take(2).for_each(|number| move_handler(model, number, hit));
    let mut threads =
        winners().flat_map(|(_, winner)| &winner.threads).map(|position| &model.machine.threads[*position].name);
    if threads.any(|name| name.contains("kacpi") || name.starts_with("irq/") && name.ends_with("-acpi")) {
        // One of the firmware's events that never ends (Documentation/ABI/testing/sysfs-firmware-acpi, Linux 6.12).
        hit.first.push("grep -H enabled /sys/firmware/acpi/interrupts/gpe* | sort -rn -k 2 | head   # twice: which event counts up".to_owned());
        hit.fix.insert(0, "echo disable > /sys/firmware/acpi/interrupts/gpeNN   # that event; what it was for (lid, hotplug, power) is no longer \
                           reported".to_owned());
        hit.undo.push("echo enable > /sys/firmware/acpi/interrupts/gpeNN".to_owned());
    }
    let by = |kind: Kind| winners().find(|(_, winner)| winner.kind == kind);
    if let Some((verdict, _)) = by(Kind::Interrupts) {
        hit.fix.extend(whose_softirqs(&verdict.cpus));
    }
    if by(Kind::RealTime).is_some() {
        hit.fix.push(
            "cat /proc/sys/kernel/sched_rt_runtime_us   # PLC-REALTIME types another limit; without any, a vCPU that never \
             sleeps keeps the kernel's own threads from its CPU"
                .to_owned(),
        );
    }
    if hit.changes.is_empty() {
        hit.fix.push(model.proposal.why_none());
    }
}

/// What moves the thread that handles an interrupt: another mask for the interrupt, which the thread follows.
fn move_handler(model: &Model, number: u32, hit: &mut Hit) {
    let irq = model.machine.irqs.iter().find(|irq| irq.number == number);
    let moved = model.proposal.part(|_, subject| subject.what == What::Irq(number));
    match irq {
        Some(irq) if irq.is_managed() => hit.fix.push(managed(number)),
        _ if !moved.is_empty() => hit.changes.extend(moved),
        _ => {
            let path = format!("/proc/irq/{number}/smp_affinity_list");
            hit.fix
                .push(format!("echo CPUS > {path}   # CPUs without a vCPU; its thread goes where the interrupt goes"));
            let asked = irq.and_then(|irq| irq.affinity.as_ref());
            hit.undo.extend(asked.map(|asked| format!("echo {} > {path}", asked.value)));
        }
    }
}

/// Where to read what raises the softirqs of CPUs on which no interrupt is frequent: what one CPU hands to another one, and timers.
fn whose_softirqs(cpus: &CpuSet) -> [String; 2] {
    let named = cpus_named(cpus);
    [
        format!("cat /proc/softirqs   # twice: which softirq of {named} counts up fastest"),
        format!(
            "grep . /sys/class/net/*/queues/rx-*/rps_cpus   # for NET_RX: who steers packets to {named}, in each network namespace"
        ),
    ]
}

/// The winners of the worst victims, as half sentences.
fn causes(verdicts: &[&Verdict]) -> String {
    let mut worst: Vec<&&Verdict> = verdicts.iter().collect();
    worst.sort_by(|a, b| b.waited.total_cmp(&a.waited).then(a.victim.cmp(&b.victim)));
    let mut found: Vec<(&str, CpuSet)> = Vec::new();
    for winner in worst.iter().filter_map(|verdict| verdict.winner()) {
        match found.iter_mut().find(|(did, _)| *did == winner.did) {
            Some((_, on)) => *on = on.or(&winner.on),
            None => found.push((&winner.did, winner.on.clone())),
        }
    }
    let said = |(did, on): &(&str, CpuSet)| match on.is_empty() {
        true => (*did).to_owned(),
        false => format!("{did} on {}", cpus_named(on)),
    };
    let causes: Vec<String> = found.iter().map(said).collect();
    match causes.len() {
        0 => "what ran meanwhile does not explain it".to_owned(),
        count if count > MOST_CAUSES => {
            format!("{}; and {} more", causes[..MOST_CAUSES].join("; "), count - MOST_CAUSES)
        }
        _ => causes.join("; "),
    }
}

/// The hit with its victims as evidence: what each ran and waited, who kept it from running, and who did not. A cause
/// beyond pins explains what is found about the pins of those that starve by it alone.
pub(super) fn with_victims(model: &Model, mut hit: Hit, verdicts: &[&Verdict]) -> Hit {
    if verdicts.iter().all(|verdict| verdict.reporter.is_beyond_pins()) {
        hit.explains = explained(model, verdicts);
    }
    let mut worst: Vec<&Verdict> = verdicts.to_vec();
    worst.sort_by(|a, b| b.waited.total_cmp(&a.waited).then(a.victim.cmp(&b.victim)));
    let mut hit = worst.iter().take(MOST_TOLD).fold(hit, |hit, verdict| {
        let thread = victim(model, verdict);
        let place = thread.wait_share.as_ref().map_or("", |wait| wait.place.as_str());
        let cause = verdict.winner().map_or("what ran there does not explain it".to_owned(), ToString::to_string);
        hit.seen(format!("{}: {cause}", sentence(thread)), place)
    });
    if let Some(more) = worst.get(MOST_TOLD..).filter(|more| !more.is_empty()) {
        let mut of: BTreeMap<&str, u64> = BTreeMap::new();
        more.iter().for_each(|verdict| *of.entry(subject(model, verdict)).or_default() += 1);
        let of: Vec<String> = of.into_iter().map(|(vm, count)| format!("{count} of {vm}")).collect();
        let more = counted(more.len() as u64, "more thread is starved", "more threads are starved");
        hit = hit.seen(format!("{more}: {}", list(&of)), "table threads");
    }
    hit = idle(model).into_iter().fold(hit, Hit::with);
    match worst.first().and_then(|verdict| Some((victim(model, verdict), verdict.others()?))) {
        Some((thread, others)) => {
            let what = format!("other candidates for {}: {others}", name(thread));
            let told = Evidence::in_table(what, "placement.rivals").key("machine", model.id.as_str());
            let told = thread.vm.iter().fold(told, |told, vm| told.key("vm", vm.as_str()));
            hit.with(thread.tid.iter().fold(told, |told, tid| told.key("tid", Cell::I64((*tid).into()))))
        }
        None => hit,
    }
}

/// CPUs to which no thread is bound and that were idle for most of the time, the idlest first: where a starved thread could have run.
fn idle(model: &Model) -> Option<Evidence> {
    let is_bound = |cpu: u32| model.machine.threads.iter().any(|thread| only_cpu(thread) == Some(cpu));
    let uses = model.machine.cpu_use.iter().filter(|(cpu, told)| told.idle >= MOSTLY_IDLE && !is_bound(**cpu));
    let mut idle: Vec<(u32, f64)> = uses.map(|(cpu, told)| (*cpu, told.idle)).collect();
    idle.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let told = idle.iter().take(MOST_IDLE).map(|(cpu, share)| format!("CPU {cpu} ({} of the time)", percent(*share)));
    let mut told: Vec<String> = told.collect();
    told.extend(
        idle.len()
            .checked_sub(MOST_IDLE)
            .filter(|more| *more > 0)
            .map(|more| format!("{} as well", many(more as u64, "other CPU"))),
    );
    let what = format!("idle, and no known thread is bound there: {}", list(&told));
    (!told.is_empty()).then(|| Evidence::in_table(what, "placement.cpus").key("machine", model.id.as_str()))
}

/// A CPU with so much idle time has room for a thread; how many of them are named. Both our own.
const MOSTLY_IDLE: f64 = 0.5;
const MOST_IDLE: usize = 3;

/// What a thread ran and waited, and where.
fn sentence(thread: &Thread) -> String {
    let share = |fact: &Option<host::machine::Fact<f64>>| percent(fact.as_ref().map_or(0.0, |fact| fact.value));
    let last = thread.last_cpu.as_ref().map_or(String::new(), |cpu| format!(", last on CPU {}", cpu.value));
    format!(
        "{} ({}) ran {} and waited {} of the span{last}",
        called(thread),
        thread.tid.map_or(thread.name.clone(), |tid| tid.to_string()),
        share(&thread.run_share),
        share(&thread.wait_share),
    )
}
