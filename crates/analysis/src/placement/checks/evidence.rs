//! Does the evidence contradict itself? Before anything is explained by it.

use crate::placement::model::{Model, UNSTABLE_STEAL};
use crate::rule::Hit;
use base::Severity;
use base::number::{list, many, percent};
use std::collections::BTreeMap;

/// Screens that stand in another order than the CPU times of their threads.
pub fn order(model: &Model) -> Vec<Hit> {
    let screens = &model.machine.screens;
    let mut hits = Vec::new();
    for (index, earlier) in screens.iter().enumerate() {
        for later in &screens[index + 1..] {
            let mut both = Vec::new();
            for row in &earlier.rows {
                let other = later.rows.iter().find(|other| other.pid == row.pid);
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
pub fn mask(model: &Model) -> Vec<Hit> {
    let mut outside: BTreeMap<&str, (Vec<String>, usize, Hit)> = BTreeMap::new();
    for thread in &model.machine.threads {
        let (Some(tid), Some(set)) = (thread.tid, &thread.affinity) else { continue };
        let vm = thread.vm.as_deref().unwrap_or(&thread.name);
        let rows = model.machine.screens.iter().flat_map(|screen| &screen.rows).filter(|row| row.pid == tid);
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

/// A pin that was told twice, and differently.
pub fn pins(model: &Model) -> Vec<Hit> {
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

/// CPUs of which the machine below took too much.
pub fn steal(model: &Model) -> Vec<Hit> {
    let stolen: Vec<(u32, f64)> = model
        .machine
        .cpu_use
        .iter()
        .map(|(cpu, usage)| (*cpu, usage.steal))
        .filter(|(_, steal)| *steal > UNSTABLE_STEAL)
        .collect();
    let Some((worst, most)) = stolen.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
    let title =
        format!("steal time: the hypervisor took up to {} of a CPU, so measurements are unstable", percent(most));
    let hit = Hit::new("steal", Severity::Medium, title);
    vec![hit.seen(
        format!("{} above 5 %, CPU {worst} with {}", many(stolen.len() as u64, "CPU"), percent(most)),
        "proc/stat, steal",
    )]
}
