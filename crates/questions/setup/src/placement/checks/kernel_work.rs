//! Work of the host's kernel that takes CPUs or loses packets: its threads, softirqs, queues that overflow.

use crate::placement::culprits::Verdict;
use crate::placement::model::{Model, ROOM};
use crate::placement::proposal::What;
use base::number::{bytes, many, percent, thousands};
use base::{Evidence, Setting, Severity};
use facts::rule::Hit;
use host::Machine;
use host::machine::{CpuUse, Irq};
use std::collections::BTreeMap;

const MOST_TOLD: usize = 8;

/// Share of a CPU that a thread of the kernel runs from which it counts: our own threshold.
pub(in crate::placement) const KERNEL_BUSY: f64 = 0.2;

/// Rows of three cells.
pub(super) fn rows(table: &'static str) -> impl Iterator<Item = [&'static str; 3]> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut cells = line.split('\t');
        [(); 3].map(|()| cells.next().unwrap_or_default())
    })
}

/// Threads of the kernel: their names, what they do, and what to ask.
fn kernels() -> impl Iterator<Item = [&'static str; 3]> {
    rows(include_str!("kernel_threads.tsv"))
}

/// Whether a thread is one of this name: `kswapd0`, `ksoftirqd/3`, one for each node or CPU.
fn is_one(thread: &str, name: &str) -> bool {
    let rest = thread.strip_prefix(name);
    rest.is_some_and(|rest| rest.trim_start_matches('/').bytes().all(|byte| byte.is_ascii_digit()))
}

/// What such a thread of the kernel does.
pub(super) fn work_of(thread: &str) -> Option<&'static str> {
    kernels().find(|[name, ..]| is_one(thread, name)).map(|[_, does, _]| does)
}

/// Threads of the kernel that run for much of a CPU.
pub(crate) fn kernel_threads(model: &Model) -> Vec<Hit> {
    let machine = &model.machine;
    let rows = machine.screens.iter().flat_map(|screen| &screen.rows).filter(|row| !row.average);
    let rows = rows.filter_map(|row| Some((row.command.trim_matches(['[', ']']), row.share?, row.place.as_str())));
    let threads = machine.threads.iter().filter(|thread| thread.vm.is_none());
    let threads = threads.filter_map(|thread| {
        let run = thread.run_share.as_ref()?;
        Some((thread.name.as_str(), run.value, run.place.as_str()))
    });
    let all: Vec<(&str, f64, &str)> = rows.chain(threads).filter(|(_, share, _)| *share >= KERNEL_BUSY).collect();
    let mut hits = Vec::new();
    for [name, does, fix] in kernels() {
        let own: Vec<_> = all.iter().filter(|(thread, _, _)| is_one(thread, name)).collect();
        let Some((thread, share, _)) = own.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        let title = format!("{thread} runs {} of a CPU: it {does}", percent(*share));
        let mut hit = Hit::new(name, Severity::Medium, title);
        for (thread, share, place) in own.iter().take(MOST_TOLD) {
            hit = hit.seen(format!("{thread} ran {} of a CPU", percent(*share)), *place);
        }
        let settings =
            machine.settings.iter().filter(|(path, _)| name == "ksmd" && path.starts_with("sys/kernel/mm/ksm/"));
        for (path, setting) in settings.take(MOST_TOLD) {
            hit = hit.seen(format!("/{path} is {}", setting.value), &setting.place);
        }
        // Those that wait for nobody else wait no longer once it does less.
        let by_it = |verdict: &&Verdict| {
            let winners = verdict.winner().map_or(&[][..], |winner| &winner.threads[..]);
            !winners.is_empty() && winners.iter().all(|winner| is_one(&machine.threads[*winner].name, name))
        };
        let victims: Vec<&Verdict> = model.verdicts.all().iter().filter(by_it).collect();
        let vms = victims.iter().filter_map(|verdict| machine.threads[verdict.victim].vm.as_ref());
        // Where several VMs starve by it, that is one finding about the host.
        let subjects = vms.map(String::as_str).chain((!victims.is_empty()).then_some("host"));
        hit.explains.extend(subjects.map(|subject| format!("{}@{subject}", facts::starvation::RULE)));
        hit.explains.dedup();
        match name {
            "ksmd" => share_slower(machine, &mut hit),
            "khugepaged" => scan_slower(machine, &KHUGEPAGED, &mut hit),
            "kvm-nx-lpage-re" | "kvm-nx-lpage-recovery-" => recover_less(machine, &mut hit),
            "kidle_inj" | "idle_inject" => inject_less(machine, &mut hit),
            "kcompactd" if asked_to_compact(machine, &mut hit) => {}
            _ => hit.fix.push(fix.to_owned()),
        }
        hits.push(hit);
    }
    hits
}

