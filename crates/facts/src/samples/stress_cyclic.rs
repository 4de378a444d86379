//! The stressor `cyclic` of stress-ng, which measures what cyclictest does: how late its thread wakes.
//!
//! ```text
//! stress-ng: info:  [2436] cyclic: sched SCHED_FIFO: 20000 ns delay, 10000 samples
//! stress-ng: info:  [2436] cyclic:   mean: 3826.39 ns, mode: 2968 ns
//! stress-ng: info:  [2436] cyclic:   min: 2603 ns, max: 2073993 ns, std.dev. 29163.42
//! ```
//! Of its percentiles each is the shortest of the longest part; samples between them are known as intervals. Source: stress-cyclic.c,
//! stress-ng 0.15.

use super::{Bucket, Found, Samples, Source, lines};
use std::io::BufRead;

#[derive(Default)]
struct Printed {
    count: u64,
    mean_ns: Option<f64>,
    extremes_ns: Option<(u64, u64)>,
    /// Shares of samples, and the length that none of them exceeds.
    percentiles: Vec<(f64, u64)>,
}

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    // One for each stressor, whose process is in brackets.
    let mut stressors: Vec<(String, Printed)> = Vec::new();
    lines::each(input, found, |_, line, _| {
        let Some((process, text)) = of_cyclic(line) else { return };
        let place = stressors.iter().position(|(known, _)| known == process).unwrap_or_else(|| {
            stressors.push((process.to_owned(), Printed::default()));
            stressors.len() - 1
        });
        stressors[place].1.add(text);
    });
    for (process, printed) in stressors {
        let Some((min, max)) = printed.extremes_ns else { continue };
        let mut samples = Samples { unit_ns: 1, ..Samples::new(Source::StressCyclic, process) };
        samples.between(Some(min), Some(max));
        samples.mean_ns = printed.mean_ns;
        match printed.buckets(min, max) {
            Some(buckets) => {
                samples.count = printed.count;
                samples.buckets = buckets;
            }
            None => samples.only_extremes(printed.count),
        }
        found.samples.push(samples);
    }
    if found.samples.is_empty() {
        found.remark(
            "a line with `min:` and `max:`",
            "none",
            "the stressor had not ended: it prints its latencies at its end",
        );
    }
}

/// The process and what its stressor says.
fn of_cyclic(line: &str) -> Option<(&str, &str)> {
    let (head, text) = line.split_once("] cyclic:")?;
    Some((head.rsplit_once('[')?.1, text.trim()))
}

impl Printed {
    fn add(&mut self, text: &str) {
        let after =
            |sign: &str| text.split_once(sign)?.1.split_whitespace().next()?.trim_end_matches(',').parse::<f64>().ok();
        if let Some((_, count)) = text.rsplit_once(" delay, ") {
            self.count = count.split_whitespace().next().and_then(|count| count.parse().ok()).unwrap_or(0);
        } else if let Some((share, length)) = text.split_once("%:") {
            let ns = length.trim().trim_end_matches("ns").trim().parse();
            if let (Ok(share), Ok(ns)) = (share.trim().parse::<f64>(), ns) {
                self.percentiles.push((share / 100.0, ns));
            }
        } else if let (Some(min), Some(max)) = (after("min: "), after("max: ")) {
            self.extremes_ns = Some((min as u64, max as u64));
        }
        self.mean_ns = self.mean_ns.or(after("mean: "));
    }

    /// The samples between one percentile and the next; `None` where they are not in order, or not counted.
    fn buckets(&self, min: u64, max: u64) -> Option<Vec<Bucket>> {
        let (mut from_ns, mut counted, mut buckets) = (min, 0, Vec::new());
        for (share, to_ns) in self.percentiles.iter().copied().chain([(1.0, max)]) {
            let count = (self.count as f64 * share).round() as u64;
            if to_ns < from_ns || count < counted {
                return None;
            }
            if count > counted {
                // Intervals are open above.
                buckets.push(Bucket { from_ns, to_ns: to_ns + 1, count: count - counted });
            }
            (from_ns, counted) = (to_ns, count);
        }
        (!self.percentiles.is_empty() && self.count > 0).then_some(buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_the_mean_and_what_lies_between_percentiles() {
        let text = "stress-ng: info:  [9] dispatching hogs: 1 cyclic\n\
            stress-ng: info:  [7] cyclic: sched SCHED_FIFO: 20000 ns delay, 10000 samples\n\
            stress-ng: info:  [7] cyclic:   mean: 3826.39 ns, mode: 2968 ns\n\
            stress-ng: info:  [7] cyclic:   min: 2603 ns, max: 2073993 ns, std.dev. 29163.42\n\
            stress-ng: info:  [7] cyclic: latency percentiles:\n\
            stress-ng: info:  [7] cyclic:   50.00%:       3020 ns\n\
            stress-ng: info:  [7] cyclic:   99.00%:       7104 ns\n";
        let mut found = Found::default();
        read(&mut text.as_bytes(), &mut found);
        let samples = &found.samples[0];
        assert_eq!((samples.count, samples.extremes_ns()), (10_000, (Some(2_603), Some(2_073_993))));
        assert_eq!((samples.mean_ns, samples.thread.as_str()), (Some(3_826.39), "7"));
        let counts: Vec<_> = samples.buckets.iter().map(|bucket| (bucket.from_ns, bucket.count)).collect();
        assert_eq!(counts, [(2_603, 5_000), (3_020, 4_900), (7_104, 100)]);
        let mut cut = Found::default();
        read(&mut text.lines().take(2).collect::<Vec<_>>().join("\n").as_bytes(), &mut cut);
        assert!(cut.samples.is_empty() && cut.problems.list().len() == 1);
    }
}
