//! What the CPUs of real time did between two samples: the effect that knobs are set for, or its absence.
//!
//! Each function returns `None` where that was not measured: one sample, a file that is not there, no such CPUs.

use super::host::{Host, is_real_time};
use base::number::{list, percent};
use base::{Change, CpuSet, Evidence};
use facts::apart::interrupt_leaves;
use host::machine::{Irq, Role, Thread};
use walk::kernel_threads::is_bound;

/// Part of a CPU that a task has to run to be told: less is not listed of a machine.
pub(super) const WORTH_TELLING: f64 = 0.05;

/// A tick is 100, 250, 300 or 1,000 times a second (kernel/Kconfig.hz, Linux 6.12); fewer interrupts are timers of programs.
pub(super) const TICKS_PER_S: f64 = 90.0;

/// A CPU that ran less than this has no tick for being idle: our own limit.
const BUSY: f64 = 0.5;

/// Device interrupts on a CPU of real time that are told: our own limit.
pub(super) const IRQS_PER_S: f64 = 1.0;

/// NMIs that are told: our own limit, above those of a single profiler's start.
pub(super) const NMIS_PER_S: f64 = 0.5;

/// Two samples of a frequency that are closer than this are equal: our own limit.
pub(super) const FREQUENCY_MOVES: f64 = 0.1;

/// An idle state that takes longer to leave is deep: C1 takes 1 or 2 us, C1E about 10 (drivers/idle/intel_idle.c, Linux 6.12).
pub(super) const DEEP_US: f64 = 10.0;

/// Entries of deep states that are told: our own limit.
pub(super) const SLEEPS_PER_S: f64 = 1.0;

/// Part of its time by which real-time threads may miss their limit and still have reached it: our own limit.
const NEARLY: f64 = 0.02;

/// Names in a sentence.
const MOST_NAMED: usize = 3;

pub(super) struct Seen {
    /// Whether the knob's purpose is reached.
    pub works: bool,
    pub evidence: Evidence,
    /// Typed changes that end what was seen, beside those of the knob.
    pub changes: Vec<Change>,
}

fn seen(works: bool, what: String, place: &str) -> Option<Seen> {
    Some(Seen { works, evidence: Evidence::new(what, place), changes: Vec::new() })
}

/// The worst of some names with amounts, which come in any order.
fn named(mut found: Vec<(String, f64)>, said: impl Fn(f64) -> String) -> String {
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let more = found.len().saturating_sub(MOST_NAMED);
    let mut names: Vec<String> =
        found.into_iter().take(MOST_NAMED).map(|(name, amount)| format!("{name} {}", said(amount))).collect();
    names.extend((more > 0).then(|| format!("{more} more")));
    list(&names)
}

/// Threads that ran on the CPUs of real time, where all that they may use, or what they were last seen on, is there.
fn ran_there<'a>(host: &Host<'a>, wanted: impl Fn(&Thread) -> bool) -> Option<Vec<(&'a Thread, u32, f64)>> {
    host.machine.span_ns?;
    (!host.cpus.is_empty()).then_some(())?;
    let there = |thread: &'a Thread| {
        let (cpu, run) = (thread.last_cpu.as_ref()?.value, thread.run_share.as_ref()?.value);
        (host.cpus.contains(cpu) && run >= WORTH_TELLING && wanted(thread)).then_some((thread, cpu, run))
    };
    Some(host.machine.threads.iter().filter_map(there).collect())
}

fn tasks(found: &[(&Thread, u32, f64)]) -> String {
    let names = found.iter().map(|(thread, cpu, run)| (format!("{} on CPU {cpu}", thread.name), *run));
    named(names.collect(), |run| format!("({})", percent(run)))
}

/// Programs and helpers of VMs beside vCPUs; threads that the kernel binds to a CPU have nowhere else to be.
pub(super) fn others(host: &Host<'_>) -> Option<Seen> {
    let is_other = |thread: &Thread| {
        !matches!(thread.role, Role::Vcpu(_) | Role::Pmd)
            && !is_bound(&thread.name)
            && !thread.name.starts_with("kvmscope")
    };
    let found = ran_there(host, is_other)?;
    let cpus = &host.cpus;
    match found.is_empty() {
        true => seen(
            true,
            format!("no other task ran for more than {} of CPUs {cpus}", percent(WORTH_TELLING)),
            "proc/*/task/*/schedstat",
        ),
        false => seen(false, format!("other tasks ran on CPUs {cpus}: {}", tasks(&found)), "proc/*/task/*/schedstat"),
    }
}