/// What has pages moved together before anybody asks: true if that is switched on. Allocations that ask for it have it done all the same
/// (Documentation/admin-guide/sysctl/vm.rst, compaction_proactiveness, Linux 6.12).
fn asked_to_compact(machine: &Machine, hit: &mut Hit) -> bool {
    const PATH: &str = "proc/sys/vm/compaction_proactiveness";
    let Some(now) = machine.setting(PATH).and_then(|told| told.trim().parse::<u64>().ok()).filter(|now| *now > 0)
    else {
        return false;
    };
    hit.evidence.push(Evidence::new(format!("/{PATH} is {now} of 100"), PATH));
    let setting = Setting::Sysctl { path: PATH.trim_start_matches("proc/sys/").to_owned() };
    hit.changes.push(setting.change("0", Some(now.to_string())));
    hit.fix.push("grep -E 'compact_(stall|fail|success)' /proc/vmstat   # twice: if these go on counting, allocations ask for it".to_owned());
    true
}

/// What asks for idle time, where it is a cooling device, and what ends that: its state is a share of the time in per cent
/// (drivers/thermal/intel/intel_powerclamp.c, Linux 6.12). A processor that is too hot slows down by itself all the same.
fn inject_less(machine: &Machine, hit: &mut Hit) {
    hit.first.push("grep -H . /sys/class/thermal/thermal_zone*/temp   # in thousandths of a degree: if it is hot, it needs cooling".to_owned());
    let clamps = machine.settings.iter().filter(|(path, told)| {
        path.starts_with("sys/class/thermal/") && path.ends_with("/type") && told.value.contains("powerclamp")
    });
    for (path, kind) in clamps.take(MOST_TOLD) {
        let state = path.replace("/type", "/cur_state");
        let now = machine.settings.get(&state).and_then(|told| told.value.trim().parse::<u64>().ok());
        let Some(now) = now.filter(|now| *now > 0) else { continue };
        hit.evidence.push(Evidence::new(format!("{} asks for {now} % of the time", kind.value), &state));
        hit.fix.push(format!("echo 0 > /{state}   # thermald sets it again where it runs: systemctl status thermald"));
        hit.undo.push(format!("echo {now} > /{state}"));
    }
    if hit.fix.is_empty() {
        hit.fix.push("grep -H . /sys/class/thermal/cooling_device*/{type,cur_state} /sys/class/powercap/*/name; systemctl status thermald   # which cooling device asks for it, and on whose behalf".to_owned());
    }
}

/// What has it merge less at once: what somebody made faster goes back to what KVM begins with (nx_huge_pages_recovery_ratio and _period_ms,
/// Documentation/admin-guide/kernel-parameters.txt, Linux 6.12).
fn recover_less(machine: &Machine, hit: &mut Hit) {
    const PATH: &str = "module/kvm/parameters/nx_huge_pages_recovery_";
    let now = |name: &str| machine.setting(&format!("sys/{PATH}{name}"))?.trim().parse::<u64>().ok();
    let faster = [
        ("ratio", "60", now("ratio").filter(|ratio| (1..60).contains(ratio))),
        ("period_ms", "0", now("period_ms").filter(|ms| (1..60_000).contains(ms))),
    ];
    for (name, usual, now) in faster {
        let path = format!("{PATH}{name}");
        hit.changes.extend(now.map(|now| Setting::SysfsWrite { path }.change(usual, Some(now.to_string()))));
    }
    hit.fix.push("grep . /sys/module/kvm/parameters/nx_huge_pages* /sys/devices/system/cpu/vulnerabilities/itlb_multihit   # a processor without the erratum needs none of it: nx_huge_pages=off at the next load".to_owned());
}

