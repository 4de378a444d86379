//! Settings of the host, against tuned's profiles for KVM hosts.
//!
//! Only what current profiles (tuned 2.28) ask for: older guides also list scheduler settings that the profiles dropped.
//! A profile is asked where its purpose is seen: `cpu-partitioning` where CPUs are isolated, `realtime-virtual-host` where a
//! VM's thread has a real-time policy. A setting that was not read stays unjudged.

use super::conflicts;
use crate::placement::culprits::is_real_time;
use crate::placement::model::Model;
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
    hits.extend(governors(model));
    hits.extend(capped(model));
    hits
}

/// CPUs whose frequency does not follow the profile: each may have a policy of its own, so each is set.
fn governors(model: &Model) -> Option<Hit> {
    const WANTED: &str = "performance";
    let of_cpu = |path: &str| path.strip_prefix(CPUS)?.strip_suffix(GOVERNOR)?.parse::<u32>().ok();
    let told = model.machine.settings.iter().filter_map(|(path, fact)| Some((of_cpu(path)?, path, fact)));
    let told: Vec<_> = told.collect();
    let others: Vec<_> = told.iter().filter(|(.., fact)| fact.value.trim() != WANTED).collect();
    let (_, _, first) = others.first()?;
    let cpus: CpuSet = others.iter().map(|(cpu, ..)| *cpu).collect();
    let of = if others.len() == told.len() { "all CPUs".to_owned() } else { format!("CPUs {cpus}") };
    let title =
        format!("scaling_governor of {of} is {}; profile throughput-performance sets {WANTED}", first.value.trim());
    let slow: CpuSet = others.iter().map(|(cpu, ..)| *cpu).filter(|cpu| is_slow(model, *cpu)).collect();
    let (severity, title) = match slow.first() {
        Some(one) => {
            let [now, most] = [CURRENT, MOST].map(|file| frequency_khz(model, one, file).unwrap_or_default() / 1e6);
            let why = format!(
                "CPUs {slow} are busy at {now:.1} of {most:.1} GHz: scaling_governor is {}",
                first.value.trim()
            );
            (Severity::Medium, why)
        }
        None => (Severity::Info, title),
    };
    let mut hit = Hit::new("scaling_governor", severity, title);
    if let Some(one) = slow.first() {
        hit = hit.seen(format!("CPU {one} is busy and slow"), format!("{CPUS}{one}{CURRENT}"));
    }
    let is_many = others.len() > MOST_LINES;
    let was = first.value.trim();
    if is_many {
        let each = |to: &str| format!("for file in /{CPUS}*{GOVERNOR}; do echo {to} > $file; done");
        hit.fix.push(each(WANTED));
        hit.undo.push(each(was));
    }
    for (_, path, fact) in others {
        hit.changes.extend(path.strip_prefix("sys/").filter(|_| !is_many).map(|below| {
            let setting = Setting::SysfsWrite { path: below.to_owned() };
            setting.change(WANTED.to_owned(), Some(fact.value.trim().to_owned()))
        }));
        if hit.evidence.len() < 2 {
            hit = hit.seen(format!("{path} is {}", fact.value.trim()), &fact.place);
        }
    }
    Some(hit)
}

/// CPUs that are busy and slow because they may not run faster.
fn capped(model: &Model) -> Option<Hit> {
    let of = |cpu: u32, file: &str| frequency_khz(model, cpu, file);
    let is_capped = |cpu: &u32| of(*cpu, CAP).zip(of(*cpu, MOST)).is_some_and(|(cap, most)| cap <= SLOW * most);
    let online = model.machine.topology.online.iter();
    let cpus: CpuSet = online.filter(|cpu| is_slow(model, *cpu)).filter(is_capped).collect();
    let first = cpus.first()?;
    let [now, most, cap] = [CURRENT, MOST, CAP].map(|file| of(first, file).unwrap_or_default() / 1e6);
    let title = format!("CPUs {cpus} are busy at {now:.1} of {most:.1} GHz: scaling_max_freq is {cap:.1} GHz");
    let mut hit = Hit::new("scaling_max_freq", Severity::Medium, title);
    hit = hit.seen(format!("CPU {first} is busy and slow"), format!("{CPUS}{first}{CURRENT}"));
    hit.first.push("grep . /sys/devices/system/cpu/intel_pstate/max_perf_pct   # a cap of all CPUs, where intel_pstate drives them".to_owned());
    for cpu in cpus.iter().take(MOST_LINES) {
        let path = format!("{}{cpu}{CAP}", CPUS.trim_start_matches("sys/"));
        let [most, cap] = [MOST, CAP].map(|file| format!("{:.0}", of(cpu, file).unwrap_or_default()));
        hit.changes.push(Setting::SysfsWrite { path }.change(most, Some(cap)));
    }
    Some(hit)
}

/// Whether a CPU has work all the time and runs far below what it can.
fn is_slow(model: &Model, cpu: u32) -> bool {
    let busy = model.machine.cpu_use.get(&cpu).is_some_and(|now| now.busy >= BUSY);
    let part = || Some(frequency_khz(model, cpu, CURRENT)? / frequency_khz(model, cpu, MOST)?);
    busy && part().is_some_and(|part| part <= SLOW)
}

fn frequency_khz(model: &Model, cpu: u32, file: &str) -> Option<f64> {
    model.machine.settings.get(&format!("{CPUS}{cpu}{file}"))?.value.trim().parse().ok()
}

/// A CPU with so much work should be as fast as it can: our own thresholds.
pub(in crate::placement) const BUSY: f64 = 0.9;
pub(in crate::placement) const SLOW: f64 = 0.7;

/// CPUs that are set line by line; of more a loop is typed.
const MOST_LINES: usize = 16;

/// Where the governor of a CPU stands.
const CPUS: &str = "sys/devices/system/cpu/cpu";
const GOVERNOR: &str = "/cpufreq/scaling_governor";
const CURRENT: &str = "/cpufreq/scaling_cur_freq";
const MOST: &str = "/cpufreq/cpuinfo_max_freq";
const CAP: &str = "/cpufreq/scaling_max_freq";

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
    if has_real_time(model) { asked(model, REALTIME, &[]) } else { Vec::new() }
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
