//! jitterdebugger: `results.json` (`jitterdebugger.c`, `dump_json`), its raw samples as `jittersamples` prints them, and what `-v` shows.
//!
//! ```text
//! T: 2 (  616) A: 4 C:    599911 Min:         2 Avg:    3.31 Max:       187      thread, its id, its CPU: the last line counts
//! 0;49717.680885282;26       thread, when it woke by CLOCK_MONOTONIC, length
//! ```
//! `"0"` below `cpu` is the number of the thread, which is the CPU's only where all CPUs are measured. Lengths are whole us, or
//! ns with `-N`, which the JSON says in `resolution_in_ns` and the samples do not. What is longer than the histogram is in `count`
//! alone.

use super::buckets::Lengths;
use super::lines::{self, number_after, seconds_ns};
use super::threads::Threads;
use super::{Found, SampleClock, Samples, Source};
use std::collections::BTreeMap;
use std::io::BufRead;

/// Buckets of its histogram: `HIST_MAX_ENTRIES` of `jitterdebugger.c`.
const BUCKETS: u64 = 1_000;

/// Reads the JSON.
pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let threads = Threads::read(input, "cpu", found);
    let unit_ns = threads.count("resolution_in_ns").filter(|unit| *unit > 0).unwrap_or(1_000);
    for thread in &threads.list {
        let mut samples = Samples { unit_ns, ..Samples::new(Source::Jitterdebugger, &thread.name) };
        let kept = thread.sum();
        samples.overflow = thread.count("count").unwrap_or(kept).saturating_sub(kept);
        if kept > 0 || samples.overflow > 0 {
            samples.between(thread.count("min"), thread.count("max"));
            samples.mean_ns = thread.number("avg").map(|mean| mean * unit_ns as f64);
        }
        thread.histogram.iter().for_each(|(length, count)| samples.add(*length, *count));
        let behind = thread.histogram.last_key_value().map_or(0, |(length, _)| length.saturating_add(1));
        samples.add_unkept(behind.max(BUCKETS).saturating_mul(unit_ns), samples.overflow);
        if thread.count("count").is_none() {
            let text = format!("thread {}: the file ends before it says how many samples there were", thread.name);
            found.damaged(0, "the number of samples", "none", text);
        }
        found.samples.push(samples);
    }
}

pub(super) fn read_samples(input: &mut dyn BufRead, found: &mut Found) {
    let mut threads: BTreeMap<u32, (Lengths, Samples)> = BTreeMap::new();
    let mut untimed = 0_u64;
    lines::each(input, found, |offset, line, found| {
        let Some((thread, end_ns, length)) = sample(line) else {
            if !line.trim().is_empty() {
                let text = "some lines are not samples of jitterdebugger and were ignored";
                found.damaged(offset, "thread;seconds;length", format!("{} other bytes", line.len()), text);
            }
            return;
        };
        let (lengths, samples) = threads.entry(thread).or_insert_with(|| {
            let samples = Samples::new(Source::Jitterdebugger, thread.to_string());
            (Lengths::default(), Samples { clock: SampleClock::Monotonic, ..samples })
        });
        lengths.add(length);
        untimed += u64::from(!samples.add_timed(end_ns, length.saturating_mul(samples.unit_ns)));
    });
    found.samples.extend(threads.into_values().map(|(lengths, samples)| lengths.of(samples)));
    if untimed > 0 {
        let text =
            format!("{untimed} samples are counted without their times: only the first of each thread keep theirs");
        found.remark("fewer samples", "more", text);
    }
}

/// The last line of each thread.
pub(super) fn read_text(input: &mut dyn BufRead, found: &mut Found) {
    let mut threads: BTreeMap<u32, Samples> = BTreeMap::new();
    lines::each(input, found, |_, line, _| threads.extend(summary(line)));
    found.samples.extend(threads.into_values());
}

fn summary(line: &str) -> Option<(u32, Samples)> {
    let number = |name: &str| number_after(line, name);
    let thread = u32::try_from(number("T:")?).ok()?;
    let mut samples = Samples::new(Source::Jitterdebugger, thread.to_string());
    samples.tid = number("(").and_then(|tid| i32::try_from(tid).ok());
    samples.cpu = number("A:").and_then(|cpu| u32::try_from(cpu).ok());
    let (_, mean) = line.split_once("Avg:")?;
    let mean = mean.split_whitespace().next()?.parse::<f64>().ok();
    samples.mean_ns = mean.map(|mean| mean * samples.unit_ns as f64);
    samples.between(number("Min:"), Some(number("Max:")?));
    samples.only_extremes(number("C:")?);
    Some((thread, samples))
}

fn sample(line: &str) -> Option<(u32, u64, u64)> {
    let mut fields = line.trim().split(';');
    let sample = (fields.next()?.parse().ok()?, seconds_ns(fields.next()?)?, fields.next()?.parse().ok()?);
    fields.next().is_none().then_some(sample)
}
