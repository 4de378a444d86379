//! Does the evidence contradict itself? Before anything is explained by it.

use super::starved::with_victims;
use crate::placement::below::Cap;
use crate::placement::culprits::{Reporter, Verdict, cpus_named, name};
use crate::placement::model::{Model, UNSTABLE_STEAL};
use base::number::{list, many, percent};
use base::shell::quoted;
use base::{Cost, CostKind, CpuSet, Level, Needs, Severity};
use facts::rule::Hit;
use host::machine::{Screen, Thread, TopRow, TotalUse};
use std::collections::{BTreeMap, BTreeSet};

/// Samples that are compared with each one: those behind it, as many as people paste by hand. An hour of `top -b` has thousands, and all pairs
/// of them would be millions.
const COMPARED: usize = 8;

/// Screens that stand in another order than the CPU times of their threads.
pub(crate) fn order(model: &Model) -> Vec<Hit> {
    let screens = &model.machine.screens;
    let by_thread = |screen: &'_ Screen| -> BTreeMap<i32, usize> {
        screen.rows.iter().enumerate().rev().map(|(place, row)| (row.pid, place)).collect()
    };
    let rows_of: Vec<BTreeMap<i32, usize>> = screens.iter().map(by_thread).collect();
    let mut hits = Vec::new();
    for (index, earlier) in screens.iter().enumerate() {
        for (later, rows) in screens.iter().zip(&rows_of).skip(index + 1).take(COMPARED) {
            let mut both = Vec::new();
            for row in &earlier.rows {
                let other = rows.get(&row.pid).map(|place| &later.rows[*place]);
                if let (Some(first), Some((other, second))) =
                    (row.time_cs, other.and_then(|other| Some((other, other.time_cs?))))
                {
                    both.push((row, other, first, second));
                }
            }
            if both.is_empty() || both.iter().any(|(_, _, first, second)| first <= second) {
                continue;
            }
            let title =
                format!("the sample at {} was taken after the one at {}, not before it", earlier.place, later.place);
            let mut hit = Hit::new("screens", Severity::Medium, title);
            for (row, other, first, second) in both {
                let what = format!(
                    "the CPU time of thread {} is {} here and only {} there",
                    row.pid,
                    minutes(first),
                    minutes(second)
                );
                hit = hit.seen(what, format!("{}, {}", row.place, other.place));
            }
            hits.push(hit.seen("so the first sample may not belong to the run that its position suggests", "as above"));
        }
    }
    hits
}

/// `1:35.98`.
fn minutes(cs: u64) -> String {
    format!("{}:{:02}.{:02}", cs / 6_000, cs / 100 % 60, cs % 100)
}

/// Threads last seen on a CPU outside of the set that they are said to be bound to.
pub(crate) fn mask(model: &Model) -> Vec<Hit> {
    let mut outside: BTreeMap<&str, (Vec<String>, usize, Hit)> = BTreeMap::new();
    let mut rows_of: BTreeMap<i32, Vec<&TopRow>> = BTreeMap::new();
    for row in model.machine.screens.iter().flat_map(|screen| &screen.rows) {
        rows_of.entry(row.pid).or_default().push(row);
    }
    for thread in &model.machine.threads {
        let (Some(tid), Some(set)) = (thread.tid, &thread.affinity) else { continue };
        let vm = thread.vm.as_deref().unwrap_or(&thread.name);
        let rows = rows_of.get(&tid).map_or(&[][..], Vec::as_slice).iter();
        let seen =
            rows.filter_map(|row| Some((row.last_cpu?, &row.place))).filter(|(cpu, _)| !set.value.contains(*cpu));
        for (cpu, place) in seen {
            let (screens, count, hit) =
                outside.entry(vm).or_insert_with(|| (Vec::new(), 0, Hit::new(vm, Severity::Medium, "")));
            let screen = place.rsplit_once(':').map_or(place.as_str(), |(file, _)| file).to_owned();
            if !screens.contains(&screen) {
                screens.push(screen);
            }
            *count += 1;
            let what = format!("{} {tid} last ran on CPU {cpu}, outside {}", thread.role, set.value);
            let old = std::mem::replace(hit, Hit::new(vm, Severity::Medium, ""));
            *hit = old.seen(what, format!("{place}, {}", set.place));
        }
    }
    outside
        .into_values()
        .map(|(screens, count, mut hit)| {
            hit.title =
                format!("{} of a thread outside its affinity mask ({})", many(count as u64, "sample"), list(&screens));
            hit
        })
        .collect()
}

