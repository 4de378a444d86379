//! `oslat --json`, of rt-tests 2.4 (`oslat.c`, `write_summary_json` and `insert_bucket`).
//!
//! oslat rounds up: `"5"` holds lengths of 4 us to less than 5 us. The last bucket, the 32nd unless `-b` says another, holds
//! all that was longer as well, and nothing in the file says so: it does where the maximum lies behind it. With `--bias` the
//! first bucket holds what was shorter.

use super::threads::Threads;
use super::{Found, Rounding, Samples, Source};
use base::Span;
use std::collections::BTreeMap;
use std::io::BufRead;

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let threads = Threads::read(input, "thread", found);
    for thread in &threads.list {
        let cpu = thread.count("cpu").and_then(|cpu| u32::try_from(cpu).ok());
        let [min, max] = ["min", "max"].map(|field| thread.count(field));
        let said = Said { histogram: &thread.histogram, min, max, mean: thread.number("avg") };
        found.samples.push(said.samples(&thread.name, cpu));
    }
}

/// What oslat says of one thread, in us rounded up.
pub(super) struct Said<'h> {
    pub histogram: &'h BTreeMap<u64, u64>,
    pub min: Option<u64>,
    pub max: Option<u64>,
    pub mean: Option<f64>,
}

impl Said<'_> {
    pub(super) fn samples(&self, thread: &str, cpu: Option<u32>) -> Samples {
        let mut samples = Samples { rounding: Rounding::Up, cpu, ..Samples::new(Source::Oslat, thread) };
        let met = || self.histogram.iter().filter(|(_, count)| **count > 0).map(|(length, count)| (*length, *count));
        let Some((first, last)) = met().next().zip(met().next_back()) else { return samples };
        // A file that was cut off may lack the extremes: then those of the buckets are all that is known.
        samples.between(self.min.or(Some(first.0)), self.max.or(Some(last.0)));
        // Nothing is rounded up to 0: with a bias it is what is left.
        if self.min == Some(0) {
            samples.min = Some(Span { from_ns: 0, to_ns: 0 });
        }
        samples.mean_ns = self.mean.map(|mean| mean * samples.unit_ns as f64);
        for (length, count) in met() {
            let own = samples.interval(length);
            let shortest = samples.min.map_or(own.from_ns, |min| min.from_ns.min(own.from_ns));
            let longest = samples.max.map_or(own.to_ns, |max| max.to_ns.max(own.to_ns));
            let from_ns = if length == first.0 { shortest } else { own.from_ns };
            let to_ns = if length == last.0 { longest } else { own.to_ns };
            if to_ns > own.to_ns {
                samples.overflow = count;
            }
            samples.add_between(from_ns, to_ns, count);
        }
        samples
    }
}
