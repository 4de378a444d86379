//! What rtla found out about the sample that stopped it.

use crate::signs::Scene;
use base::Severity;
use base::number::percent;
use facts::rule::Hit;
use facts::samples::SampleFile;

/// Part of the sample from which a part is its cause: our own threshold.
pub(in crate::signs) const MOST: f64 = 0.5;

/// Parts of the analysis that are a cause, and how it may be named (timerlat_aa.c).
const PARTS: &[(&str, &str)] = &[
    ("Blocking thread", "thread"),
    ("IRQ interference", "interrupt"),
    ("Softirq interference", "softirq"),
    ("NMI interference", "NMI"),
    ("Thread interference", "thread"),
    ("IRQ handler delay", ""),
    ("IRQ latency", ""),
];

pub(in crate::signs) fn blocker(scene: &Scene<'_>) -> Vec<Hit> {
    scene.results.iter().filter_map(|file| of_file(scene, file)).collect()
}

/// `65.87` of `Blocking thread: 65.87 us (92.73 %)`, or of `local_timer:236 0.88 us`.
fn us(line: &str) -> Option<f64> {
    let before = line.split(" us").next()?;
    before.rsplit([' ', ':']).next()?.trim().parse().ok()
}

/// An idle state of a CPU, as the kernel's files have it.
struct Idle {
    number: u32,
    name: String,
    /// How long the CPU needs to leave it, by its driver.
    us: f64,
    place: String,
}

/// The deepest idle state of a CPU that nobody switched off, where its files stand in the text.
fn deepest(scene: &Scene<'_>, cpu: u32) -> Option<Idle> {
    let states = scene.models.iter().flat_map(|model| {
        (0..MOST_STATES).filter_map(move |number| {
            let of = |file: &str| {
                model.machine.settings.get(&format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}/{file}"))
            };
            let is_off = of("disable").is_some_and(|told| told.value.trim() != "0");
            let (name, latency) = (of("name")?, of("latency")?);
            let us = latency.value.trim().parse::<f64>().ok().filter(|_| !is_off)?;
            Some(Idle { number, name: name.value.trim().to_owned(), us, place: latency.place.clone() })
        })
    });
    states.max_by(|one, other| one.us.total_cmp(&other.us)).filter(|state| state.us > 0.0)
}

/// Idle states of a CPU at most (CPUIDLE_STATE_MAX, include/linux/cpuidle.h, Linux 6.12).
const MOST_STATES: u32 = 10;

/// The CPU was idle when its timer expired, and came out of that too late: nobody was in the way.
fn of_idle(scene: &Scene<'_>, mut hit: Hit, (cpu, took, all): (u32, f64, f64)) -> Hit {
    hit.title = format!(
        "CPU {cpu} was idle and needed {took:.1} us to come out of that, {} of the {all:.1} us",
        percent(took / all)
    );
    match deepest(scene, cpu) {
        Some(state) => {
            let Idle { number, name, us, place } = &state;
            hit = hit.seen(
                format!("its idle state {name} takes {us:.0} us to leave by its driver, and is not switched off"),
                place,
            );
            hit.fix.push(format!(
                "cpupower -c {cpu} idle-set -d {number}   # {name} off; the same for each CPU that must answer soon"
            ));
            hit.undo.push(format!("cpupower -c {cpu} idle-set -e {number}"));
        }
        None => {
            hit.fix.push(format!("cpupower -c {cpu} idle-info   # its idle states, and how long each takes to leave"));
            hit.fix.push(format!("cpupower -c {cpu} idle-set -D 10   # those off that take longer than 10 us"));
            hit.undo.push(format!("cpupower -c {cpu} idle-set -E"));
        }
    }
    hit
}

