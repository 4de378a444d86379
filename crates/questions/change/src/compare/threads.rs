//! What each thread of a latency test measured, before and after: threads are paired by their numbers, never pooled. CPUs differ, so
//! that a mean over threads would hide what each of them shows.

use base::number::{counted, duration, many, percent};
use base::{Cell, Table, TableSpec, shown, table};
use facts::Case;
use facts::samples::Samples;
use std::collections::BTreeMap;

/// Both sides of each thread.
pub(super) const THREADS: TableSpec = table! {
    compare.threads version 1: "One statistic of what one thread of a latency test measured, before and after.";
    key machine, key program, key thread, key statistic, ns before_ns, ns after_ns, f64("") ratio;
    shown![
        "What each thread measured, before and after", 24;
        machine, program, thread, statistic, before_ns: "before", after_ns: "after", ratio,
    ]
};

/// A thread: its machine, its program, its name.
type Who = (String, &'static str, String);

/// The threads of a recording that measured anything.
fn threads(case: &Case) -> BTreeMap<Who, &Samples> {
    let who = |machine: &str, samples: &Samples| (machine.to_owned(), samples.source.name(), samples.thread.clone());
    let all = case.results().each().filter(|(_, samples)| samples.extremes_ns().1.is_some());
    all.map(|(file, samples)| (who(&file.machine, samples), samples)).collect()
}

/// What is told of a thread: where the program kept no lengths there is no median, but a mean.
fn told(samples: &Samples) -> Vec<(&'static str, f64)> {
    let ns = |value: Option<u64>| value.map(|ns| ns as f64);
    let all = [
        ("median", ns(samples.quantile_ns(0.5))),
        ("mean", samples.mean_ns),
        ("p99", ns(samples.quantile_ns(0.99))),
        ("maximum", ns(samples.extremes_ns().1)),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The table, and a sentence for each program; `None` where the recordings have no thread in common.
pub(super) fn compared(before: &Case, after: &Case) -> Option<(Table, Vec<String>)> {
    let (one, two) = (threads(before), threads(after));
    let pairs: Vec<(&Who, &Samples, &Samples)> =
        one.iter().filter_map(|(who, samples)| Some((who, *samples, *two.get(who)?))).collect();
    if pairs.is_empty() {
        return None;
    }
    let mut table = Table::new(&THREADS);
    for ((machine, program, thread), before, after) in &pairs {
        let after: BTreeMap<_, _> = told(after).into_iter().collect();
        for (name, before) in told(before) {
            let Some(after) = after.get(name).copied() else { continue };
            let ns = |value: f64| Cell::U64(value.round() as u64);
            let ratio = (before > 0.0).then(|| after / before);
            let names = [machine.as_str(), program, thread.as_str(), name];
            table.push(names.into_iter().map(Into::into).chain([ns(before), ns(after), ratio.into()]).collect());
        }
    }
    let mut programs: Vec<(&str, &str)> =
        pairs.iter().map(|((machine, program, _), ..)| (machine.as_str(), *program)).collect();
    programs.dedup();
    let sentences = programs.into_iter().map(|(machine, program)| {
        let is_its = |who: &Who| who.0 == machine && who.1 == program;
        let own: Vec<_> = pairs.iter().filter(|(who, ..)| is_its(who)).collect();
        let alone = one.keys().chain(two.keys()).filter(|who| is_its(who)).count() - 2 * own.len();
        let before = longest(own.iter().map(|(who, before, _)| (*who, *before)));
        let after = longest(own.iter().map(|(who, _, after)| (*who, *after)));
        let middle = moved(&own.iter().map(|(_, before, after)| [told(before), told(after)]).collect::<Vec<_>>());
        let alone = match alone {
            0 => String::new(),
            _ => format!("; {} on one side alone", counted(alone as u64, "thread is", "threads are")),
        };
        format!("{program} on {machine}: the maximum went from {before} to {after}{middle}{alone}.")
    });
    Some((table, sentences.collect()))
}

/// `610.0 us (thread 0)`: the longest of all threads; of equal ones the first.
fn longest<'c>(threads: impl DoubleEndedIterator<Item = (&'c Who, &'c Samples)>) -> String {
    let each = threads.rev().filter_map(|((.., thread), samples)| Some((samples.extremes_ns().1?, thread)));
    let most = each.max_by_key(|(ns, _)| *ns);
    most.map_or(String::new(), |(ns, thread)| format!("{} (thread {thread})", duration(ns as f64)))
}

/// How the medians of threads moved, or their means: `; the median rose on each of 4 threads, by 25.0 % to 37.0 %`.
fn moved(pairs: &[[Vec<(&'static str, f64)>; 2]]) -> String {
    let value =
        |told: &[(&str, f64)], name: &str| told.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let ratios = |name: &str| -> Option<Vec<f64>> {
        let ratio = |[before, after]: &[Vec<(&'static str, f64)>; 2]| {
            let before = value(before, name).filter(|value| *value > 0.0)?;
            Some(value(after, name)? / before)
        };
        pairs.iter().map(ratio).collect()
    };
    let Some((name, ratios)) = ["median", "mean"].into_iter().find_map(|name| Some((name, ratios(name)?))) else {
        return String::new();
    };
    let (up, down) =
        (ratios.iter().filter(|ratio| **ratio > 1.0).count(), ratios.iter().filter(|ratio| **ratio < 1.0).count());
    let threads = |count: usize| match (count == ratios.len(), ratios.len()) {
        (true, 1) => "on its thread".to_owned(),
        (true, all) => format!("on each of {}", many(all as u64, "thread")),
        (false, all) => format!("on {count} of {}", many(all as u64, "thread")),
    };
    let by = |wanted: &dyn Fn(&f64) -> bool| {
        let mut changes: Vec<f64> =
            ratios.iter().filter(|ratio| wanted(ratio)).map(|ratio| (ratio - 1.0).abs()).collect();
        changes.sort_by(f64::total_cmp);
        match (changes.first().map(|least| percent(*least)), changes.last().map(|most| percent(*most))) {
            (Some(least), Some(most)) if least != most => format!(", by {least} to {most}"),
            (Some(least), _) => format!(", by {least}"),
            _ => String::new(),
        }
    };
    let rose = (up > 0).then(|| format!("the {name} rose {}{}", threads(up), by(&|ratio| *ratio > 1.0)));
    let fell = (down > 0).then(|| format!("the {name} fell {}{}", threads(down), by(&|ratio| *ratio < 1.0)));
    let same = (up + down == 0).then(|| format!("the {name} is the same {}", threads(ratios.len())));
    rose.into_iter().chain(fell).chain(same).map(|said| format!("; {said}")).collect()
}
