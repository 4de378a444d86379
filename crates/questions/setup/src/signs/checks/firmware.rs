//! Time that was taken while the kernel did nothing.

use crate::signs::Scene;
use base::number::{duration, many};
use base::{Level, Severity};
use facts::rule::Hit;
use facts::samples::{SampleFile, Source};

/// Two longest times that differ by no more are alike: our own threshold.
pub(in crate::signs) const ALIKE: f64 = 0.15;

fn longest_ns(file: &SampleFile) -> Option<u64> {
    file.samples.iter().filter_map(|samples| samples.extremes_ns().1).max()
}

fn is_hwlat(file: &SampleFile) -> bool {
    file.samples.iter().any(|samples| matches!(samples.source, Source::Hwlatdetect | Source::Hwlat))
}

/// Gaps that hwlatdetect found, with the SMIs of the same machine, and what was measured elsewhere.
pub(in crate::signs) fn gaps(scene: &Scene<'_>) -> Vec<Hit> {
    let found = scene.results.iter().filter(|file| is_hwlat(file));
    let found = found.filter_map(|file| Some((file, longest_ns(file).filter(|ns| *ns > 0)?)));
    found.filter_map(|(file, ns)| of_machine(scene, file, ns)).collect()
}

fn of_machine(scene: &Scene<'_>, file: &SampleFile, ns: u64) -> Option<Hit> {
    let count: u64 = file.samples.iter().map(|samples| samples.count).fold(0, u64::saturating_add);
    let smis = scene.models.iter().filter(|model| model.id == file.machine).find_map(|model| {
        let told = model.machine.quoted.iter().filter(|told| told.what == "SMI");
        told.filter_map(|told| Some((told.value.parse::<u64>().ok().filter(|count| *count > 0)?, told)))
            .max_by_key(|(count, told)| (told.subject.starts_with("CPU "), *count))
    });
    // In a guest the host takes such time as well.
    let is_guest = matches!(file.level, Level::At(1..));
    let counted = file.said.as_deref().filter(|said| said.contains("SMIs"));
    let who = match (is_guest, smis.is_some() || counted.is_some()) {
        (true, _) => "the host below, or its firmware,",
        (false, true) => "firmware",
        (false, false) => "firmware, or a host below,",
    };
    let like = scene.results.iter().filter(|other| !is_hwlat(other)).filter_map(|other| {
        let longest = longest_ns(other)?;
        (longest.abs_diff(ns) as f64 <= ALIKE * ns as f64).then_some((other, longest))
    });
    let like = like.map(|(other, longest)| {
        let program = other.samples.first().map_or("", |samples| samples.source.name());
        let on = scene.recording.on(&other.machine);
        (format!("the longest of {program}{on} is {}", duration(longest as f64)), scene.named(&other.path))
    });
    let like: Vec<(String, String)> = like.collect();
    // Without a longest time elsewhere that it explains, and without SMIs, it is what hwlatdetect says by itself.
    if like.is_empty() && smis.is_none() && counted.is_none() {
        return None;
    }
    let as_long = if like.is_empty() { String::new() } else { format!("; {}, as long", like[0].0) };
    let title = format!(
        "{who} took CPUs away {}, up to {} each, while the kernel did nothing{as_long}",
        times(count),
        duration(ns as f64)
    );
    let severity = if like.is_empty() { Severity::Medium } else { Severity::High };
    let mut hit = Hit::new(file.machine.as_str(), severity, title);
    hit.level = Some(if is_guest { Level::At(0) } else { file.level });
    hit = hit.seen(
        format!("hwlatdetect: {}, the longest of {}", many(count, "gap"), duration(ns as f64)),
        scene.named(&file.path),
    );
    hit = counted.into_iter().fold(hit, |hit, said| hit.seen(said, scene.named(&file.path)));
    if let Some((count, told)) = smis {
        hit = hit.seen(
            format!(
                "SMIs counted, {}: {count}",
                if told.subject == "all CPUs" { "all CPUs added up" } else { &told.subject }
            ),
            &told.place,
        );
    }
    Some(like.into_iter().fold(hit, |hit, (what, place)| hit.seen(what, place)))
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}
