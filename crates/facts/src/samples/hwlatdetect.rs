//! hwlatdetect of rt-tests 2.4, what it prints and its report, or the lines of the kernel's tracer hwlat below it.
//!
//! ```text
//! Max Latency: 14us                                       or `Below threshold`
//! ts: 1499801089.066141940, inner:12, outer:14            us, each the longest of a window; by CLOCK_REALTIME
//! #1 inner/outer(us):   12/14    ts:1499801089.066141940  the same by the tracer (kernel/trace/trace_output.c)
//! ```
//! Only what is longer than the threshold is recorded, so these are no samples of all windows.

use super::buckets::Lengths;
use super::lines::{self, number_after, seconds_ns};
use super::{Found, SampleClock, Samples, Source};
use std::io::BufRead;

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let (mut lengths, mut said) = (Lengths::default(), Said::default());
    let mut samples = Samples { clock: SampleClock::Realtime, ..Samples::new(Source::Hwlatdetect, "hwlat") };
    lines::each(input, found, |_, line, _| match sample(line) {
        Some((end_ns, length)) => {
            lengths.add(length);
            samples.add_timed(end_ns, length.saturating_mul(samples.unit_ns));
        }
        None => said.hear(line),
    });
    let mut samples = lengths.of(samples);
    match said.recorded {
        // Without --watch samples are counted and not listed.
        Some(count) if samples.count == 0 && count > 0 => {
            samples.between(said.threshold, said.max);
            samples.only_extremes(count);
        }
        Some(count) if count != samples.count => {
            let text = format!("{count} samples were recorded, and {} are listed", samples.count);
            found.damaged(0, "a line for every sample", "others", text);
        }
        _ => {}
    }
    if said.began && said.recorded.is_none() {
        found.damaged(
            0,
            "a line `Samples recorded`",
            "none",
            "the text was cut off before hwlatdetect counted its samples",
        );
    }
    found.samples.push(samples);
}

#[derive(Default)]
struct Said {
    began: bool,
    threshold: Option<u64>,
    max: Option<u64>,
    recorded: Option<u64>,
}

impl Said {
    fn hear(&mut self, line: &str) {
        self.began |= line.starts_with("hwlatdetect:");
        self.threshold = self.threshold.or(number_after(line, "Latency threshold:"));
        self.max = self.max.or(number_after(line, "Max Latency:"));
        self.recorded = self.recorded.or(number_after(line, "Samples recorded:"));
    }
}

/// When it ended and the longer of its two times.
fn sample(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = line.split_once("ts:")?;
    let time = rest.trim_start().split([',', ' ', '\t']).next()?;
    let (inner, outer) = match line.split_once("inner/outer(us):") {
        Some((_, lengths)) => {
            let (inner, outer) = lengths.split_once('/')?;
            (inner.trim().parse().ok()?, number_after(outer, "")?)
        }
        None => (number_after(line, "inner:")?, number_after(line, "outer:")?),
    };
    Some((seconds_ns(time)?, inner.max(outer)))
}
