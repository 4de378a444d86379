//! What the host waits for besides CPUs: memory, disks; whose memory lies on which node; and what its kernel complains of.

use super::{disk_limits, withheld};
use crate::placement::model::Model;
use base::number::{bytes, duration, many, percent, rate};
use base::{Evidence, Level, Severity};
use facts::rule::Hit;
use host::machine::{COMPLAINTS, Complaint, Fact, Gauge, GaugeKind, ProcessMemory};
use std::collections::BTreeMap;

/// Share of the time that tasks waited for a resource from which it counts: our own threshold.
pub(in crate::placement) const PRESSED: f64 = 0.1;

/// Share of all CPUs' time that was idle while a task waited for a disk, from which it counts: our own threshold.
pub(in crate::placement) const WAITING: f64 = 0.2;

/// Share of a process's memory on one node below which it is spread: our own threshold.
pub(in crate::placement) const AT_HOME: f64 = 0.9;

/// Lines that a finding quotes.
const MOST_TOLD: usize = 8;

fn of(model: &Model, kind: GaugeKind) -> impl Iterator<Item = &Gauge> {
    model.machine.gauges.iter().filter(move |gauge| gauge.kind == kind)
}

pub(super) fn largest(model: &Model, kind: GaugeKind) -> Option<&Gauge> {
    of(model, kind).max_by(|a, b| a.value.total_cmp(&b.value))
}

/// Resources that tasks waited for, by the kernel's own account.
pub(crate) fn pressure(model: &Model) -> Vec<Hit> {
    let mut worst: BTreeMap<&str, (Option<&Gauge>, Option<&Gauge>)> = BTreeMap::new();
    for gauge in &model.machine.gauges {
        let resource = gauge.subject.split_once(", ").map_or(gauge.subject.as_str(), |(resource, _)| resource);
        let entry = worst.entry(resource).or_default();
        let place = match gauge.kind {
            GaugeKind::PressureSome => &mut entry.0,
            GaugeKind::PressureFull => &mut entry.1,
            _ => continue,
        };
        if place.is_none_or(|known| known.value < gauge.value) {
            *place = Some(gauge);
        }
    }
    let mut hits = Vec::new();
    for (subject, (some, full)) in worst {
        let (resource, group) = match subject.split_once(" of ") {
            Some((resource, group)) => (resource, Some(group)),
            None => (subject, None),
        };
        let Some(some) = some.or(full).filter(|some| some.value >= PRESSED) else { continue };
        let what = match resource {
            "cpu" => "a CPU",
            "io" => "disks",
            "irq" => "interrupts",
            other => other,
        };
        let over = |gauge: &Gauge| {
            gauge.subject.split_once(", ").map_or(String::new(), |(_, over)| format!(" of the last {over}"))
        };
        // Whose tasks they are only a group's own file tells.
        let whose = group.map_or_else(String::new, |group| format!(" of {group}"));
        let title = format!("tasks{whose} waited for {what} in {}{}", percent(some.value), over(some));
        let mut hit = Hit::new(group.unwrap_or(resource), Severity::Medium, title);
        for gauge in [Some(some), full].into_iter().flatten() {
            let (words, _) = gauge.kind.words();
            hit =
                hit.seen(format!("{words} for {what} in {}{}{whose}", percent(gauge.value), over(gauge)), &gauge.place);
        }
        if resource == "cpu" && group.is_some() {
            hit.fix.push("grep . cpu.max cpu.stat   # in that group's directory: is it its own limit (nr_throttled), or another's work?".to_owned());
        }
        hit.fix.push(
            match resource {
                "memory" => "vmstat 1 5; free -m   # does it swap, and what is left?",
                "io" => "iostat -x 1 5; grep -r . /sys/fs/cgroup --include=io.max   # which disk is busy, and how long does a request take; or who limits a group (<blkiotune>, IOWriteBandwidthMax=)?",
                "cpu" => "kvmscope check   # on the host: which thread waits, and who has its CPU",
                _ => "mpstat -P ALL 1 5   # %irq and %soft: which CPUs",
            }
            .to_owned(),
        );
        let is_limited = resource == "io" && group.is_none() && disk_limits::reached(model, &mut hit);
        // A disk that hardly does anything is not what they wait for.
        if let Some(disk) = largest(model, GaugeKind::DiskBusy)
            .filter(|disk| resource == "io" && group.is_none() && !is_limited && disk.value >= BUSY)
        {
            hit.title = format!("{}: {} is busy {} of the time", hit.title, disk.subject, percent(disk.value));
            hit = hit.seen(format!("{} of {}", disk.kind.words().0, disk.subject), &disk.place);
        }
        if resource == "memory" && group.is_none() {
            (hit, _) = withheld::causes(model, memory_causes(model, hit));
        }
        hits.push(hit);
    }
    // Who frees pages himself waits, whether or not the kernel accounts for it.
    if hits.iter().all(|hit| hit.subject != "memory")
        && let Some(stalls) = largest(model, GaugeKind::ReclaimStalls).filter(|stalls| stalls.value >= OFTEN)
    {
        let mut hit = Hit::new("memory", Severity::Medium, "tasks free memory before they get any");
        withheld::reclaimed(model, stalls, &mut hit);
        hits.push(hit);
    }
    hits.extend(queued(model));
    hits
}