/// How fast a thread of the kernel goes through memory: a folder, its pause and how many pages it looks at then, with what the kernel
/// begins with.
struct Pace {
    folder: &'static str,
    pause: (&'static str, u64),
    pages: (&'static str, u64),
}

/// `HPAGE_PMD_NR * 8` pages of 2 MiB's 512, then ten seconds (mm/khugepaged.c, Linux 6.12).
const KHUGEPAGED: Pace = Pace {
    folder: "sys/kernel/mm/transparent_hugepage/khugepaged",
    pause: ("scan_sleep_millisecs", 10_000),
    pages: ("pages_to_scan", 4_096),
};

/// A hundred pages, then 20 ms (Documentation/admin-guide/mm/ksm.rst, Linux 6.12).
const KSM: Pace = Pace { folder: "sys/kernel/mm/ksm", pause: ("sleep_millisecs", 20), pages: ("pages_to_scan", 100) };

/// By how much a pause grows that is the kernel's own already: our own choice.
const SLOWER: u64 = 10;

/// What slows a scan: what somebody made faster goes back to what the kernel begins with, else it pauses for longer.
fn scan_slower(machine: &Machine, pace: &Pace, hit: &mut Hit) {
    let now = |file: &str| machine.setting(&format!("{}/{file}", pace.folder))?.trim().parse::<u64>().ok();
    let mut set = |file: &str, to: u64, was: u64| {
        hit.fix.push(format!("echo {to} > /{}/{file}", pace.folder));
        hit.undo.push(format!("echo {was} > /{}/{file}", pace.folder));
    };
    let (pause, pages) = (now(pace.pause.0), now(pace.pages.0));
    let faster = (pause.filter(|ms| *ms < pace.pause.1), pages.filter(|pages| *pages > pace.pages.1));
    match faster {
        (None, None) => match pause {
            Some(ms) => set(pace.pause.0, ms * SLOWER, ms),
            None => hit.fix.push(format!(
                "grep . /{}/{{{},{}}}   # {} and {} are the kernel's own: a longer pause costs less",
                pace.folder, pace.pause.0, pace.pages.0, pace.pause.1, pace.pages.1
            )),
        },
        (ms, many) => {
            ms.into_iter().for_each(|ms| set(pace.pause.0, pace.pause.1, ms));
            many.into_iter().for_each(|many| set(pace.pages.0, pace.pages.1, many));
        }
    }
}

/// What `ksmd` saves from which on it may only go slower, in bytes: our own limit. Without it that memory is wanted again.
pub(in crate::placement) const SAVES_MUCH: f64 = (1_u64 << 30) as f64;

/// What makes sharing of pages cheaper: slower, where it saves memory; where that is little, none. A service sets it anew.
fn share_slower(machine: &Machine, hit: &mut Hit) {
    let pages = machine.setting("sys/kernel/mm/ksm/pages_sharing").and_then(|pages| pages.trim().parse::<f64>().ok());
    let saved = pages.map(|pages| pages * PAGE);
    if let Some(saved) = saved {
        hit.evidence.push(Evidence::new(format!("it saves {}", bytes(saved)), "sys/kernel/mm/ksm/pages_sharing"));
    }
    if machine.threads.iter().any(|thread| thread.name == "ksmtuned") {
        hit.fix.push("grep -v '^#' /etc/ksmtuned.conf   # ksmtuned sets the pace again: KSM_NPAGES_MAX and KSM_SLEEP_MSEC are its limits".to_owned());
    } else if saved.is_none_or(|saved| saved >= SAVES_MUCH) {
        scan_slower(machine, &KSM, hit);
    } else {
        hit.fix.push("echo 0 > /sys/kernel/mm/ksm/run".to_owned());
        hit.undo.push("echo 1 > /sys/kernel/mm/ksm/run".to_owned());
    }
}

/// A small page of x86 and of most arm64, in bytes.
const PAGE: f64 = 4_096.0;

/// Share of a CPU's time in interrupts and softirqs from which it is full of them: our own threshold.
pub(in crate::placement) const INTERRUPTED: f64 = 0.8;

/// The same of a CPU that has no more than [`NO_ROOM`] of its time left: our own thresholds.
const MOSTLY_INTERRUPTED: f64 = 0.5;
const NO_ROOM: f64 = 0.05;

/// CPUs that do nothing but handle interrupts and what these leave behind; where a card's queues are the cause, that is PLC-RSS.
pub(crate) fn softirqs(model: &Model) -> Vec<Hit> {
    let full = |usage: &CpuUse| {
        let interrupted = usage.softirq + usage.irq;
        interrupted >= INTERRUPTED || interrupted >= MOSTLY_INTERRUPTED && usage.idle <= NO_ROOM
    };
    let cpus: Vec<(u32, CpuUse)> =
        model.machine.cpu_use.iter().filter(|(_, usage)| full(usage)).map(|(cpu, usage)| (*cpu, *usage)).collect();
    let Some((cpu, worst)) = cpus.iter().max_by(|a, b| (a.1.softirq + a.1.irq).total_cmp(&(b.1.softirq + b.1.irq)))
    else {
        return interrupted(model);
    };
    if !super::steering::few(model).is_empty() {
        return Vec::new();
    }
    let others = cpus.len() as u64 - 1;
    let others = if others > 0 { format!(", and {} more", many(others, "CPU")) } else { String::new() };
    let title = format!(
        "CPU {cpu} spends {} of its time in softirqs and {} in interrupts{others}: threads bound to it wait",
        percent(worst.softirq),
        percent(worst.irq)
    );
    let mut hit = Hit::new("softirqs", Severity::Medium, title);
    for (cpu, usage) in cpus.iter().take(MOST_TOLD) {
        let seen = format!(
            "CPU {cpu}: softirqs {}, interrupts {}, idle {}",
            percent(usage.softirq),
            percent(usage.irq),
            percent(usage.idle)
        );
        hit.evidence.push(Evidence::in_table(seen, "placement.cpus").key("cpu", u64::from(*cpu)));
    }
    vec![spread(model, hit, *cpu)]
}

/// Part of a queue's interrupts that come to one CPU from which they all do: our own threshold.
const ALL_THERE: f64 = 0.95;

/// Queues of one card whose interrupts all come to that CPU.
fn queues_on(machine: &Machine, cpu: u32) -> Vec<&Irq> {
    let mut cards: BTreeMap<&str, Vec<&Irq>> = BTreeMap::new();
    for irq in machine.irqs.iter().filter(|irq| !irq.is_managed()) {
        let counts = irq.counts.iter().map(|(cpu, count)| (*cpu, *count as f64));
        let rates = irq.per_s.iter().map(|(cpu, rate)| (*cpu, *rate));
        let by_cpu: Vec<(u32, f64)> = if irq.per_s.is_empty() { counts.collect() } else { rates.collect() };
        let all: f64 = by_cpu.iter().map(|(_, count)| count).sum();
        let there: f64 = by_cpu.iter().filter(|(on, _)| *on == cpu).map(|(_, count)| count).sum();
        // `mlx5_comp3@pci:0000:07:00.0` ends with its card, others with a number.
        let card = irq.name.split_once('@').map_or(stem(&irq.name), |(_, card)| card);
        if all > 0.0 && there >= ALL_THERE * all && card.len() < irq.name.len() {
            cards.entry(card).or_default().push(irq);
        }
    }
    cards.into_values().max_by_key(Vec::len).filter(|irqs| irqs.len() > 1).unwrap_or_default()
}

/// `eth0-TxRx-` of `eth0-TxRx-3`.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

/// The hit with the queues of a card that all interrupt the one CPU, and what spreads them.
fn spread(model: &Model, mut hit: Hit, cpu: u32) -> Hit {
    let irqs = queues_on(&model.machine, cpu);
    let Some(first) = irqs.first() else { return hit };
    let numbers: Vec<String> = irqs.iter().map(|irq| irq.number.to_string()).collect();
    let what = format!(
        "the interrupts of {} of one card ({} and others) come to it alone",
        many(irqs.len() as u64, "queue"),
        first.name
    );
    hit.title = format!("{}; {what}", hit.title);
    hit = hit.seen(format!("interrupts {} come to CPU {cpu} alone", numbers.join(", ")), "proc/interrupts");
    let idle = model
        .machine
        .quoted
        .iter()
        .find(|told| told.what == "service" && told.subject == "irqbalance" && told.value != "active");
    if let Some(told) = idle {
        hit = hit.seen(format!("irqbalance is {}: nobody spreads them", told.value), &told.place);
        hit.fix.push("systemctl enable --now irqbalance   # it spreads them by itself".to_owned());
        hit.undo.push("systemctl disable --now irqbalance".to_owned());
    }
    if model.machine.domains.is_empty() {
        let (cpus, list) = (model.machine.topology.online.len().max(1), numbers.join(" "));
        hit.fix.push(format!(
            "cpu=0; for i in {list}; do echo $((cpu++ % {cpus})) > /proc/irq/$i/smp_affinity_list; done   # or by hand, one CPU each"
        ));
        hit.undo.push(format!("for i in {list}; do echo {cpu} > /proc/irq/$i/smp_affinity_list; done"));
        hit.nothing_to_change = true;
        return hit;
    }
    // Each goes where the page sends it anyway, else to the next CPU with room that no vCPU has.
    let has_room = |other: &u32| model.machine.cpu_use.get(other).is_none_or(|usage| usage.idle >= ROOM);
    let room: Vec<u32> = model.spare().iter().filter(|other| *other != cpu).filter(has_room).collect();
    let mut next = room.iter().cycle();
    let known = hit.fix.len();
    for irq in irqs.iter().take(MOST_SPREAD) {
        let planned = model.proposal.part(|_, of| of.what == What::Irq(irq.number)).into_iter().next();
        let planned = planned.map(|change| change.to).filter(|to| *to != cpu.to_string());
        let Some(to) = planned.or_else(|| next.next().map(u32::to_string)) else { break };
        hit.fix.push(format!("echo {to} > /proc/irq/{}/smp_affinity_list", irq.number));
        let asked = irq.affinity.as_ref().map(|asked| asked.value.to_string());
        hit.undo.extend(asked.map(|asked| format!("echo {asked} > /proc/irq/{}/smp_affinity_list", irq.number)));
    }
    if hit.fix.len() == known {
        hit.fix.push(format!(
            "cat /proc/irq/{}/smp_affinity_list   # no CPU without a vCPU is known to have room: one for each queue",
            first.number
        ));
    }
    hit.nothing_to_change = true;
    hit
}

/// Queues that are sent elsewhere line by line: our own limit.
const MOST_SPREAD: usize = 16;

/// Share of all CPUs' time in interrupts and softirqs from which it counts: our own threshold.
pub(in crate::placement) const INTERRUPTED_ALL: f64 = 0.2;

/// Interrupts that take much of all CPUs' time, where nobody told which CPUs.
fn interrupted(model: &Model) -> Vec<Hit> {
    let all = model.machine.total_use.iter().max_by(|a, b| {
        (a.value.shares.irq + a.value.shares.softirq).total_cmp(&(b.value.shares.irq + b.value.shares.softirq))
    });
    let Some(told) = all.filter(|told| told.value.shares.irq + told.value.shares.softirq >= INTERRUPTED_ALL) else {
        return Vec::new();
    };
    let shares = &told.value.shares;
    let title = format!(
        "interrupts take {} of the time of all CPUs, and softirqs {}",
        percent(shares.irq),
        percent(shares.softirq)
    );
    let what = format!(
        "interrupts {}, softirqs {}, idle {}",
        percent(shares.irq),
        percent(shares.softirq),
        percent(shares.idle)
    );
    let hit = Hit::new("interrupts", Severity::Medium, title);
    vec![hit.seen(what, &told.place)]
}

/// Share of a port's packets that was dropped from which it counts: our own threshold.
pub(in crate::placement) const DROPPED: f64 = 0.001;

/// Ports of the switch that drop packets, by where and why.
pub(crate) fn drops(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for told in &model.machine.switch.statistics {
        let counters = &told.value.counters;
        let count = |name: &str| counters.get(name).copied().unwrap_or(0);
        let before = hits.len();
        for [name, why, fix] in rows(include_str!("drops.tsv")) {
            let dropped = count(name);
            // A sum of all reasons says nothing beside one of them.
            if name.ends_with("x_dropped") && hits.len() > before {
                continue;
            }
            let way = if name.starts_with("rx") || name.contains("_rx_") { "rx_packets" } else { "tx_packets" };
            let all = dropped.saturating_add(count(way));
            let share = dropped as f64 / all.max(1) as f64;
            if share < DROPPED {
                continue;
            }
            let port = &told.value.port;
            let title = format!("{port} dropped {} of its packets: {why}", percent(share));
            let mut hit = Hit::new(format!("{port} {name}"), Severity::Medium, title);
            hit = hit.seen(format!("{name} {}, {way} {}", thousands(dropped), thousands(count(way))), &told.place);
            hit.fix.push(fix.replace("NAME", port));
            hits.push(hit);
        }
    }
    hits.extend(super::dropped::by_cards(model));
    hits
}