/// Workers of the kernel that are tied to no CPU.
pub(super) fn kernel_work(host: &Host<'_>) -> Option<Seen> {
    let found = ran_there(host, |thread| thread.name.starts_with("kworker/u"))?;
    let cpus = &host.cpus;
    match found.is_empty() {
        true => seen(
            true,
            format!("no unbound worker ran for more than {} of CPUs {cpus}", percent(WORTH_TELLING)),
            "proc/*/task/*/schedstat",
        ),
        false => seen(false, format!("workers ran on CPUs {cpus}: {}", tasks(&found)), "proc/*/task/*/schedstat"),
    }
}

/// Local timer interrupts of busy CPUs.
pub(super) fn ticks(host: &Host<'_>) -> Option<Seen> {
    let rates = host.interrupts_per_s("LOC")?;
    let is_busy = |cpu: u32| host.machine.cpu_use.get(&cpu).is_some_and(|usage| 1.0 - usage.idle > BUSY);
    let busy: Vec<(u32, f64)> =
        host.cpus.iter().filter(|cpu| is_busy(*cpu)).filter_map(|cpu| Some((cpu, *rates.get(&cpu)?))).collect();
    let (_, most) = busy.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let ticking: CpuSet = busy.iter().filter(|(_, rate)| *rate > TICKS_PER_S).map(|(cpu, _)| *cpu).collect();
    let what = match ticking.is_empty() {
        true => format!("at most {most:.0} local timer interrupts per second on a busy CPU of {}", host.cpus),
        false => format!("the tick runs on CPUs {ticking}: up to {most:.0} local timer interrupts per second"),
    };
    seen(ticking.is_empty(), what, "proc/interrupts, LOC")
}

/// Threads that run the callbacks of offloaded CPUs: one called after each of them.
pub(super) fn offloaded(host: &Host<'_>) -> Option<Seen> {
    let processes = host.last.names("proc").into_iter().filter(|name| name.parse::<u32>().is_ok());
    let comms: Vec<String> =
        processes.filter_map(|pid| host.last.line(&format!("proc/{pid}/task/{pid}/comm"))).collect();
    // Where not even the first thread of the kernel was listed, none of these was.
    comms.iter().any(|comm| comm.trim() == "kthreadd").then_some(())?;
    let of = |cpu: u32| {
        let is_of = |comm: &&String| {
            comm.trim()
                .strip_prefix("rcuo")
                .and_then(|rest| rest.split_once('/'))
                .is_some_and(|(_, of)| of == cpu.to_string())
        };
        comms.iter().any(|comm| is_of(&comm))
    };
    (!host.cpus.is_empty()).then_some(())?;
    let without: CpuSet = host.cpus.iter().filter(|cpu| !of(*cpu)).collect();
    let what = match without.is_empty() {
        true => format!("a thread rcuo for each of CPUs {}", host.cpus),
        false => format!("no thread rcuo for CPUs {without}"),
    };
    seen(without.is_empty(), what, "proc/*/task/*/comm")
}

/// Interrupts of devices that came to these CPUs.
pub(super) fn interrupted(host: &Host<'_>) -> Option<Seen> {
    host.both("proc/interrupts")?;
    (!host.cpus.is_empty()).then_some(())?;
    let there = |irq: &Irq| -> f64 {
        irq.per_s.iter().filter(|(cpu, _)| host.cpus.contains(**cpu)).map(|(_, rate)| rate).sum()
    };
    let came: Vec<&Irq> = host.machine.irqs.iter().filter(|irq| there(irq) > IRQS_PER_S).collect();
    let name = |irq: &&Irq| {
        let managed = if irq.is_managed() { ", managed by the kernel" } else { "" };
        (format!("{} (interrupt {}{managed})", irq.name, irq.number), there(irq))
    };
    let found: Vec<(String, f64)> = came.iter().map(name).collect();
    let what = match found.is_empty() {
        true => format!("no device interrupt came to CPUs {} once per second", host.cpus),
        false => {
            let named = named(found.clone(), |rate| format!("{rate:.0} times per second"));
            format!("device interrupts came to CPUs {}: {named}", host.cpus)
        }
    };
    let changes = came.into_iter().filter_map(|irq| interrupt_leaves(irq, &host.cpus)).collect();
    seen(found.is_empty(), what, "proc/interrupts").map(|seen| Seen { changes, ..seen })
}

