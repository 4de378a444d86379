//! The limit of threads with a real-time policy, as the kernel says, the settings tell and programs measure.

use crate::placements::Model;
use crate::signs::Scene;
use base::number::duration;
use base::{Level, Severity};
use facts::rule::Hit;
use facts::samples::SampleFile;
use host::machine::{COMPLAINTS, Fact};

/// Two lengths that differ by no more are alike: our own threshold.
pub(in crate::signs) const ALIKE: f64 = 0.05;

const RUNTIME: &str = "proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "proc/sys/kernel/sched_rt_period_us";

/// What the kernel begins with (kernel/sched/rt.c, Linux 6.12).
const USUAL_PERIOD_US: f64 = 1e6;

pub(in crate::signs) fn throttled(scene: &Scene<'_>) -> Vec<Hit> {
    scene.models.iter().filter_map(|model| of_machine(scene, model)).collect()
}

fn of_machine(scene: &Scene<'_>, model: &Model) -> Option<Hit> {
    let number = |path: &str| {
        let told: &Fact<String> = model.machine.settings.get(path)?;
        Some((told.value.trim().parse::<f64>().ok()?, told.place.as_str()))
    };
    let (runtime, place) = number(RUNTIME)?;
    let period = number(PERIOD).map_or(USUAL_PERIOD_US, |(period, _)| period);
    let stopped_ns = (period - runtime) * 1_000.0;
    if runtime < 0.0 || stopped_ns <= 0.0 {
        return None;
    }
    let says = model.machine.complaints.iter().find(|told| {
        COMPLAINTS.get(told.value.kind).is_some_and(|kind| kind.words.first() == Some(&"rt throttling activated"))
    })?;
    let longest = |file: &SampleFile| file.samples.iter().filter_map(|samples| samples.extremes_ns().1).max();
    let alike = scene.results.iter().filter_map(|file| Some((file, longest(file)? as f64)));
    let alike = alike
        .filter(|(_, ns)| (ns - stopped_ns).abs() <= ALIKE * stopped_ns)
        .max_by(|one, other| one.1.total_cmp(&other.1));
    let (severity, as_long) = match alike {
        Some((file, ns)) => {
            let program = file.samples.first().map_or("", |samples| samples.source.name());
            (
                Severity::High,
                format!(", as long as the longest of {program}{}, {}", scene.recording.on(&file.machine), duration(ns)),
            )
        }
        None => (Severity::Medium, String::new()),
    };
    let title = format!(
        "RT throttling stops threads with a real-time policy that do not sleep for {} of each {}{as_long}",
        duration(stopped_ns),
        duration(period * 1_000.0)
    );
    let mut hit = Hit::new("sched_rt_runtime_us", severity, title);
    hit.level = Some(if model.level == Level::Unknown { Level::L0 } else { model.level });
    hit = hit
        .seen(format!("`{}`", says.value.line), &says.place)
        .seen(format!("sched_rt_runtime_us is {runtime:.0}"), place);
    hit = alike
        .into_iter()
        .fold(hit, |hit, (file, ns)| hit.seen(format!("the longest is {}", duration(ns)), scene.named(&file.path)));
    hit.fix.push("sysctl -w kernel.sched_rt_runtime_us=-1   # no limit, at once; tuned's profile realtime-virtual-host sets it as well".to_owned());
    hit.undo.push(format!("sysctl -w kernel.sched_rt_runtime_us={runtime:.0}"));
    Some(hit)
}
