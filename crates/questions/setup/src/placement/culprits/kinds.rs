//! The rivals, a function for each kind: what it took of the CPUs of a starved thread, or nothing where it cannot be a cause.
//!
//! Names of the kernel's interrupt threads: `ksoftirqd/CPU` (kernel/softirq.c) and `irq/NUMBER-NAME` (kernel/irq/manage.c),
//! Linux 6.12. `/proc/stat` counts the time of the first as softirq, that of the second as system time.

use super::{EXPLAINS, Kind, Pool, Rival, Scene, cpus_named, name};
use base::CpuSet;
use base::number::{list, percent};
use host::Machine;
use host::machine::{Irq, Role, Thread};

/// An interrupt below this rate disturbs little: our own limit.
pub(in crate::placement) const MANY_PER_S: f64 = 1_000.0;

/// Share of a CPU that its interrupts and softirqs take where they count: our own limit.
pub(in crate::placement) const MUCH_INTERRUPTED: f64 = 0.1;

/// Of what the programs of the host took together, the part that one needs to be named: our own limit.
const WORTH_NAMING: f64 = 0.1;

/// Names in half a sentence.
const MOST_NAMED: usize = 2;

/// A starved thread, and the CPUs on which its rivals are looked for.
pub(super) struct Wait<'a> {
    pub victim: usize,
    pub thread: &'a Thread,
    /// How long it waited, as a share of the time.
    pub waited: f64,
    pub cpus: &'a CpuSet,
    pub(crate) pools: &'a [Pool],
}

/// All kinds; their order is that of [`Kind`].
pub(super) const KINDS: &[fn(&Scene<'_>, &Wait<'_>) -> Option<Rival>] = &[
    overcommit, isolation, quota, real_time, steal, interrupts, polling, vcpus, helpers, neighbours, programs, sibling,
];

fn overcommit(_: &Scene<'_>, wait: &Wait<'_>) -> Option<Rival> {
    let set = wait.thread.affinity.as_ref().map(|set| &set.value);
    let inside = |pool: &&Pool| pool.is_full() && (pool.host || set.is_some_and(|set| set.is_within(&pool.cpus)));
    let pool = wait.pools.iter().find(inside)?;
    let did = format!("more is wanted of {} than there is", cpus_named(&pool.cpus));
    Some(Rival { took: wait.waited, ..Rival::of(Kind::Overcommit, did) })
}

/// Other CPUs of its set had room, and the scheduler moves no thread between isolated ones.
fn isolation(scene: &Scene<'_>, wait: &Wait<'_>) -> Option<Rival> {
    let isolated = scene.machine.topology.isolated.as_ref()?;
    let set = &wait.thread.affinity.as_ref()?.value;
    let unused = set.and(isolated).without(wait.cpus);
    if set.and(isolated).len() < 2 || wait.cpus.len() != 1 {
        return None;
    }
    let idle = scene.used(&unused, |usage| usage.idle)?;
    let did = format!("the idle {} of its set are isolated: no thread is moved there", cpus_named(&unused));
    (idle >= wait.waited).then(|| Rival { took: wait.waited, ..Rival::of(Kind::Isolation, did) })
}

/// A group that is stopped in so many of its periods gets no more than its quota, whoever else wants its CPUs: our own limit.
const BINDING: f64 = 0.9;

fn quota(scene: &Scene<'_>, wait: &Wait<'_>) -> Option<Rival> {
    let quotas = scene.machine.quotas_of(wait.thread);
    let took = quotas.filter_map(|(path, quota)| Some((path, quota, quota.measured.as_ref()?.value)));
    let (path, quota, measured) = took.max_by(|a, b| a.2.cpus.total_cmp(&b.2.cpus))?;
    let (share, took) = (measured.share(), measured.cpus.min(1.0));
    let did = format!(
        "the CPU quota of {path}, {:.2} CPUs, throttled it in {} of its periods",
        quota.cpus.value,
        percent(share)
    );
    let is_whole = took > 0.0 && share >= BINDING;
    let took = if is_whole { wait.waited } else { took };
    Some(Rival { took, is_whole, ..Rival::of(Kind::Quota, did) })
}

/// Part of the time by which real-time threads may miss their limit and still have reached it: our own limit.
const NEARLY: f64 = 0.02;

/// Real-time threads may run for so long a period, all of a CPU together; then they stop until the next one
/// (Documentation/scheduler/sched-rt-group.rst, Linux 6.12).
fn real_time(scene: &Scene<'_>, wait: &Wait<'_>) -> Option<Rival> {
    const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
    const PERIOD: &str = "proc/sys/kernel/sched_rt_period_us";
    let number = |path: &str| scene.machine.setting(path)?.trim().parse::<u64>().ok();
    // -1 is no limit.
    let (runtime, period) = (number(RUNTIME)?, number(PERIOD).filter(|period| *period > 0)?);
    let limit = runtime as f64 / period as f64;
    if !is_real_time(wait.thread) || limit >= 1.0 {
        return None;
    }
    let (ran, _) = scene.together(&scene.company(wait.cpus, |_, thread| is_real_time(thread)), wait.cpus, wait.thread);
    let cpus = wait.cpus.len() as f64;
    let took = if ran + NEARLY * cpus >= limit * cpus { (1.0 - limit) * cpus } else { 0.0 };
    let did =
        format!("real-time threads reached their limit, {runtime} of {period} us (sched_rt_runtime_us), and stopped");
    Some(Rival { took, on: wait.cpus.clone(), ..Rival::of(Kind::RealTime, did) })
}