/// A thread that runs this much has a CPU nearly for itself: our own limit.
pub(in crate::placement) const WHOLE: f64 = 0.9;

/// What a CPU may seem to give beyond its time, because samples and ticks are rounded: our own limit.
const ROUNDING: f64 = 0.05;

/// Threads that were seen on one CPU and ran more together than a CPU can give.
pub(crate) fn crowd(model: &Model) -> Vec<Hit> {
    let online = &model.machine.topology.online;
    let mut hits: Vec<Hit> = Vec::new();
    // Where a thread stands twice, rows are of several moments.
    let is_one_moment = |screen: &&Screen| {
        let threads: BTreeSet<i32> = screen.rows.iter().map(|row| row.pid).collect();
        threads.len() == screen.rows.len()
    };
    for screen in model.machine.screens.iter().filter(is_one_moment) {
        let mut on: BTreeMap<u32, Vec<&TopRow>> = BTreeMap::new();
        for row in &screen.rows {
            // A row above a CPU is a process, and an average says nothing of this moment.
            let whole = row.share.is_some_and(|share| share > WHOLE && share <= 1.0 + ROUNDING) && !row.average;
            if let Some(cpu) = row.last_cpu.filter(|_| whole) {
                on.entry(cpu).or_default().push(row);
            }
        }
        for (cpu, rows) in on.into_iter().filter(|(_, rows)| rows.len() > 1) {
            let sum: f64 = rows.iter().filter_map(|row| row.share).sum();
            let bound = |row: &&TopRow| {
                let mut threads = model.machine.threads.iter().filter(|thread| thread.tid == Some(row.pid));
                threads.any(|thread| thread.affinity.as_ref().is_some_and(|set| set.value.len() == 1))
            };
            let title = format!(
                "{} last seen on CPU {cpu} used {} of it together",
                many(rows.len() as u64, "thread"),
                percent(sum)
            );
            // One that may go elsewhere may just have come.
            let severity = if rows.iter().all(bound) { Severity::Medium } else { Severity::Low };
            let hit = Hit::new(format!("cpu{cpu}"), severity, title);
            hits.push(rows.iter().fold(hit, |hit, row| {
                let share = percent(row.share.unwrap_or_default());
                hit.seen(format!("thread {} ({}) used {share} of a CPU", row.pid, row.command), &row.place)
            }));
        }
    }
    let mut pinned: BTreeMap<u32, Vec<&Thread>> = BTreeMap::new();
    // Shares of screens are the largest of several moments, and do not add up.
    for thread in model.machine.threads.iter().filter(|thread| thread.wait_share.is_some()) {
        let set = thread.affinity.as_ref().map(|set| set.value.and(online)).filter(|set| set.len() == 1);
        if let Some(cpu) = set.and_then(|set| set.first()) {
            pinned.entry(cpu).or_default().push(thread);
        }
    }
    let run = |thread: &Thread| thread.run_share.as_ref().map_or(0.0, |run| run.value);
    let sum = |threads: &[&Thread]| threads.iter().map(|thread| run(thread)).sum::<f64>();
    pinned.retain(|_, threads| threads.len() > 1 && sum(threads) > 1.0 + ROUNDING);
    let most = pinned.values().map(|threads| sum(threads)).fold(0.0, f64::max);
    let cpus: CpuSet = pinned.keys().copied().collect();
    if !cpus.is_empty() {
        let each = if cpus.len() == 1 { "one CPU" } else { "one of several CPUs" };
        let title = format!("threads bound to {each} ran {} of it together: {}", percent(most), cpus_named(&cpus));
        let hit = Hit::new("bound", Severity::Medium, title);
        let here = pinned.values().flatten();
        hits.push(here.fold(hit, |hit, thread| {
            let place = thread.run_share.as_ref().map_or("", |run| run.place.as_str());
            let on = thread.affinity.as_ref().map_or(String::new(), |set| set.value.to_string());
            hit.seen(format!("{}, bound to CPU {on}, ran {}", name(thread), percent(run(thread))), place)
        }));
    }
    hits
}

