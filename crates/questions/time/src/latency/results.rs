//! What programs measured, in sentences.

use super::lacking;
use super::tables::interrupts::kind;
use base::Unknown;
use base::number::{duration, list, many, percent, thousands};
use facts::Case;
use facts::attribution::{Attributed, ClockError, FoundBy};
use facts::budget::exact;
use facts::published::{self, InterruptLatency};
use facts::samples::{Edges, SampleFile, Samples, Source};
use std::collections::{BTreeMap, BTreeSet};

/// Who took the time of samples, where the trace names anybody, and of each file the longest sample.
pub(super) fn sentences(case: &Case) -> Vec<String> {
    let files = case.results().list.iter().filter(|file| !file.samples.is_empty());
    let measured = files.map(|file| match file.edges {
        Some(edges) => interrupts(case, file, edges),
        None => measured(case, file),
    });
    let all = case.attributed();
    // Limits that leave the same samples over have the same answer: that of the highest is said.
    let is_again = |place: usize, next: &Attributed| {
        let one = &all[place];
        let of = |one: &Attributed| (one.source, one.sums.samples);
        (&one.machine, &one.path, of(one)) == (&next.machine, &next.path, of(next))
    };
    let said = (0..all.len()).filter(|place| !all.get(place + 1).is_some_and(|next| is_again(*place, next)));
    let (named, others): (Vec<&Attributed>, _) =
        said.map(|place| &all[place]).partition(|one| one.sums.most_first().iter().any(|(name, _)| *name != "unknown"));
    named.into_iter().map(took).chain(measured).chain(others.into_iter().map(took)).collect()
}

/// `cyclictest on L1 measured 3,000 samples, the longest of 2.84 ms on CPU 3 (run.json).`
fn measured(case: &Case, file: &SampleFile) -> String {
    let program = file.samples.first().map_or("", |samples| samples.source.name());
    let path = case.input().recording.as_named(&file.path);
    let (count, what) = counted(file);
    let longest = file.samples.iter().filter_map(|samples| Some((samples.extremes_ns().1?, samples)));
    // Of equal ones the first.
    let longest = longest.rev().max_by_key(|(ns, _)| *ns);
    let of = longest.map_or(String::new(), |(ns, samples)| {
        let length = duration(ns as f64);
        if file.samples.len() > 1 { format!("{length} {}", place(samples)) } else { length }
    });
    let analysis = match file.analysis.split_first() {
        Some((head, parts)) => format!(" {program} says of the sample that stopped it: {head}; {}.", parts.join("; ")),
        None => String::new(),
    };
    let said = file.said.as_ref().map_or(String::new(), |said| format!(" {said}."));
    let analysis = format!("{said}{analysis}");
    let on = case.input().recording.on(&file.machine);
    if let Some(nothing) = file.nothing.as_ref().filter(|_| count == 0) {
        return format!("{program}{on} {nothing} ({path}).");
    }
    match (count, longest.is_some()) {
        (0, true) => format!("The longest latency that {program} measured{on} is {of} ({path}).{analysis}"),
        (0, false) => format!("{program}{on} measured nothing ({path})."),
        (_, true) => {
            format!("{program}{on} measured {}, the longest of {of} ({path}).{analysis}", many(count, what))
        }
        (_, false) => format!("{program}{on} measured {} ({path}).{analysis}", many(count, what)),
    }
}

/// Where samples were taken: `on CPU 9 (Thr-009)`, `of thread 3`.
fn place(samples: &Samples) -> String {
    let thread = &samples.thread;
    match samples.cpu {
        Some(cpu) if *thread == cpu.to_string() => format!("on CPU {cpu}"),
        Some(cpu) => format!("on CPU {cpu} ({thread})"),
        None => format!("of thread {thread}"),
    }
}

/// How many samples a file has, and what they are called. timerlat takes one of the interrupt and one of the thread in each cycle.
fn counted(file: &SampleFile) -> (u64, &'static str) {
    if file.samples.iter().all(|samples| samples.source == Source::Timerlat) {
        let mut cycles: BTreeMap<Option<u32>, u64> = BTreeMap::new();
        for samples in &file.samples {
            let most = cycles.entry(samples.cpu).or_default();
            *most = samples.count.max(*most);
        }
        return (cycles.into_values().fold(0, u64::saturating_add), "cycle");
    }
    // What osnoise counts interferes with its thread: it takes no sample of the rest of the time.
    let is_noise = file.samples.iter().all(|samples| samples.source == Source::Osnoise);
    let what = if is_noise { "interference" } else { "sample" };
    (file.samples.iter().fold(0, |sum, samples| sum.saturating_add(samples.count)), what)
}