/// Whether a thread runs under SCHED_FIFO or SCHED_RR (1 and 2 of include/uapi/linux/sched.h, Linux 6.12).
pub(crate) fn is_real_time(thread: &Thread) -> bool {
    matches!(thread.policy, Some(1 | 2))
}

/// How the scheduler puts it before others, if it does.
fn policy(thread: &Thread) -> &'static str {
    match thread.policy {
        Some(1) => " with SCHED_FIFO",
        Some(2) => " with SCHED_RR",
        _ => "",
    }
}

fn steal(scene: &Scene<'_>, wait: &Wait<'_>) -> Option<Rival> {
    let took = scene.used(wait.cpus, |usage| usage.steal)?;
    let did = "the hypervisor took time away (steal)".to_owned();
    Some(Rival { took, on: wait.cpus.clone(), ..Rival::of(Kind::Steal, did) })
}

fn interrupts(scene: &Scene<'_>, wait: &Wait<'_>) -> Option<Rival> {
    let of = |prefix: &'static str| scene.company(wait.cpus, move |_, thread| thread.name.starts_with(prefix));
    let ran = |threads: &[(usize, f64)]| threads.iter().map(|(_, ran)| ran).sum::<f64>();
    let (softirqs, handlers) = (of("ksoftirqd/"), of("irq/"));
    let used = scene.used(wait.cpus, |usage| usage.irq + usage.softirq);
    if used.is_none() && softirqs.is_empty() && handlers.is_empty() {
        return None;
    }
    let took = used.unwrap_or(0.0).max(ran(&softirqs)) + ran(&handlers);
    let mut names: Vec<(&Irq, f64)> = wait.cpus.iter().flat_map(|cpu| frequent(scene.machine, cpu)).collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    let names: Vec<String> = names.iter().take(MOST_NAMED).map(|(irq, _)| irq.name.clone()).collect();
    let of = if names.is_empty() { String::new() } else { format!(" of {}", list(&names)) };
    // A thread that handles one interrupt is called after it.
    let did = match handlers.first().filter(|(_, ran)| *ran >= EXPLAINS * wait.waited) {
        Some((position, _)) => format!("{}, which handles an interrupt, ran", name(&scene.machine.threads[*position])),
        None => format!("interrupts and softirqs{of} ran"),
    };
    let threads = softirqs.into_iter().chain(handlers).map(|(position, _)| position).collect();
    Some(Rival { took, on: wait.cpus.clone(), threads, ..Rival::of(Kind::Interrupts, did) })
}

/// Interrupts that come often to a CPU that spends much of its time with them, and their rates.
pub(in crate::placement) fn frequent(machine: &Machine, cpu: u32) -> impl Iterator<Item = (&Irq, f64)> {
    // Where nobody told what the CPU does, the rate alone tells.
    let much = machine.cpu_use.get(&cpu).is_none_or(|usage| usage.irq + usage.softirq > MUCH_INTERRUPTED);
    let irqs = machine.irqs.iter().filter(move |_| much);
    irqs.filter_map(move |irq| Some((irq, *irq.per_s.get(&cpu)?))).filter(|(_, rate)| *rate > MANY_PER_S)
}

fn polling(scene: &Scene<'_>, wait: &Wait<'_>) -> Option<Rival> {
    threads(scene, wait, Kind::Polling, |thread| thread.role == Role::Pmd)
}

fn vcpus(scene: &Scene<'_>, wait: &Wait<'_>) -> Option<Rival> {
    let own = |thread: &Thread| thread.vm.is_some() && thread.vm == wait.thread.vm;
    threads(scene, wait, Kind::Vcpus, |thread| own(thread) && matches!(thread.role, Role::Vcpu(_)))
}

fn helpers(scene: &Scene<'_>, wait: &Wait<'_>) -> Option<Rival> {
    let own = |thread: &Thread| thread.vm.is_some() && thread.vm == wait.thread.vm;
    threads(scene, wait, Kind::Helpers, |thread| own(thread) && !matches!(thread.role, Role::Vcpu(_)))
}

fn neighbours(scene: &Scene<'_>, wait: &Wait<'_>) -> Option<Rival> {
    threads(scene, wait, Kind::Neighbours, |thread| thread.vm.is_some() && thread.vm != wait.thread.vm)
}

