//! `x86/tscdeadline_latency.flat` of kvm-unit-tests: lines `latency: N` on the serial line, in ticks of the time-stamp counter
//! from the deadline to the handler. How long a tick is stands beside it, in the recording's clocks, or nowhere.

use super::buckets::Lengths;
use super::{Found, Known, Samples, Source, lines};
use std::io::BufRead;

pub(super) fn read(input: &mut dyn BufRead, known: Known, found: &mut Found) {
    let mut ticks = Vec::new();
    lines::each(input, found, |_, line, _| {
        ticks.extend(line.trim().strip_prefix("latency: ").and_then(|ticks| ticks.trim().parse::<u64>().ok()));
    });
    let Some(ns_per_tick) = known.ns_per_tick else {
        let text = format!(
            "{} latencies in ticks of the time-stamp counter: nothing tells how long a tick is, so they are not read; give the \
             recording of the machine as well, which has its clocks: kvmscope report RECORDING --part L1=FILE",
            ticks.len()
        );
        return found.damaged(0, "the frequency of the time-stamp counter", "none", text);
    };
    let mut lengths = Lengths::default();
    ticks.iter().for_each(|ticks| lengths.add((*ticks as f64 * ns_per_tick) as u64));
    found.samples.push(lengths.of(Samples { unit_ns: 1, ..Samples::new(Source::TscDeadline, "0") }));
}