/// Times a second from which what makes tasks wait for memory is told: our own threshold.
pub(in crate::placement) const OFTEN: f64 = 100.0;

/// What tasks wait for that wait for memory: pages that are read back, which is waited for as a disk as well, and pages that are moved
/// together for a huge one.
fn memory_causes(model: &Model, mut hit: Hit) -> Hit {
    let often = |kind| largest(model, kind).filter(|gauge| gauge.value >= OFTEN);
    if let Some(faults) = often(GaugeKind::MajorFaults) {
        hit = hit.seen(format!("{} a second: {}", faults.kind.words().0, rate(faults.value)), &faults.place);
        hit.explains.push("PLC-PRESSURE@io".to_owned());
        hit.explains.push("PLC-KTHREAD@kswapd".to_owned());
    }
    if let Some(stalls) = often(GaugeKind::ReclaimStalls) {
        withheld::reclaimed(model, stalls, &mut hit);
    }
    if let Some(stalls) = often(GaugeKind::CompactionStalls) {
        hit.title = format!("{}: {} allocations per second waited for compaction", hit.title, rate(stalls.value));
        hit = hit.seen(format!("{} a second: {}", stalls.kind.words().0, rate(stalls.value)), &stalls.place);
        const DEFRAG: &str = "sys/kernel/mm/transparent_hugepage/defrag";
        let now = model.machine.setting(DEFRAG).and_then(|text| text.split_once('[')?.1.split_once(']'));
        if let Some((now @ ("always" | "madvise"), _)) = now {
            hit = hit.seen(format!("/{DEFRAG} is {now}"), DEFRAG);
            hit.fix.insert(
                0,
                format!("echo defer+madvise > /{DEFRAG}   # khugepaged makes them huge later, without anybody waiting"),
            );
            hit.undo.push(format!("echo {now} > /{DEFRAG}"));
        }
    }
    hit
}

/// Tasks for each CPU that run or want to, from which they wait for each other: our own threshold.
pub(in crate::placement) const QUEUED: f64 = 2.0;

/// More tasks than CPUs, where somebody counted both.
fn queued(model: &Model) -> Option<Hit> {
    let (cpus, most) = (model.machine.topology.cpus.len(), largest(model, GaugeKind::RunQueue)?);
    if cpus == 0 || most.value < QUEUED * cpus as f64 {
        return None;
    }
    let title = format!("{} ran or wanted to on {}", many(most.value as u64, "task"), many(cpus as u64, "CPU"));
    let hit =
        Hit::new("run queue", Severity::Medium, title).seen(format!("run queue {}", rate(most.value)), &most.place);
    let mut hit = hit.seen(format!("the machine has {}", many(cpus as u64, "CPU")), &model.machine.topology.place);
    hit.fix
        .push("pidstat -t 1 5; kvmscope check   # on the host: which threads wait, and who has their CPUs".to_owned());
    Some(hit)
}

