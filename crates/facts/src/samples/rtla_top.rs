//! `rtla timerlat top`, `rtla osnoise top` and `rtla hwnoise` (tools/tracing/rtla/src/timerlat_top.c and osnoise_top.c, Linux 6.1): the last of
//! the tables that they print over and over. Counts and extremes are all that it has.
//!
//! ```text
//! CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max
//!   0 #634       |        1         0         1        10 |       11         2         9        23
//!
//! CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI          IRQ      Softirq       Thread
//!   0 #59           1000000          190   99.98100            9          18           0         1007           18            1
//! ```

use super::lines::{self, number_after, numbers};
use super::{Found, Noise, Samples, Source};
use std::collections::BTreeMap;
use std::io::BufRead;

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let (mut cpus, mut in_ns, mut latency, mut is_hwnoise) = (BTreeMap::new(), false, true, false);
    let mut noise = BTreeMap::new();
    let mut analysis = Vec::new();
    lines::each(input, found, |_, line, _| {
        let line = line.trim();
        if line.starts_with(ANALYSIS) {
            analysis = vec![line.trim_matches(['#', ' ']).to_owned()];
        } else if let Some(function) = line.strip_prefix("-> ").filter(|_| !analysis.is_empty()) {
            // The stack of the thread that blocked, behind its name.
            if let Some(last) = analysis.last_mut().filter(|last| last.len() < MOST_LETTERS) {
                last.push_str(&format!(" < {function}"));
            }
        } else if line.starts_with("Max timerlat IRQ latency") && !analysis.is_empty() {
            analysis.push(line.to_owned());
        } else if !analysis.is_empty() && analysis.len() < MOST_ANALYSIS && line.ends_with(')') | line.ends_with(" us")
        {
            analysis.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        in_ns |= line.contains("time is in ns") || line.contains("Latency (ns)");
        if line.contains("Operating System Noise") || line.contains("Hardware-related Noise") {
            (latency, is_hwnoise) = (false, line.contains("Hardware-related Noise"));
        } else if line.as_bytes().first().is_some_and(u8::is_ascii_digit) {
            let cpu = line.split_whitespace().next().and_then(|cpu| cpu.parse::<u32>().ok());
            if !latency {
                noise.extend(
                    Noise::of_rtla(line, if in_ns { 1 } else { 1_000 }, is_hwnoise).map(|noise| (noise.cpu, noise)),
                );
            } else if let (Some(cpu), Some(row)) = (cpu, of_timerlat(line)) {
                cpus.insert(cpu, row);
            }
        }
    });
    found.analysis = analysis;
    let unit_ns = if in_ns { 1 } else { 1_000 };
    for (cpu, row) in cpus {
        for Row { name, count, min, mean, max } in row {
            // rtla divides whole numbers, so that 0 is any mean below 1, and one outside of the extremes is none.
            let mean = mean.filter(|mean| *mean > 0 && (min.unwrap_or(0)..=max).contains(mean));
            let thread = format!("{name}-{cpu:03}");
            let mut samples = Samples { cpu: Some(cpu), unit_ns, ..Samples::new(Source::Timerlat, thread) };
            samples.between(min, Some(max));
            samples.mean_ns = mean.map(|mean| mean as f64 * unit_ns as f64);
            samples.only_extremes(count);
            found.samples.push(samples);
        }
    }
    found.samples.extend(noise.values().map(|noise| noise.samples(unit_ns)));
    found.noise.extend(noise.into_values());
    if found.samples.is_empty() {
        found.damaged(0, "a row of a CPU", "none", "the text has no row of a CPU");
    }
}

/// How what rtla found out about the sample that stopped it begins: `## CPU 9 hit stop tracing, analyzing it ##`
/// (tools/tracing/rtla/src/timerlat_aa.c, Linux 6.12).
const ANALYSIS: &str = "## CPU ";

/// Its lines: some ten parts, and each interrupt and thread that came between.
const MOST_ANALYSIS: usize = 64;

/// Letters of one of them, with a stack.
const MOST_LETTERS: usize = 2_048;

struct Row {
    name: &'static str,
    count: u64,
    min: Option<u64>,
    mean: Option<u64>,
    max: u64,
}

/// Of the interrupt, of the thread, and in later versions of a thread of user space.
fn of_timerlat(line: &str) -> Option<Vec<Row>> {
    let mut groups = line.split('|');
    let count = number_after(groups.next()?, "#")?;
    let names = ["IRQ", "Thr", "Usr"].into_iter();
    let row = |(name, group): (&'static str, &str)| {
        let [_, min, mean, max] = numbers(group).try_into().ok()?;
        Some(Row { name, count, min: Some(min), mean: Some(mean), max })
    };
    Some(names.zip(groups).filter_map(row).collect())
}