pub(super) fn nmis(host: &Host<'_>) -> Option<Seen> {
    let rates = host.interrupts_per_s("NMI")?;
    let there: Vec<(u32, f64)> = host.cpus.iter().filter_map(|cpu| Some((cpu, *rates.get(&cpu)?))).collect();
    let (cpu, most) = there.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let what = format!("up to {most:.1} NMIs per second, on CPU {cpu}");
    seen(most <= NMIS_PER_S, what, "proc/interrupts, NMI")
}

pub(super) fn frequency(host: &Host<'_>) -> Option<Seen> {
    let of = |cpu: u32| {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        let (first, last, _) = host.both(&path)?;
        let [first, last] = [first, last].map(|text| text.trim().parse::<f64>().ok());
        let (first, last) = (first?, last.filter(|khz| *khz > 0.0)?);
        Some((cpu, first, last, (first - last).abs() / first.max(last)))
    };
    let moved: Vec<(u32, f64, f64, f64)> = host.cpus.iter().filter_map(of).collect();
    let (cpu, first, last, part) = moved.into_iter().max_by(|a, b| a.3.total_cmp(&b.3))?;
    let what = format!("CPU {cpu} ran at {:.0} MHz at first and {:.0} MHz at last", first / 1e3, last / 1e3);
    seen(part <= FREQUENCY_MOVES, what, "sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq")
}

/// Idle states that take long to leave, by how often they were entered.
pub(super) fn deep_sleep(host: &Host<'_>) -> Option<Seen> {
    let (mut worst, mut counted): (Option<(u32, String, f64, f64)>, bool) = (None, false);
    for cpu in host.cpus.iter() {
        let states = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle");
        for state in host.last.names(&states) {
            let line = |file: &str| host.last.line(&format!("{states}/{state}/{file}"));
            let Some(latency) = line("latency").and_then(|us| us.trim().parse::<f64>().ok()) else { continue };
            let Some(rate) = host.rate(&format!("{states}/{state}/usage")) else { continue };
            counted = true;
            if latency > DEEP_US
                && rate > SLEEPS_PER_S
                && worst.as_ref().is_none_or(|worst| rate * latency > worst.2 * worst.3)
            {
                worst = Some((cpu, line("name").unwrap_or(state), rate, latency));
            }
        }
    }
    counted.then_some(())?;
    let what = match &worst {
        None => format!("CPUs {} entered no idle state that takes more than {DEEP_US:.0} us to leave", host.cpus),
        Some((cpu, name, rate, latency)) => {
            format!(
                "CPU {cpu} entered {} {rate:.0} times per second, which takes {latency:.0} us to leave",
                name.trim()
            )
        }
    };
    seen(worst.is_none(), what, "sys/devices/system/cpu/cpu*/cpuidle/state*/usage")
}

/// Real-time threads that ran up to their limit.
pub(super) fn throttled(host: &Host<'_>) -> Option<Seen> {
    let number = |path: &str| host.last.line(path)?.trim().parse::<u64>().ok();
    let runtime = number("proc/sys/kernel/sched_rt_runtime_us")?;
    let period = number("proc/sys/kernel/sched_rt_period_us").filter(|period| *period > 0)?;
    let limit = runtime as f64 / period as f64;
    let found = ran_there(host, is_real_time)?;
    let on = |cpu: u32| found.iter().filter(|(_, at, _)| *at == cpu).map(|(_, _, run)| run).sum::<f64>();
    let (cpu, most) = host.cpus.iter().map(|cpu| (cpu, on(cpu))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let what = format!("real-time threads ran {} of CPU {cpu}; their limit is {}", percent(most), percent(limit));
    seen(most + NEARLY < limit || limit >= 1.0, what, "proc/*/task/*/schedstat")
}