/// CPUs that are idle because tasks wait for disks.
pub(crate) fn disks(model: &Model) -> Vec<Hit> {
    let gauge = largest(model, GaugeKind::DiskWait).map(|gauge| Fact::new(gauge.value, gauge.place.as_str()));
    let all = model.machine.total_use.iter().map(|told| Fact::new(told.value.wait, told.place.as_str())).chain(gauge);
    let busy = largest(model, GaugeKind::DiskBusy);
    let Some(told) = all.filter(|told| told.value >= WAITING).max_by(|a, b| a.value.total_cmp(&b.value)) else {
        return busy.and_then(|busy| saturated(model, busy)).into_iter().collect();
    };
    let named =
        busy.map_or(String::new(), |disk| format!(": {} is busy {} of the time", disk.subject, percent(disk.value)));
    let title = format!("{} of all CPUs' time was idle while tasks waited for disks{named}", percent(told.value));
    let mut hit = Hit::new("disks", Severity::Medium, title);
    hit = hit.seen(format!("waiting for disks {}", percent(told.value)), &told.place);
    for kind in [GaugeKind::DiskRead, GaugeKind::DiskWrite] {
        if let Some(gauge) = largest(model, kind) {
            hit = hit.seen(format!("{} of {}: {}", kind.words().0, gauge.subject, duration(gauge.value)), &gauge.place);
        }
    }
    hit = of(model, GaugeKind::TasksBlocked)
        .max_by(|a, b| a.value.total_cmp(&b.value))
        .into_iter()
        .fold(hit, |hit, gauge| hit.seen(format!("{} blocked", many(gauge.value as u64, "task")), &gauge.place));
    vec![hit]
}

/// A disk that has a request all the time, where a request takes long, too: NVMe drives are busy at a fraction of what they carry.
fn saturated(model: &Model, busy: &Gauge) -> Option<Hit> {
    let takes = [GaugeKind::DiskWrite, GaugeKind::DiskRead].into_iter().flat_map(|kind| of(model, kind));
    let slowest = takes.filter(|gauge| gauge.subject == busy.subject).max_by(|a, b| a.value.total_cmp(&b.value))?;
    if busy.value < FULL || slowest.value < SLOW_NS {
        return None;
    }
    let (words, _) = slowest.kind.words();
    let title = format!(
        "disk {} is busy {} of the time, and {words} {}",
        busy.subject,
        percent(busy.value),
        duration(slowest.value)
    );
    let hit = Hit::new("disks", Severity::Medium, title);
    let hit = hit.seen(format!("busy {}", percent(busy.value)), &busy.place);
    Some(hit.seen(format!("{words} {}", duration(slowest.value)), &slowest.place))
}

/// Threads that waited for a CPU, by the sums that the kernel keeps of them: between two copies, else since they began.
pub(crate) fn waited(model: &Model) -> Vec<Hit> {
    let kinds = [(GaugeKind::WaitedBetween, " between two copies of its sums"), (GaugeKind::Waited, "")];
    let hits = kinds.into_iter().filter_map(|(kind, when)| {
        let mut long: Vec<&Gauge> = of(model, kind).filter(|gauge| gauge.value >= WAITED).collect();
        long.sort_by(|a, b| b.value.total_cmp(&a.value));
        let worst = long.first()?;
        let others = long.len() as u64 - 1;
        let and = if others == 0 { String::new() } else { format!(", and {} as well", many(others, "other thread")) };
        let title = format!(
            "{} waited for a CPU in {} of the time in which it wanted one{when}{and}",
            worst.subject,
            percent(worst.value)
        );
        let subject = if when.is_empty() { "waited" } else { "waited between" };
        let hit = Hit::new(subject, Severity::Medium, title);
        Some(long.iter().take(MOST_TOLD).fold(hit, |hit, gauge| {
            hit.seen(format!("{}: {} of running and waiting", gauge.subject, percent(gauge.value)), &gauge.place)
        }))
    });
    hits.collect()
}

/// Groups that use up their CPU time, of which nobody told whose they are.
pub(crate) fn throttled(model: &Model) -> Vec<Hit> {
    let often = of(model, GaugeKind::Throttled).filter(|gauge| gauge.value >= THROTTLED);
    let hits = often.map(|gauge| {
        let group = if gauge.subject.starts_with('/') { "the group " } else { "" };
        let title = format!("{group}{} was throttled in {} of its periods", gauge.subject, percent(gauge.value));
        Hit::new(&gauge.subject, Severity::Medium, title)
            .seen(format!("throttled in {} of its periods", percent(gauge.value)), &gauge.place)
    });
    hits.collect()
}

