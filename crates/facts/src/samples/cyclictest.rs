//! `cyclictest --json`, of rt-tests 2.4 (`cyclictest.c`, `write_stats`).
//!
//! The histogram lacks the samples that were longer than its end: `cycles` less its sum. Without `-h` it is empty and all
//! that is known are extremes. `-N` makes all lengths ns: versions before 2 say so in the command alone.

use super::threads::{Thread, Threads};
use super::{Found, Samples, Source};
use std::io::BufRead;

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let threads = Threads::read(input, "thread", found);
    let command = threads.command();
    let in_ns = threads.count("resolution_in_ns") == Some(1) || command.has('N', "nsecs");
    let has_histogram = command.has('h', "histogram") || command.has('H', "histofall");
    let end = command.number('h', "histogram").or_else(|| command.number('H', "histofall"));
    for thread in &threads.list {
        let samples =
            Samples { unit_ns: if in_ns { 1 } else { 1_000 }, ..Samples::new(Source::Cyclictest, &thread.name) };
        found.samples.push(Samples { cpu: cpu(thread), ..samples });
        take(thread, has_histogram.then_some(end), found);
    }
}

fn cpu(thread: &Thread) -> Option<u32> {
    thread.count("cpu").and_then(|cpu| u32::try_from(cpu).ok())
}

/// Fills the samples that were begun last; `histogram` is there if the thread kept one, with its end if that is known.
fn take(thread: &Thread, histogram: Option<Option<u64>>, found: &mut Found) {
    let kept = thread.sum();
    let cycles = thread.count("cycles");
    let Some(mut samples) = found.samples.pop() else { return };
    if cycles.is_some_and(|cycles| cycles < kept) {
        let text = format!("thread {}: the histogram has more samples than the thread counted cycles", thread.name);
        found.damaged(0, "a histogram of at most all cycles", "more", text);
    }
    let overflow = cycles.unwrap_or(kept).saturating_sub(kept);
    if kept > 0 || overflow > 0 {
        samples.between(thread.count("min"), thread.count("max"));
        samples.mean_ns = thread.number("avg").map(|mean| mean * samples.unit_ns as f64);
    }
    thread.histogram.iter().for_each(|(length, count)| samples.add(*length, *count));
    if thread.histogram.is_empty() && histogram.is_none() {
        samples.only_extremes(overflow);
    } else {
        let behind = thread.histogram.last_key_value().map_or(0, |(length, _)| length.saturating_add(1));
        let end = histogram.flatten().unwrap_or(behind).max(behind);
        samples.overflow = overflow;
        samples.add_unkept(end.saturating_mul(samples.unit_ns), overflow);
    }
    if cycles.is_none() && kept > 0 {
        let text = format!(
            "thread {}: the file ends before it says how many cycles there were, so overflows are unknown",
            thread.name
        );
        found.damaged(0, "the number of cycles", "none", text);
    }
    found.samples.push(samples);
}
