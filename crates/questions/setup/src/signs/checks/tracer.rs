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
            hit.fix.push(format!("echo HOUSEKEEPING > /proc/irq/{number}/smp_affinity_list   # the list of CPUs that nobody isolates; its thread follows its interrupt"));
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