/// `A guest that spins took 9,950 interrupts of 10,000 from outside on L0, 50 merged (run/irq.json): from edge to handler min 4.1 us, mean
/// 5.2 us, max 31 us (measured). KVM4NFV published 3.98 us, 4.42 us and 9.10 us (published).`
fn interrupts(case: &Case, file: &SampleFile, edges: Edges) -> String {
    let path = case.input().recording.as_named(&file.path);
    let guest = if edges.halts { "halts between them" } else { "spins" };
    let others = [(edges.merged, "merged with an older one"), (edges.unanswered, "unanswered"), (edges.lost, "lost")];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let others: Vec<String> = others.map(|(count, what)| format!("{} {what}", thousands(count))).collect();
    let others = if others.is_empty() { String::new() } else { format!("; {}", list(&others)) };
    let lengths = file.samples.iter().filter(|samples| samples.count > 0).map(|samples| {
        let (min, max) = samples.extremes_ns();
        let [min, mean, max] =
            [min.map(|ns| ns as f64), samples.mean_ns, max.map(|ns| ns as f64)].map(|ns| duration(ns.unwrap_or(0.0)));
        let error = duration(samples.error_ns as f64);
        format!("From edge to handler: min {min}, mean {mean}, max {max}, each +- {error} ({}).", kind(case))
    });
    let answered: u64 = file.samples.iter().map(|samples| samples.count).fold(0, u64::saturating_add);
    let head = format!(
        "A guest on {} that {guest} took {} of {} from outside{others} ({path}).",
        file.machine,
        thousands(answered),
        many(edges.count, "interrupt")
    );
    let InterruptLatency { name, min_ns, mean_ns, max_ns, .. } = published::interrupt();
    let [min, mean, max] = [*min_ns, *mean_ns, *max_ns].map(exact);
    let published = format!("{name}: min {min}, mean {mean}, max {max} (published).");
    std::iter::once(head).chain(lengths).chain([published]).collect::<Vec<_>>().join(" ")
}

/// `20 samples over 15 us of cyclictest add up to 1.20 s, a delay counted in each sample that it made late: hog 0.9 s (75 %); 10 % has no cause in
/// the trace, clocks are off by up to 40 ns. Without hog the longest would be 12 us, which keeps to the limit.`
fn took(one: &Attributed) -> String {
    let (sums, named) = (&one.sums, one.sums.most_first());
    let share = |ns: u64| percent(ns as f64 / sums.total_ns.max(1) as f64);
    let over = match one.over.limit_ns {
        Some(limit_ns) => exact(limit_ns),
        None => duration(one.over.above_ns as f64),
    };
    if sums.samples == 0 {
        return format!("No sample of {} is over {over}.", one.source.name());
    }
    let which = match one.over.above_ns {
        0 if sums.samples == 1 => "1 sample".to_owned(),
        0 => format!("all {}", many(sums.samples, "sample")),
        _ => format!("{} over {over}", many(sums.samples, "sample")),
    };
    // What the trace forgot or never saw is no cause: nothing can be done about it by this name.
    let (unknown, named): (Vec<_>, Vec<_>) = named.into_iter().partition(|(name, _)| *name == "unknown");
    let causes: Vec<String> = named
        .iter()
        .take(3)
        .map(|(name, taken)| format!("{name} {} ({})", duration(taken.total_ns as f64), share(taken.total_ns)))
        .collect();
    let causes = if causes.is_empty() { String::new() } else { format!("{}; ", causes.join(", ")) };
    let waited = unknown.first().map(|(_, taken)| {
        let (took, share) = (duration(taken.total_ns as f64), share(taken.total_ns));
        format!("for {took} ({share}) the trace does not show which task had the CPU; ")
    });
    let without = named.first().map(|(name, _)| {
        let longest_ns = sums.max_without_ns(name);
        let keeps = one.over.limit_ns.is_some_and(|limit_ns| longest_ns <= limit_ns);
        let keeps = if keeps { ", which keeps to the limit" } else { "" };
        // Samples that were not looked at may be as long as the limit.
        let most = if sums.is_bound() || longest_ns <= one.over.above_ns { "at most " } else { "" };
        let longest_ns = longest_ns.max(one.over.above_ns);
        format!(" Without {name} the longest would be {most}{}{keeps}.", duration(longest_ns as f64))
    });
    let clocks = one.by.clock_error().filter(|error| error.most_ns() > 0).map(ClockError::phrase);
    let clocks = clocks.map_or(String::new(), |off| format!(", {off}"));
    let (source, total) = (one.source.name(), duration(sums.total_ns as f64));
    // Samples that come faster than a delay ends are all late by it: their sum is longer than the time that passed.
    let head = match sums.samples {
        1 => format!("{which} of {source} is {total} long"),
        _ => format!("{which} of {source} add up to {total}, a delay counted in each sample that it made late"),
    };
    let head = head[..1].to_uppercase() + &head[1..];
    format!(
        "{head}: {causes}{}{} has no cause in the trace{clocks}.{}",
        waited.unwrap_or_default(),
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
    let mut said = BTreeSet::new();
    for one in case.attributed().iter().filter(|one| said.insert((&one.machine, &one.path, one.source))) {
        let file = case.input().recording.as_named(&one.path);
        match one.by {
            FoundBy::Time(error) => unknown.push(of(
                "clock_error",
                Some(error.most_ns() as f64),
                "ns",
                format!(
                    "Samples of {file} may lie up to {} from where they were looked for.",
                    duration(error.most_ns() as f64)
                ),
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
    unknown.extend(lacking::unknown(case));
    unknown
}
