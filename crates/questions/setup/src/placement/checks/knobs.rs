//! Settings of the host, against tuned's profiles for KVM hosts.
//!
//! Only what current profiles (tuned 2.28) ask for: older guides also list scheduler settings that the profiles dropped.
//! A profile is asked where its purpose is seen: `cpu-partitioning` where CPUs are isolated, `realtime-virtual-host` where a
//! VM's thread has a real-time policy. A setting that was not read stays unjudged.

use super::{conflicts, frequency};
use crate::placement::culprits::is_real_time;
use crate::placement::model::Model;
use crate::placements::beside_real_time;
use base::{CpuSet, Setting, Severity};
use facts::rule::Hit;
use host::machine::Role;

/// What a profile asks of a setting.
struct Knob {
    path: &'static str,
    asks: Asks,
    profile: &'static str,
}

enum Asks {
    Is(&'static str),
    AtLeast(u64),
    AtMost(u64),
}

const fn knob(path: &'static str, asks: Asks, profile: &'static str) -> Knob {
    Knob { path, asks, profile }
}

/// Profile virtual-host and the one that it includes.
const HOST: &[Knob] = &[
    knob("proc/sys/vm/swappiness", Asks::AtMost(10), "throughput-performance"),
    knob("proc/sys/net/core/somaxconn", Asks::AtLeast(2_048), "throughput-performance"),
];

/// Profile cpu-partitioning and network-latency, which it includes.
const PARTITION: &[Knob] = &[
    knob("sys/kernel/mm/ksm/run", Asks::Is("0"), "cpu-partitioning"),
    knob("proc/sys/kernel/nmi_watchdog", Asks::Is("0"), "network-latency"),
    knob("proc/sys/vm/stat_interval", Asks::AtLeast(10), "network-latency"),
    knob("proc/sys/kernel/timer_migration", Asks::Is("0"), "network-latency"),
    knob(conflicts::BALANCING, Asks::Is("0"), "network-latency"),
    knob(conflicts::THP, Asks::Is("never"), "network-latency"),
    knob("proc/sys/net/core/busy_read", Asks::AtLeast(50), "network-latency"),
    knob("proc/sys/net/core/busy_poll", Asks::AtLeast(50), "network-latency"),
];

/// Profile realtime-virtual-host and realtime, which it includes.
const REALTIME: &[Knob] = &[
    knob("proc/sys/kernel/sched_rt_runtime_us", Asks::Is("-1"), "realtime"),
    knob("sys/kernel/mm/ksm/run", Asks::Is("2"), "realtime-virtual-host"),
    knob("sys/module/kvm_intel/parameters/ple_gap", Asks::Is("0"), "realtime-virtual-host"),
    knob("sys/module/kvm/parameters/kvmclock_periodic_sync", Asks::Is("N"), "realtime-virtual-host"),
];

/// Whether CPUs of this host are kept for somebody.
pub(crate) fn is_partitioned(model: &Model) -> bool {
    let topology = &model.machine.topology;
    [&topology.isolated, &topology.nohz_full].into_iter().flatten().any(|set| !set.is_empty())
}

/// Whether a vCPU has a real-time policy.
fn has_real_time(model: &Model) -> bool {
    let mut vcpus = model.machine.threads.iter().filter(|thread| matches!(thread.role, Role::Vcpu(_)));
    vcpus.any(is_real_time)
}

/// Every setting that the profiles for all KVM hosts would change; of a host without VMs nothing is asked.
pub(crate) fn host(model: &Model) -> Vec<Hit> {
    if model.machine.domains.is_empty() {
        return Vec::new();
    }
    let mut hits = asked(model, HOST, &[]);
    hits.extend(frequency::governors(model));
    hits.extend(frequency::capped(model));
    hits.extend(frequency::unboosted(model));
    hits.extend(frequency::held_down(model));
    hits
}

/// The same for hosts with isolated CPUs, without what another rule contradicts here.
pub(crate) fn partition(model: &Model) -> Vec<Hit> {
    if model.machine.domains.is_empty() || !is_partitioned(model) {
        return Vec::new();
    }
    let mut disputed = Vec::new();
    let conflicts =
        [(conflicts::THP, conflicts::huge_pages(model)), (conflicts::BALANCING, conflicts::balancing(model))];
    disputed.extend(conflicts.iter().filter(|(_, hits)| !hits.is_empty()).map(|(path, _)| *path));
    if has_real_time(model) {
        disputed.push("sys/kernel/mm/ksm/run"); // PLC-REALTIME asks for more
    }
    let mut hits = asked(model, PARTITION, &disputed);
    hits.extend(kernel_work(model));
    hits.extend(ticks(model));
    hits
}

/// The same for hosts with real-time guests.
pub(crate) fn real_time(model: &Model) -> Vec<Hit> {
    const LIMIT: &str = "proc/sys/kernel/sched_rt_runtime_us";
    if !has_real_time(model) {
        return Vec::new();
    }
    asked(model, REALTIME, if beside_real_time(&model.machine) { &[LIMIT] } else { &[] })
}

fn asked(model: &Model, knobs: &[Knob], disputed: &[&str]) -> Vec<Hit> {
    let knobs = knobs.iter().filter(|knob| !disputed.contains(&knob.path));
    knobs.filter_map(|knob| differs(model, knob)).collect()
}

/// What is chosen of `always [madvise] never`, else the whole value.
fn chosen(value: &str) -> &str {
    value.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(value, |(chosen, _)| chosen).trim()
}

fn differs(model: &Model, knob: &Knob) -> Option<Hit> {
    let fact = model.machine.settings.get(knob.path)?;
    let value = chosen(&fact.value);
    let number: Option<u64> = value.parse().ok();
    let (fits, wanted) = match knob.asks {
        Asks::Is(wanted) => (value == wanted, wanted.to_owned()),
        Asks::AtLeast(least) => (number.is_none_or(|number| number >= least), least.to_string()),
        Asks::AtMost(most) => (number.is_none_or(|number| number <= most), most.to_string()),
    };
    if fits {
        return None;
    }
    let name = match knob.path {
        conflicts::THP => "transparent_hugepage",
        "sys/kernel/mm/ksm/run" => "ksm",
        path => path.rsplit('/').next().unwrap_or(path),
    };
    let title = format!("{name} is {value}; profile {} sets {wanted}", knob.profile);
    let hit = Hit::new(knob.path.replace('/', "."), Severity::Info, title);
    Some(set(hit.seen(format!("{} is {value}", knob.path), &fact.place), knob.path, wanted, value))
}

/// The change of a setting, which lies below `/sys` or `/proc/sys`. Parameters of KVM's modules that are asked for here are
/// read-only while the module is loaded (mode 0444 in arch/x86/kvm/x86.c and vmx/vmx.c, Linux 6.12).
fn set(mut hit: Hit, path: &str, to: String, from: &str) -> Hit {
    if let Some((module, parameter)) = path.strip_prefix("sys/module/").and_then(|rest| rest.split_once("/parameters/"))
    {
        let file = format!("/etc/modprobe.d/kvmscope-{parameter}.conf");
        hit.fix.push(format!(
            "echo options {module} {parameter}={to} > {file}   # holds when {module} is loaded next, with all VMs stopped"
        ));
        hit.undo.push(format!("rm {file}   # {parameter} is {from} again when {module} is loaded next"));
        hit.needs = Some(base::Needs::Reload);
        return hit;
    }
    let sysfs = path.strip_prefix("sys/").map(|path| Setting::SysfsWrite { path: path.to_owned() });
    let sysctl = || path.strip_prefix("proc/sys/").map(|path| Setting::Sysctl { path: path.to_owned() });
    hit.changes.extend(sysfs.or_else(sysctl).map(|setting| setting.change(to, Some(from.to_owned()))));
    hit
}

/// Work of the kernel that may run on isolated CPUs.
fn kernel_work(model: &Model) -> Option<Hit> {
    const PATH: &str = "sys/devices/virtual/workqueue/cpumask";
    let fact = model.machine.settings.get(PATH)?;
    let (mask, isolated) = (CpuSet::parse_mask(&fact.value)?, model.machine.topology.isolated.as_ref()?);
    let there = mask.and(isolated);
    (!there.is_empty()).then(|| {
        let title = format!("kernel work may run on isolated CPUs {there}; profile cpu-partitioning moves it away");
        let mut hit = Hit::new("workqueue", Severity::Low, title)
            .seen(format!("cpumask is {}: CPUs {mask}", fact.value.trim()), &fact.place);
        let value = fact.value.trim();
        let rest = mask.without(isolated);
        if rest.is_empty() {
            hit.fix.push(format!("cat /{PATH}   # all its CPUs are isolated: it needs one that is not"));
            return hit;
        }
        set(hit, PATH, rest.mask_like(value), value)
    })
}

/// Isolated CPUs that keep their tick.
fn ticks(model: &Model) -> Option<Hit> {
    let topology = &model.machine.topology;
    let isolated = topology.isolated.as_ref().filter(|set| !set.is_empty())?;
    let ticking = isolated.without(topology.nohz_full.as_ref()?);
    (!ticking.is_empty()).then(|| {
        let title =
            format!("isolated CPUs {ticking} keep their timer tick; profile cpu-partitioning boots with nohz_full");
        let mut hit = Hit::new("nohz_full", Severity::Info, title).seen(
            format!("isolated: {isolated}; nohz_full does not cover all of them"),
            "sys/devices/system/cpu/nohz_full",
        );
        hit.needs = Some(base::Needs::Reboot);
        hit.fix.push(format!(
            "grubby --update-kernel=ALL --args=\"nohz_full={isolated} rcu_nocbs={isolated}\"   # then reboot"
        ));
        hit.undo
            .push(format!("grubby --update-kernel=ALL --remove-args=\"nohz_full={isolated} rcu_nocbs={isolated}\""));
        hit
    })
}

/// Disks of the host that turn, and read little ahead.
pub(crate) fn disks(model: &Model) -> Vec<Hit> {
    if model.machine.domains.iter().all(|domain| domain.disks.is_empty()) {
        return Vec::new();
    }
    let turning =
        model.machine.settings.iter().filter(|(path, fact)| path.ends_with("/rotational") && fact.value.trim() == "1");
    let hits = turning.filter_map(|(path, fact)| {
        let disk = path.split('/').nth(2).filter(|disk| disk.starts_with("sd"))?;
        let title = format!("host disk {disk} is rotational: its guests share about 100 seeks per second");
        Some(Hit::new(disk, Severity::Info, title).seen("rotational is 1", &fact.place))
    });
    hits.collect()
}