fn of_file(scene: &Scene<'_>, file: &SampleFile) -> Option<Hit> {
    let lines = &file.analysis;
    let cpu: u32 = lines.first()?.split_whitespace().nth(1)?.parse().ok()?;
    let all = lines.iter().find(|line| line.starts_with("Thread latency") || line.starts_with("IRQ latency"));
    let all = lines
        .iter()
        .find(|line| line.starts_with("Thread latency"))
        .or(all)
        .and_then(|line| us(line))
        .filter(|all| *all > 0.0)?;
    let part = |name: &str| lines.iter().position(|line| line.to_lowercase().starts_with(&name.to_lowercase()));
    let parts = PARTS.iter().filter_map(|(name, kind)| Some((part(name)?, *name, *kind)));
    let (at, name, kind, took) = parts
        .filter_map(|(at, name, kind)| Some((at, name, kind, us(&lines[at])?)))
        .max_by(|a, b| a.3.total_cmp(&b.3))?;
    if took < MOST * all {
        return None;
    }
    // Below a part stand those that it is made of.
    let is_part = |line: &&String| PARTS.iter().any(|(part, _)| line.to_lowercase().starts_with(&part.to_lowercase()));
    let inner = lines[at + 1..]
        .iter()
        .take_while(|line| !is_part(line) && !line.contains("latency"))
        .filter_map(|line| Some((line.split_whitespace().next()?, us(line)?)));
    let culprit =
        inner.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name.rsplit_once(':').map_or(name, |(name, _)| name));
    let who = match culprit {
        Some(culprit) if !kind.is_empty() => format!("{kind} {culprit}"),
        _ => name.to_owned(),
    };
    let share = percent(took / all);
    let title = match kind.is_empty() {
        true => format!("the timer's interrupt came {took:.1} us late on CPU {cpu}, {share} of the {all:.1} us"),
        false => format!("{who} took {took:.1} of {all:.1} us on CPU {cpu} ({share}), before the measuring thread ran"),
    };
    let mut hit = Hit::new(format!("CPU {cpu}"), Severity::Medium, title);
    hit.level = Some(file.level);
    hit = hit.seen(lines[at].split(" <").next().unwrap_or_default(), scene.named(&file.path));
    if let Some(idle) = lines.iter().find(|line| kind.is_empty() && line.contains("exit from idle")) {
        hit = hit.seen(idle, scene.named(&file.path));
        return Some(of_idle(scene, hit, (cpu, us(idle).unwrap_or(took), all)));
    }
    let late = lines
        .iter()
        .find(|line| line.starts_with("IRQ latency"))
        .and_then(|line| us(line))
        .filter(|late| *late < 0.1 * all);
    if let Some(late) = late {
        hit = hit.seen(
            format!("the timer's interrupt came {late:.1} us late: no idle state is why"),
            scene.named(&file.path),
        );
    }
    let place = |number: &str| {
        let path = format!("proc/irq/{number}/smp_affinity_list");
        scene.models.iter().find_map(|model| Some((path.clone(), model.machine.settings.get(&path)?.clone())))
    };
    match culprit.and_then(|name| name.strip_prefix("irq/")).and_then(|rest| rest.split('-').next()) {
        Some(number) => {
            let before = place(number);
            if let Some((path, told)) = &before {
                hit = hit.seen(format!("/{path} is {}", told.value), &told.place);
            }
            hit.fix.push(format!("echo HOUSEKEEPING > /proc/irq/{number}/smp_affinity_list   # the list of CPUs that are not isolated; its thread \
                                  follows its interrupt"));
            hit.fix.push("systemctl is-active irqbalance   # where it runs it may move it back: IRQBALANCE_BANNED_CPULIST".to_owned());
            let before = before.map_or("AS_IT_WAS".to_owned(), |(_, told)| told.value);
            hit.undo.push(format!("echo {before} > /proc/irq/{number}/smp_affinity_list"));
        }
        None if kind == "thread" => {
            let name = culprit.unwrap_or("NAME");
            hit.fix.push(format!("taskset -acp HOUSEKEEPING $(pgrep -x '{}')   # or isolate CPU {cpu}: isolcpus=managed_irq,domain, nohz_full, rcu_nocbs", base::shell::printable(name)));
        }
        None if kind.is_empty() => hit.fix.push("grep . /sys/module/intel_idle/parameters/max_cstate /sys/devices/system/cpu/cpuidle/current_driver; turbostat --show CPU,SMI -i 10   # idle states, or firmware".to_owned()),
        None => hit.fix.push("cat /proc/interrupts /proc/softirqs   # which count grows on that CPU".to_owned()),
    }
    Some(hit)
}