/// Part of a group's periods in which it was throttled, from which it counts: our own threshold.
pub(in crate::placement) const THROTTLED: f64 = 0.1;

/// Part of what a thread ran and waited from which its waiting counts: our own threshold.
pub(in crate::placement) const WAITED: f64 = 0.1;

/// A disk that is busy for so much of the time is named where tasks wait for disks: our own threshold.
const BUSY: f64 = 0.5;

/// A disk that is busy for so much of the time, and takes so long for a request, is full: our own thresholds.
pub(in crate::placement) const FULL: f64 = 0.9;
pub(in crate::placement) const SLOW_NS: f64 = 20e6;

/// Processes of guests whose memory lies on several nodes.
pub(crate) fn spread(model: &Model) -> Vec<Hit> {
    let is_guest = |process: &&ProcessMemory| process.name.contains("qemu") || process.name.contains("kvm");
    let home = |process: &ProcessMemory| {
        let all: u64 = process.bytes.value.values().sum();
        let (node, most) = process.bytes.value.iter().max_by_key(|(_, bytes)| **bytes)?;
        (all > 0).then(|| (*node, *most as f64 / all as f64, all))
    };
    let spread: Vec<(&ProcessMemory, (u32, f64, u64))> = model
        .machine
        .process_memory
        .iter()
        .filter(is_guest)
        .filter_map(|process| Some((process, home(process).filter(|(_, share, _)| *share < AT_HOME)?)))
        .collect();
    if spread.is_empty() {
        return Vec::new();
    }
    let guests = many(spread.len() as u64, "guest");
    let title = format!("pages of {guests} lie on several nodes");
    let mut hit = Hit::new("memory", Severity::Medium, title);
    for (process, (node, share, all)) in spread.iter().take(MOST_TOLD) {
        let what = format!(
            "{} ({}) has {} of {} on node {node}, the rest elsewhere",
            process.pid,
            process.name,
            percent(*share),
            bytes(*all as f64)
        );
        hit = hit.seen(what, &process.bytes.place);
        let elsewhere = (*all as f64) * (1.0 - share);
        let nodes = &model.machine.nodes;
        let free = |node: &u32| Some(nodes.get(node)?.free_bytes? as f64);
        if let Some(there) = free(node).filter(|there| *there < elsewhere) {
            // A binding does not make room: strict would swap there, or not start.
            let what = format!("node {node} has {} free: the other {} do not fit", bytes(there), bytes(elsewhere));
            hit = hit.seen(what, "numactl -H");
            hit.nothing_to_change = true;
            let roomy = nodes.keys().filter(|node| free(node).is_some_and(|there| there >= *all as f64));
            let roomy: Vec<String> = roomy.map(|node| node.to_string()).collect();
            hit.fix.push(format!("numastat -m; numastat -p qemu   # who has the memory of node {node}: until some of it is free, no binding helps"));
            if !roomy.is_empty() {
                hit.fix.push(format!(
                    "virsh vcpupin DOMAIN; virsh numatune DOMAIN   # it would fit as a whole, vCPUs and memory, on node {}",
                    roomy.join(" or ")
                ));
            }
        }
    }
    for (process, _) in spread.iter().take(MOST_TOLD) {
        let whose = format!("{} ({}), ", process.pid, process.name);
        let mut quoted = model.machine.quoted.iter();
        if let Some(told) = quoted.find(|told| told.what == "memory on huge pages" && told.subject.starts_with(&whose))
        {
            let what =
                "it is on huge pages, which never swap: bound to a node with too few free ones, the VM does not start";
            hit = hit.seen(what, &told.place);
        }
    }
    for domain in &model.machine.domains {
        if let Some((nodes, _)) = domain.memory_nodes.as_ref().filter(|(_, mode)| mode == "preferred") {
            let what =
                format!("{} prefers memory of node {nodes}, and takes that of others where it is full", domain.name);
            hit = hit.seen(what, "virsh numatune");
        }
    }
    vec![hit]
}