/// Whether a pin may be of the host with these CPUs: one that names others alone, or goes beyond the last of them, is not. Some
/// between them may be offline.
pub(super) fn is_of_host(cpus: &CpuSet, pin: &CpuSet) -> bool {
    pin.meets(cpus) && pin.last() <= cpus.last()
}

/// Pins to CPUs that the pasted list of CPUs does not have at all.
pub(crate) fn hosts(model: &Model) -> Vec<Hit> {
    let cpus: CpuSet = model.machine.topology.cpus.keys().copied().collect();
    let mut hits = Vec::new();
    for domain in model.machine.domains.iter().filter(|_| model.pasted && !cpus.is_empty()) {
        let pins = domain.vcpu_pins.iter().map(|(vcpu, pin)| (format!("vcpu {vcpu}"), pin));
        let emulator = domain.emulator_pins.last().map(|pin| ("the emulator".to_owned(), pin));
        let foreign: Vec<_> = pins.chain(emulator).filter(|(_, pin)| !is_of_host(&cpus, &pin.value)).collect();
        if foreign.is_empty() {
            continue;
        }
        let title = format!(
            "{} of {} {} CPUs that the list of CPUs does not have",
            many(foreign.len() as u64, "pin"),
            domain.name,
            if foreign.len() == 1 { "names" } else { "name" }
        );
        let hit = Hit::new(&domain.name, Severity::Medium, title)
            .of_domain(&domain.name)
            .seen(format!("the host has CPUs {cpus}"), &model.machine.topology.place);
        hits.push(
            foreign
                .iter()
                .fold(hit, |hit, (who, pin)| hit.seen(format!("{who} is bound to {}", pin.value), &pin.place)),
        );
    }
    hits
}

/// A pin that was told twice, and differently.
pub(crate) fn pins(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let pins = &domain.emulator_pins;
        if pins.iter().any(|pin| pin.value != pins[0].value) {
            let title =
                format!("the evidence gives the emulator of {} {} different affinity masks", domain.name, pins.len());
            let hit = Hit::new(&domain.name, Severity::Info, title).of_domain(&domain.name);
            hits.push(pins.iter().fold(hit, |hit, pin| hit.seen(format!("bound to {}", pin.value), &pin.place)));
        }
    }
    hits
}

/// Share of all CPUs' time from which steal is what the machine suffers from: our own threshold.
const TAKEN: f64 = 0.2;