/// Programs of the host: those that are listed, by name, and what is left of the busy time of the CPUs.
fn programs(scene: &Scene<'_>, wait: &Wait<'_>) -> Option<Rival> {
    let here = scene.company(wait.cpus, |position, thread| position != wait.victim && is_program(thread));
    let here = scene.bound(here, wait.cpus, wait.waited);
    let (listed, at_most) = scene.together(&here, wait.cpus, wait.thread);
    let took = (listed + scene.unlisted(wait.cpus)).min(wait.cpus.len() as f64);
    const SMALL: &str = "too small or short-lived to be listed";
    let names = by_name(scene, &here).into_iter().filter(|(_, ran)| *ran > WORTH_NAMING * took);
    let mut said: Vec<String> = names.take(MOST_NAMED).map(|(said, _)| said).collect();
    if !said.is_empty() && listed < took / 2.0 {
        said.push(format!("others {SMALL}"));
    }
    let did = match &said[..] {
        [] => format!("other programs, each {SMALL}, ran"),
        [one] if one.starts_with("kworker/") => format!("a worker of the kernel, {one}, ran"),
        [one] => format!("another program, {one}, ran"),
        [_, ..] => format!("other programs, {}, ran", list(&said)),
    };
    let known = !here.is_empty() || scene.used(wait.cpus, |_| 0.0).is_some();
    let threads = here.into_iter().map(|(position, _)| position).collect();
    known.then(|| Rival { took, at_most, on: wait.cpus.clone(), threads, ..Rival::of(Kind::Programs, did) })
}

/// Programs with what all threads of their name ran, the busiest first.
pub(super) fn by_name(scene: &Scene<'_>, here: &[(usize, f64)]) -> Vec<(String, f64)> {
    let mut names: Vec<(&Thread, u64, f64)> = Vec::new();
    for (thread, ran) in here.iter().map(|(position, ran)| (&scene.machine.threads[*position], ran)) {
        match names.iter_mut().find(|(known, ..)| known.name == thread.name) {
            Some((_, count, sum)) => (*count, *sum) = (*count + 1, *sum + ran),
            None => names.push((thread, 1, *ran)),
        }
    }
    names.sort_by(|a, b| b.2.total_cmp(&a.2));
    let said = |(thread, count, sum): (&Thread, u64, f64)| match count {
        1 => (format!("{}{}", name(thread), policy(thread)), sum),
        count => (format!("{} with {count} threads", thread.name), sum),
    };
    names.into_iter().map(said).collect()
}

/// Whether a thread is of the host alone: of no VM, no switch, and no part of the kernel's interrupts.
pub(in crate::placement) fn is_program(thread: &Thread) -> bool {
    let interrupts = thread.name.starts_with("ksoftirqd/") || thread.name.starts_with("irq/");
    thread.vm.is_none() && thread.role != Role::Pmd && !interrupts
}

/// The busiest other thread of the core.
fn sibling(scene: &Scene<'_>, wait: &Wait<'_>) -> Option<Rival> {
    let topology = &scene.machine.topology;
    let cpu = wait.cpus.first().filter(|_| wait.cpus.len() == 1)?;
    let siblings = topology.of_core(topology.cpus.get(&cpu)?.core).without(wait.cpus);
    let busy = |cpu: u32| Some((cpu, 1.0 - scene.machine.cpu_use.get(&cpu)?.idle));
    let (cpu, took) = siblings.iter().filter_map(busy).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let did = format!("its sibling CPU {cpu} was busy");
    Some(Rival { took, ..Rival::of(Kind::Sibling, did) })
}

fn threads(scene: &Scene<'_>, wait: &Wait<'_>, kind: Kind, wanted: impl Fn(&Thread) -> bool) -> Option<Rival> {
    let here = scene.company(wait.cpus, |position, thread| position != wait.victim && wanted(thread));
    let here = scene.bound(here, wait.cpus, wait.waited);
    let threads: Vec<usize> = here.iter().map(|(position, _)| *position).collect();
    let said: Vec<String> = threads
        .iter()
        .take(MOST_NAMED)
        .map(|position| said(scene.machine, &scene.machine.threads[*position]))
        .collect();
    let did = format!("{} ran", list(&said));
    let (took, at_most) = scene.together(&here, wait.cpus, wait.thread);
    (!threads.is_empty()).then(|| Rival { took, at_most, on: wait.cpus.clone(), threads, ..Rival::of(kind, did) })
}

fn said(machine: &Machine, thread: &Thread) -> String {
    let roams = thread.vm.is_some() && roams(machine, thread);
    format!("{}{}{}", name(thread), policy(thread), if roams { ", which may run anywhere," } else { "" })
}

/// Whether a thread may run on all CPUs.
pub(super) fn roams(machine: &Machine, thread: &Thread) -> bool {
    let online = &machine.topology.online;
    !online.is_empty() && thread.affinity.as_ref().is_some_and(|set| online.is_within(&set.value))
}
