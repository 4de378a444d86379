//! Work of the host's kernel that takes CPUs or loses packets: its threads, softirqs, queues that overflow.

use crate::placement::model::Model;
use base::number::{many, percent, thousands};
use base::{Evidence, Severity};
use facts::rule::Hit;
use host::machine::CpuUse;

const MOST_TOLD: usize = 8;

/// Share of a CPU that a thread of the kernel runs from which it counts: our own threshold.
pub(in crate::placement) const KERNEL_BUSY: f64 = 0.2;

/// Threads of the kernel that work on memory and packets: what they do, and what to ask or to switch off.
const KERNEL_THREADS: &[(&str, &str, &str, &str)] = &[
    (
        "ksmd",
        "compares pages of guests to share equal ones",
        "echo 0 > /sys/kernel/mm/ksm/run   # pages_sharing in the same folder says how many pages it saves",
        "echo 1 > /sys/kernel/mm/ksm/run",
    ),
    (
        "khugepaged",
        "makes huge pages out of small ones",
        "echo 0 > /sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
        "echo 1 > /sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
    ),
    (
        "kswapd",
        "looks for memory to free: the host has too little",
        "vmstat 1 5; free -m   # does it swap, and what is left?",
        "",
    ),
    (
        "kcompactd",
        "moves pages together to make huge ones",
        "sysctl vm.compaction_proactiveness; grep -E 'compact_(stall|fail|success)' /proc/vmstat   # above 0 it works unasked, which \
         sysctl -w vm.compaction_proactiveness=0 ends",
        "",
    ),
    (
        "ksoftirqd",
        "handles packets and timers that interrupts left: the CPU cannot keep up with them",
        "mpstat -P ALL 1 5; cat /proc/interrupts   # which CPU is full, and whose interrupts come to it",
        "",
    ),
];

/// Whether a thread is one of this name: `kswapd0`, `ksoftirqd/3`, one for each node or CPU.
fn is_one(thread: &str, name: &str) -> bool {
    let rest = thread.strip_prefix(name);
    rest.is_some_and(|rest| rest.trim_start_matches('/').bytes().all(|byte| byte.is_ascii_digit()))
}

/// What such a thread of the kernel does.
pub(super) fn work_of(thread: &str) -> Option<&'static str> {
    KERNEL_THREADS.iter().find(|(name, ..)| is_one(thread, name)).map(|(_, does, ..)| *does)
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
    for (name, does, fix, undo) in KERNEL_THREADS {
        let own: Vec<_> = all.iter().filter(|(thread, _, _)| is_one(thread, name)).collect();
        let Some((thread, share, _)) = own.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        let title = format!("{thread} runs {} of a CPU: it {does}", percent(*share));
        let mut hit = Hit::new(*name, Severity::Medium, title);
        for (thread, share, place) in own.iter().take(MOST_TOLD) {
            hit = hit.seen(format!("{thread} ran {} of a CPU", percent(*share)), *place);
        }
        let settings =
            machine.settings.iter().filter(|(path, _)| *name == "ksmd" && path.starts_with("sys/kernel/mm/ksm/"));
        for (path, setting) in settings.take(MOST_TOLD) {
            hit = hit.seen(format!("/{path} is {}", setting.value), &setting.place);
        }
        hit.fix.push((*fix).to_owned());
        if !undo.is_empty() {
            hit.undo.push((*undo).to_owned());
        }
        hits.push(hit);
    }
    hits
}

/// Share of a CPU's time in interrupts and softirqs from which it is full of them: our own threshold.
pub(in crate::placement) const INTERRUPTED: f64 = 0.8;

/// CPUs that do nothing but handle interrupts and what these leave behind; where a card's queues are the cause, that is PLC-RSS.
pub(crate) fn softirqs(model: &Model) -> Vec<Hit> {
    let full = |usage: &CpuUse| usage.softirq + usage.irq >= INTERRUPTED;
    let cpus: Vec<(u32, CpuUse)> =
        model.machine.cpu_use.iter().filter(|(_, usage)| full(usage)).map(|(cpu, usage)| (*cpu, *usage)).collect();
    let Some((cpu, worst)) = cpus.iter().max_by(|a, b| (a.1.softirq + a.1.irq).total_cmp(&(b.1.softirq + b.1.irq)))
    else {
        return Vec::new();
    };
    if !super::steering::few(model).is_empty() {
        return Vec::new();
    }
    let others = cpus.len() as u64 - 1;
    let others = if others > 0 { format!(", and {} more", many(others, "CPU")) } else { String::new() };
    let title = format!(
        "CPU {cpu} spends {} of its time in softirqs and {} in interrupts{others}: whoever is bound to it waits",
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
    vec![hit]
}

/// Counters of packets that were dropped: who drops, and why.
const DROPS: &[(&str, &str, &str)] = &[
    (
        "ovs_tx_failure_drops",
        "the guest's queue was full: the guest does not take its packets in time, or its vCPU does not run",
        "kvmscope check   # on the host: do the vCPUs behind this port wait?",
    ),
    (
        "rx_missed_errors",
        "the card's ring was full: the thread that polls it does not keep up",
        "ovs-appctl dpif-netdev/pmd-rxq-show   # which polling thread serves it, and how full it is",
    ),
    (
        "rx_no_buffer_count",
        "no buffer was free for what arrived",
        "ovs-appctl netdev-dpdk/get-mempool-info   # how many are free",
    ),
    (
        "ovs_tx_mtu_exceeded_drops",
        "packets were longer than the port's MTU",
        "ovs-vsctl get interface NAME mtu mtu_request",
    ),
    ("ovs_rx_qos_drops", "a policer of the port dropped them", "ovs-appctl -t ovs-vswitchd qos/show NAME"),
    ("ovs_tx_qos_drops", "a shaper of the port dropped them", "ovs-appctl -t ovs-vswitchd qos/show NAME"),
];

/// Share of a port's packets that was dropped from which it counts: our own threshold.
pub(in crate::placement) const DROPPED: f64 = 0.001;

/// Ports of the switch that drop packets, by where and why.
pub(crate) fn drops(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for told in &model.machine.switch.statistics {
        let counters = &told.value.counters;
        let count = |name: &str| counters.get(name).copied().unwrap_or(0);
        for (name, why, fix) in DROPS {
            let dropped = count(name);
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