/// What the kernel's log says is wrong, each kind once.
pub(crate) fn complaints(model: &Model) -> Vec<Hit> {
    let mut kinds: BTreeMap<usize, Vec<&Fact<Complaint>>> = BTreeMap::new();
    for told in &model.machine.complaints {
        kinds.entry(told.value.kind).or_default().push(told);
    }
    let mut hits = Vec::new();
    for (kind, lines) in kinds {
        let Some(known) = COMPLAINTS.get(kind) else { continue };
        let severity = if known.is_grave { Severity::Medium } else { Severity::Info };
        let mut hit = Hit::new(known.words.join(" "), severity, known.meaning);
        let of_guest = if known.words == UNSTABLE { tsc_of_guest(model, &mut hit) } else { None };
        let more = lines.len() as u64 - 1;
        let more = if more > 0 { format!(", and {} more of its kind", many(more, "line")) } else { String::new() };
        hit.evidence.push(Evidence::new(format!("`{}`{more}", lines[0].value.line), &lines[0].place));
        hit.explains.extend(known.explains.map(|words| format!("PLC-KERNEL@{words}")));
        if known.words == THROTTLED_RT && model.machine.setting(RT_RUNTIME).is_some() {
            hits.push(unlimited(model, hit));
            continue;
        }
        // Somebody asked already which clocks there are.
        const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        match model.machine.settings.get(CLOCKS).filter(|_| known.next.contains("available_clocksource")) {
            Some(clocks) => {
                let lacks = ["tsc", "kvm-clock"]
                    .iter()
                    .all(|clock| !clocks.value.split_whitespace().any(|there| there == *clock));
                let lacks = if lacks { ": no tsc, and no kvm-clock" } else { "" };
                hit = hit.seen(format!("clocks that it has: {}{lacks}", clocks.value), &clocks.place);
                hit.fix.push("dmesg | grep -i -E 'tsc|clocksource'   # why it is not used".to_owned());
            }
            None => hit.fix.push(of_guest.unwrap_or(known.next).to_owned()),
        }
        hits.push(hit);
    }
    hits
}

/// The kind of line by which the kernel says that it stopped threads with a real-time policy, and their limit.
const THROTTLED_RT: [&str; 1] = ["rt throttling activated"];
const RT_RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";

/// The hit of a limit whose value stands in the text: nobody has to ask for it.
fn unlimited(model: &Model, mut hit: Hit) -> Hit {
    let Some(told) = model.machine.settings.get(RT_RUNTIME) else { return hit };
    hit = hit.seen(format!("sched_rt_runtime_us is {}", told.value), &told.place);
    hit.fix.push(
        "sysctl -w kernel.sched_rt_runtime_us=-1   # no limit: a thread that never sleeps then never yields its CPU"
            .to_owned(),
    );
    hit.undo.push(format!("sysctl -w kernel.sched_rt_runtime_us={}", told.value.trim()));
    hit
}

/// The kind of line by which the kernel says that it does not trust the TSC.
const UNSTABLE: [&str; 2] = ["tsc", "unstable"];

/// What an unstable TSC means in a guest, and what to ask there; none on a host, whose firmware it is. Only a guest has kvm-clock.
fn tsc_of_guest(model: &Model, hit: &mut Hit) -> Option<&'static str> {
    let lines = || model.machine.complaints.iter().map(|told| told.value.line.to_lowercase());
    if !(matches!(model.level, Level::At(1..)) || lines().any(|line| line.contains("kvm-clock"))) {
        return None;
    }
    // What its clock stands on is seen one level below.
    if let Level::At(level @ 1..) = model.level {
        hit.level = Some(Level::At(level - 1));
    }
    if lines().any(|line| line.contains("switched to clocksource kvm-clock")) {
        hit.severity = Severity::Info;
        hit.title =
            "the guest's kernel does not trust its TSC, and reads kvm-clock instead: without an exit".to_owned();
        return Some(
            "cat /sys/devices/system/clocksource/clocksource0/current_clocksource   # on the host: with tsc there it was a pause of the guest, \
             such as the host's suspend or a migration, and no fault of the hardware",
        );
    }
    Some(
        "cat /sys/devices/system/clocksource/clocksource0/current_clocksource   # on the host: with tsc there look at the VM's definition \
         (kvmclock present='no', the features of its CPU), else at the host's firmware",
    )
}
