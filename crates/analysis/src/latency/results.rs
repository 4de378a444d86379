//! What programs measured, in sentences.

use crate::Case;
use crate::facts::attribution::{Attributed, FoundBy};
use crate::facts::samples::SampleFile;
use base::Unknown;
use base::number::{duration, many, percent};

/// Of each file the longest sample, and who took the time of its samples.
pub(super) fn sentences(case: &Case) -> Vec<String> {
    let files = case.results().list.iter().filter(|file| !file.samples.is_empty());
    let measured = files.map(|file| measured(case, file));
    measured.chain(case.attributed().iter().map(took)).collect()
}

/// `cyclictest on L1 measured 3,000 samples, the longest of 2.84 ms (run.json).`
fn measured(case: &Case, file: &SampleFile) -> String {
    let count = file.samples.iter().fold(0_u64, |sum, samples| sum.saturating_add(samples.count));
    let longest = file.samples.iter().filter_map(|samples| samples.extremes_ns().1).max();
    let longest = longest.map_or(String::new(), |ns| format!(", the longest of {}", duration(ns as f64)));
    let program = file.samples.first().map_or("", |samples| samples.source.name());
    let path = case.input().recording.as_named(&file.path);
    format!("{program} on {} measured {}{longest} ({path}).", file.machine, many(count, "sample"))
}

/// `Of 1.20 s in all samples hog took 0.9 s (75 %), local_timer 12 ms; 10 % is unexplained. Without hog the longest would be 300 us.`
fn took(one: &Attributed) -> String {
    let (sums, named) = (&one.sums, one.sums.most_first());
    let share = |ns: u64| percent(ns as f64 / sums.total_ns.max(1) as f64);
    let which = match one.above_ns {
        0 => format!("all {}", many(sums.samples, "sample")),
        above_ns => format!("{} over {}", many(sums.samples, "sample"), duration(above_ns as f64)),
    };
    let causes: Vec<String> = named
        .iter()
        .take(3)
        .map(|(name, taken)| format!("{name} took {} ({})", duration(taken.total_ns as f64), share(taken.total_ns)))
        .collect();
    let causes = if causes.is_empty() { String::new() } else { format!("{}; ", causes.join(", ")) };
    let without = named.first().map(|(name, _)| {
        let longest = duration(sums.max_without_ns(name) as f64);
        format!(" Without {name} the longest would be {longest}.")
    });
    format!(
        "Of {} in {which} of {}, {causes}{} is unexplained.{}",
        duration(sums.total_ns as f64),
        one.source.name(),
        share(sums.unexplained.total_ns),
        without.unwrap_or_default()
    )
}

/// How sure the attribution is, and of what there is none.
pub(super) fn unknown(case: &Case) -> Vec<Unknown> {
    let mut unknown = Vec::new();
    let of = |what: &str, amount: Option<f64>, unit: &str, text: String| Unknown {
        what: what.into(),
        amount,
        unit: unit.into(),
        text,
    };
    for one in case.attributed() {
        let file = case.input().recording.as_named(&one.path);
        match one.by {
            FoundBy::Time { error_ns } => unknown.push(of(
                "clock_error",
                Some(error_ns as f64),
                "ns",
                format!("Samples of {file} may lie up to {} from where they were looked for.", duration(error_ns as f64)),
            )),
            FoundBy::Rank => unknown.push(of(
                "samples_without_times",
                Some(one.sums.samples as f64),
                "samples",
                format!(
                    "{file} has no times: its longest samples are taken for the longest delays that the trace shows of the \
                     program's threads. jitterdebugger -s and the tracer timerlat write times."
                ),
            )),
        }
        if one.sums.outside > 0 {
            let text = format!(
                "{} of {file} lie outside what the trace shows and are counted as unexplained.",
                many(one.sums.outside, "sample")
            );
            unknown.push(of("samples_outside", Some(one.sums.outside as f64), "samples", text));
        }
    }
    let attributed = |file: &&SampleFile| case.attributed().iter().any(|one| one.path == file.path);
    let without = case.results().list.iter().filter(|file| !file.samples.is_empty() && !attributed(file));
    if !case.input().parts.is_empty() {
        unknown.extend(without.map(|file| {
            let path = case.input().recording.as_named(&file.path);
            let text = format!(
                "No trace of this recording shows what happened during the samples of {path}: it takes a trace of {} or of the \
                 machine below, times in the file, and clocks that are related.",
                file.machine
            );
            of("samples_not_attributed", None, "", text)
        }));
    }
    unknown
}
