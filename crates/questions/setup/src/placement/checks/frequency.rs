//! The clock of busy CPUs: the governor that a profile asks for, and caps that no governor reaches beyond.

use crate::placement::culprits::cpus_named;
use crate::placement::model::Model;
use base::{CpuSet, Setting, Severity};
use facts::rule::Hit;

/// CPUs whose frequency does not follow the profile: each may have a policy of its own, so each is set.
pub(super) fn governors(model: &Model) -> Option<Hit> {
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
    // Whatever governs it, no CPU runs faster than its cap.
    let slow: CpuSet = slow.iter().filter(|cpu| caps(model, *cpu).is_empty()).collect();
    if let Some(hit) = saving(model, &slow) {
        return Some(hit);
    }
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

/// Slow CPUs whose driver governs itself, and was told to save energy: the governor's name says nothing there
/// (Documentation/admin-guide/pm/intel_pstate.rst and amd-pstate.rst, energy_performance_preference, Linux 6.12).
fn saving(model: &Model, slow: &CpuSet) -> Option<Hit> {
    let told = |cpu: u32| Some((cpu, model.machine.settings.get(&format!("{CPUS}{cpu}{PREFERENCE}"))?));
    let saves: Vec<_> = slow
        .iter()
        .filter_map(told)
        .filter(|(_, fact)| matches!(fact.value.trim(), "power" | "balance_power"))
        .collect();
    let (first, fact) = saves.first()?;
    let cpus: CpuSet = saves.iter().map(|(cpu, _)| *cpu).collect();
    let [now, most] = [CURRENT, MOST].map(|file| frequency_khz(model, *first, file).unwrap_or_default() / 1e6);
    let name = PREFERENCE.rsplit('/').next().unwrap_or_default();
    let title = format!("{} busy at {now:.1} of {most:.1} GHz: {name} is {}", are(&cpus), fact.value.trim());
    let mut hit = Hit::new(name, Severity::Medium, title)
        .seen(format!("CPU {first} is busy and slow"), format!("{CPUS}{first}{CURRENT}"))
        .seen(format!("{name} of CPU {first} is {}", fact.value.trim()), &fact.place);
    for (cpu, fact) in saves {
        let path = format!("{}{cpu}{PREFERENCE}", CPUS.trim_start_matches("sys/"));
        hit.changes.push(Setting::SysfsWrite { path }.change("performance", Some(fact.value.trim().to_owned())));
    }
    Some(hit)
}

/// `CPU 3 is`, `CPUs 2-7 are`.
fn are(cpus: &CpuSet) -> String {
    format!("{} {}", cpus_named(cpus), if cpus.len() == 1 { "is" } else { "are" })
}

/// A cap of the clock: what it is called, its file, what it is and what lifts it.
struct Cap {
    name: &'static str,
    path: String,
    now: String,
    to: String,
    told: String,
}

/// What keeps a CPU far below what it can: its own limit, and those of its driver for all CPUs
/// (Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst, Linux 6.12).
fn caps(model: &Model, cpu: u32) -> Vec<Cap> {
    let set = |file: &str| model.machine.setting(&format!("{PSTATE}{file}"))?.trim().parse::<f64>().ok();
    let Some(most) = frequency_khz(model, cpu, MOST) else { return Vec::new() };
    let mut caps = Vec::new();
    let mut add = |name, path, now: String, to: String, told| caps.push(Cap { name, path, now, to, told });
    if let Some(percent) = set(PERCENT).filter(|percent| percent / 100.0 <= SLOW) {
        let told = format!("{PERCENT} of intel_pstate is {percent:.0}");
        add(PERCENT, format!("{PSTATE}{PERCENT}"), format!("{percent:.0}"), "100".to_owned(), told);
    }
    let base = frequency_khz(model, cpu, BASE).filter(|base| *base <= SLOW * most);
    if let Some(base) = base.filter(|_| set(NO_TURBO) == Some(1.0)) {
        let told = format!("{NO_TURBO} of intel_pstate is 1, and {:.1} GHz are its base", base / 1e6);
        add(NO_TURBO, format!("{PSTATE}{NO_TURBO}"), "1".to_owned(), "0".to_owned(), told);
    }
    if let Some(cap) = frequency_khz(model, cpu, CAP).filter(|cap| *cap <= SLOW * most) {
        let told = format!("scaling_max_freq is {:.1} GHz", cap / 1e6);
        add("scaling_max_freq", format!("{CPUS}{cpu}{CAP}"), format!("{cap:.0}"), format!("{most:.0}"), told);
    }
    caps
}

/// CPUs that are busy and slow because they may not run faster, one finding for each kind of cap.
pub(super) fn capped(model: &Model) -> Vec<Hit> {
    let online = model.machine.topology.online.iter();
    let slow = online
        .filter(|cpu| is_slow(model, *cpu))
        .flat_map(|cpu| caps(model, cpu).into_iter().map(move |cap| (cpu, cap)));
    let mut kinds: Vec<(&str, Vec<(u32, Cap)>)> = Vec::new();
    for (cpu, cap) in slow {
        match kinds.iter_mut().find(|(name, _)| *name == cap.name) {
            Some((_, all)) => all.push((cpu, cap)),
            None => kinds.push((cap.name, vec![(cpu, cap)])),
        }
    }
    kinds.into_iter().map(|(name, all)| lifted(model, name, &all)).collect()
}

/// Turbo that is switched off for all CPUs, where busy ones could use it: below what [`capped`] calls slow, and still less than they have
/// (Documentation/admin-guide/pm/cpufreq.rst, boost, and intel_pstate.rst, no_turbo, Linux 6.12).
pub(super) fn unboosted(model: &Model) -> Option<Hit> {
    let off =
        [("sys/devices/system/cpu/cpufreq/boost".to_owned(), "0", "1"), (format!("{PSTATE}{NO_TURBO}"), "1", "0")];
    let (path, now, to) =
        off.into_iter().find(|(path, now, _)| model.machine.setting(path).is_some_and(|told| told.trim() == *now))?;
    let is_busy = |cpu: &u32| model.machine.cpu_use.get(cpu).is_some_and(|now| now.busy >= BUSY);
    let busy: CpuSet = model.machine.topology.online.iter().filter(is_busy).collect();
    let is_told = busy.iter().any(|cpu| is_slow(model, cpu) && caps(model, cpu).iter().any(|cap| cap.name == NO_TURBO));
    if busy.is_empty() || is_told {
        return None;
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    let title = format!("CPUs {busy} are busy and may not run faster than their base clock: {name} is {now}");
    let mut hit = Hit::new(name, Severity::Low, title).seen(format!("/{path} is {now}"), &path);
    hit = hit.seen(format!("CPUs {busy} are busy"), "proc/stat");
    let path = path.trim_start_matches("sys/").to_owned();
    hit.changes.push(Setting::SysfsWrite { path }.change(to, Some(now.to_owned())));
    Some(hit)
}

/// CPUs that are busy and far below their clock though nothing that was set keeps them there: then the processor or its firmware does.
/// Below the base clock is less than any load gets; where that is not told, far less than several busy cores or wide vectors cost.
pub(super) fn held_down(model: &Model) -> Option<Hit> {
    let number = |cpu: u32, file: &str| frequency_khz(model, cpu, file);
    let governor = |cpu: u32| model.machine.setting(&format!("{CPUS}{cpu}{GOVERNOR}"));
    let is_free =
        |cpu: &u32| governor(*cpu).is_some_and(|told| told.trim() == "performance") && caps(model, *cpu).is_empty();
    let is_held = |cpu: &u32| {
        let limit = number(*cpu, BASE).map(|base| base * BELOW_BASE).or_else(|| Some(number(*cpu, MOST)? * HELD));
        let may = number(*cpu, CAP).is_some_and(|cap| Some(cap) == number(*cpu, MOST));
        may && limit.zip(number(*cpu, CURRENT)).is_some_and(|(limit, now)| now <= limit)
    };
    let online = model.machine.topology.online.iter();
    let held: CpuSet = online.filter(|cpu| is_slow(model, *cpu)).filter(is_free).filter(is_held).collect();
    let first = held.first()?;
    let [now, most] = [CURRENT, MOST].map(|file| number(first, file).unwrap_or_default() / 1e6);
    let title = format!(
        "CPUs {held} are busy at {now:.1} of {most:.1} GHz, though scaling_governor is performance and scaling_max_freq {most:.1} GHz: the \
         processor or its firmware holds them down"
    );
    let mut hit = Hit::new("clock", Severity::Medium, title)
        .seen(format!("CPU {first} is busy and slow"), format!("{CPUS}{first}{CURRENT}"));
    hit = hit.seen(format!("scaling_max_freq of CPU {first} is {most:.1} GHz"), format!("{CPUS}{first}{CAP}"));
    hit.fix.push("grep . /sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count; dmesg | grep -iE 'thermal|throttl|power limit'   # twice: do \
                  they count up? Then it is too hot".to_owned());
    hit.fix.push("turbostat --quiet --show Core,Busy%,Bzy_MHz,PkgTmp,PkgWatt --num_iterations 1   # hot, or at its limit of power?".to_owned());
    hit.fix.push("ipmitool sdr elist; ipmitool dcmi power get_limit   # fans, and a limit of power that the management controller sets".to_owned());
    Some(hit)
}

fn lifted(model: &Model, name: &str, all: &[(u32, Cap)]) -> Hit {
    let (first, cap) = &all[0];
    let cpus: CpuSet = all.iter().map(|(cpu, _)| *cpu).collect();
    let [now, most] = [CURRENT, MOST].map(|file| frequency_khz(model, *first, file).unwrap_or_default() / 1e6);
    let title = format!("CPUs {cpus} are busy at {now:.1} of {most:.1} GHz: {}", cap.told);
    let mut hit = Hit::new(name, Severity::Medium, title);
    hit = hit.seen(format!("CPU {first} is busy and slow"), format!("{CPUS}{first}{CURRENT}"));
    hit = hit.seen(format!("{name} is {}", cap.now), &cap.path);
    let is_each = cap.path.starts_with(CPUS);
    if is_each && all.len() > MOST_LINES {
        let each = |what: &str| format!("for of in /{CPUS}*/cpufreq; do {what} > $of/scaling_max_freq; done");
        hit.fix.push(each("cat $of/cpuinfo_max_freq"));
        hit.undo.push(each(&format!("echo {}", cap.now)));
        return hit;
    }
    for (_, cap) in all.iter().take(if is_each { MOST_LINES } else { 1 }) {
        let path = cap.path.trim_start_matches("sys/").to_owned();
        hit.changes.push(Setting::SysfsWrite { path }.change(&cap.to, Some(cap.now.clone())));
    }
    hit
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

/// Parts of the base clock, and of the highest where no base is told, from which no load explains a clock: our own thresholds.
pub(in crate::placement) const BELOW_BASE: f64 = 0.9;
pub(in crate::placement) const HELD: f64 = 0.4;

/// CPUs that are set line by line; of more a loop is typed.
const MOST_LINES: usize = 16;

/// Where the governor of a CPU stands.
const CPUS: &str = "sys/devices/system/cpu/cpu";
const GOVERNOR: &str = "/cpufreq/scaling_governor";
const CURRENT: &str = "/cpufreq/scaling_cur_freq";
const MOST: &str = "/cpufreq/cpuinfo_max_freq";
const CAP: &str = "/cpufreq/scaling_max_freq";
const PREFERENCE: &str = "/cpufreq/energy_performance_preference";
const BASE: &str = "/cpufreq/base_frequency";

/// Where intel_pstate has what holds for all CPUs.
const PSTATE: &str = "sys/devices/system/cpu/intel_pstate/";
const PERCENT: &str = "max_perf_pct";
const NO_TURBO: &str = "no_turbo";