/// CPUs of which the machine below took too much, each by itself or all together.
pub(crate) fn steal(model: &Model) -> Vec<Hit> {
    let stolen: Vec<(u32, f64)> = model
        .machine
        .cpu_use
        .iter()
        .map(|(cpu, usage)| (*cpu, usage.steal))
        .filter(|(_, steal)| *steal > UNSTABLE_STEAL)
        .collect();
    let worst = stolen.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    let of_all = model.machine.total_use.iter().filter(|told| told.value.shares.steal > UNSTABLE_STEAL);
    let of_all = of_all.max_by(|a, b| a.value.shares.steal.total_cmp(&b.value.shares.steal));
    let cpus = &model.machine.cpu_use;
    let of_each = cpus.values().map(|usage| usage.steal).sum::<f64>() / cpus.len().max(1) as f64;
    let taken = of_all.map_or(of_each, |all| all.value.shares.steal);
    let title = match (worst, of_all) {
        (Some((_, most)), _) if taken >= TAKEN => format!(
            "steal time: the hypervisor below took {} of the time of all CPUs, up to {} of one; the cause is one level below",
            percent(taken),
            percent(most)
        ),
        (Some((_, most)), _) => {
            format!("steal time: the hypervisor took up to {} of a CPU, so measurements are unstable", percent(most))
        }
        (None, Some(all)) => format!(
            "steal time: the hypervisor below took {} of the time of all CPUs; the cause is one level below",
            percent(all.value.shares.steal)
        ),
        (None, None) => return Vec::new(),
    };
    // A limit of that VM is the one cause below that its own steal time cannot tell from neighbours.
    let cap = of_all.and_then(|all| capped(model, &all.value));
    let title = match cap {
        Some(cap) => format!(
            "steal time: the hypervisor below took {} of the time of all CPUs, since the quota of {} there lets each vCPU run {:.2} CPUs",
            percent(taken),
            cap.vm,
            cap.cpus
        ),
        None => title,
    };
    let victims: Vec<&Verdict> = model.verdicts.of_reporter(Reporter::Bed).collect();
    let severity = if victims.is_empty() && taken < TAKEN { Severity::Medium } else { Severity::High };
    let mut hit = Hit::new("steal", severity, title);
    if let Some((worst, most)) = worst {
        let seen = format!("{} above 5 %, CPU {worst} with {}", many(stolen.len() as u64, "CPU"), percent(most));
        hit = hit.seen(seen, "proc/stat, steal");
    }
    if let Some(all) = of_all {
        let shares = &all.value.shares;
        let seen = format!(
            "of the time of all CPUs {} was stolen, {} was used, {} idle",
            percent(shares.steal),
            percent((1.0 - shares.idle - shares.steal).max(0.0)),
            percent(shares.idle)
        );
        hit = hit.seen(seen, &all.place);
    }
    for screen in &model.machine.screens {
        let guests = screen.rows.iter().filter(|row| row.command.contains("qemu") || row.command.ends_with("/KVM"));
        let shares: Vec<f64> = guests.filter_map(|row| row.share).collect();
        let (least, most) = (shares.iter().copied().reduce(f64::min), shares.iter().copied().reduce(f64::max));
        if let (Some(least), Some(most)) = (least, most) {
            let range = match least == most {
                true => percent(least),
                false => format!("{} to {}", percent(least), percent(most)),
            };
            let count = many(shares.len() as u64, "row");
            let seen = format!("{count} of guests that run here with {range} of a CPU: they are nested");
            hit = hit.seen(seen, &screen.place);
        }
    }
    if let Some(cap) = cap {
        hit = lifted(hit, model, cap);
    }
    hit = with_victims(model, hit, &victims);
    if taken >= TAKEN && !cpus.is_empty() {
        hit.cost = Cost::of(CostKind::Measured, taken * cpus.len() as f64, "CPUs that the hypervisor below took");
    }
    vec![hit]
}

/// The limit below that explains what was stolen; none where several machines below have one that does.
fn capped<'a>(model: &'a Model, told: &TotalUse) -> Option<&'a Cap> {
    let mut fitting = model.caps_below.iter().filter(|cap| cap.explains(told));
    fitting.next().filter(|_| fitting.next().is_none())
}

/// The hit with that limit, and what takes it away on the machine that sets it.
fn lifted(mut hit: Hit, model: &Model, cap: &Cap) -> Hit {
    let name = quoted(&cap.vm);
    hit = hit.seen(format!("each vCPU of {} may use {:.2} CPUs, on the machine below", cap.vm, cap.cpus), &cap.place);
    if let Some((counted, place)) = &cap.throttled {
        let what = format!(
            "throttled there in {} of {}: its limit, not another VM, takes that time",
            counted.throttled,
            many(counted.periods, "period")
        );
        hit = hit.seen(what, place);
    }
    hit.fix.push(format!("virsh schedinfo {name} --live --config --set vcpu_quota=-1"));
    hit.undo.push(format!(
        "virsh schedinfo {name} --live --config --set vcpu_quota={:.0}   # by a period of 100000",
        cap.cpus * 1e5
    ));
    (hit.nothing_to_change, hit.needs) = (true, Some(Needs::Nothing));
    if let Level::At(level @ 1..) = model.level {
        hit.level = Some(Level::At(level - 1));
    }
    hit
}
