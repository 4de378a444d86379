//! The lines of vm-trace (opnfv/kvmfornfv, `tests/vm-trace/vm-trace.c`, 23a1e5a7).
//!
//! ```text
//! Number of VM events = 4711                            exits and entries together
//! Average VM Exit-Entry latency = 3us                   all cut to whole us
//! Maximum VM Exit-Entry latency = 812us
//! Maximum cumulative latency within 1ms = 900us         of tumbling windows: no sample, not taken
//! ```
//! A pair takes two events, so half of them is the most that there can be.

use super::lines::{self, number_after};
use super::{Found, Samples, Source};
use std::io::BufRead;

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let (mut events, mut mean, mut max) = (0, None, None);
    lines::each(input, found, |_, line, _| {
        events = number_after(line, "Number of VM events =").unwrap_or(events);
        mean = number_after(line, "Average VM Exit-Entry latency =").or(mean);
        max = number_after(line, "Maximum VM Exit-Entry latency =").or(max);
    });
    if max.is_none() {
        // It divides by the number of pairs without a look at it.
        found.damaged(0, "a line `Maximum VM Exit-Entry latency`", "none", "vm-trace ended before it printed a result");
    }
    let mut samples = Samples::new(Source::VmTrace, "");
    samples.between(None, max);
    samples.mean_ns = mean.map(|mean| mean as f64 * samples.unit_ns as f64);
    samples.only_extremes(if max.is_some() { events / 2 } else { 0 });
    found.samples.push(samples);
}
