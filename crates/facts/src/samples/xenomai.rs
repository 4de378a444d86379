//! `latency` of Xenomai, and `latmus` of EVL, which prints alike and names its CPU: the extremes and the mean of each second, and of the whole.
//!
//! ```text
//! == Sampling period: 100 us
//! RTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)
//! RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
//! RTD|      1.256|      1.400|      4.456|       0|     0|      1.256|      4.456
//! RTS|      1.256|      1.523|     11.312|       0|     0|    00:00:10/00:00:10
//! ```
//! Lengths are us with three digits, below 0 where the timer was programmed too early; a thread wakes once a period, and how often that
//! was follows from the time that it ran. Source: testsuite/latency/latency.c, Xenomai 3.2; tests/latmus.c of libevl.

use super::{Found, Samples, Source, lines};
use std::io::BufRead;

#[derive(Default)]
struct Told {
    period_us: Option<f64>,
    seconds: Option<u64>,
    /// Of all rows of a second: the least, the sum of means, the largest, how many.
    rows: Option<(f64, f64, f64, u64)>,
    whole: Option<(f64, f64, f64)>,
    overruns: u64,
    cpu: Option<u32>,
    is_latmus: bool,
}

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let mut told = Told::default();
    lines::each(input, found, |_, line, _| told.hear(line.trim()));
    let rows = told.rows.map(|(min, sum, max, count)| (min, sum / count as f64, max));
    let Some((min, mean, max)) = told.whole.or(rows) else {
        return found.remark(
            "a row `RTD|` or `RTS|`",
            "none",
            "no row has a latency: its program had not run for a second",
        );
    };
    let cycles = told.period_us.zip(told.seconds).map(|(period, seconds)| (seconds as f64 * 1e6 / period) as u64);
    let ns = |us: f64| (us.max(0.0) * 1e3).round() as u64;
    let source = if told.is_latmus { Source::Latmus } else { Source::Xenomai };
    let mut samples = Samples { unit_ns: 1, cpu: told.cpu, ..Samples::new(source, "0") };
    samples.between(Some(ns(min)), Some(ns(max)));
    samples.mean_ns = Some(mean * 1e3);
    samples.only_extremes(cycles.unwrap_or(0));
    found.samples.push(samples);
    if min < 0.0 {
        let text = format!("its least latency is {min} us: the timer was programmed too early, and 0 is shown");
        found.remark("latencies above 0", "one below", text);
    }
    if told.overruns > 0 {
        found.remark("no overruns", "some", format!("the thread missed {} of its periods", told.overruns));
    }
}

impl Told {
    fn hear(&mut self, line: &str) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let numbers = || -> Option<(f64, f64, f64)> {
            let number = |place: usize| cells.get(place)?.parse::<f64>().ok();
            Some((number(1)?, number(2)?, number(3)?))
        };
        let overruns = || cells.get(4).and_then(|cell| cell.parse::<u64>().ok());
        match cells[0] {
            "RTT" => {
                let about = cells.get(1).copied().unwrap_or_default();
                let clock: Vec<u64> = about
                    .split_whitespace()
                    .next()
                    .map_or(Vec::new(), |clock| clock.split(':').filter_map(|part| part.parse().ok()).collect());
                if let [hours, minutes, seconds] = clock[..] {
                    self.seconds = Some(hours * 3_600 + minutes * 60 + seconds).max(self.seconds);
                }
                let period = about.split_once(", ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
                self.period_us = period.filter(|period: &f64| *period > 0.0).or(self.period_us);
                // `(user, 1000 us period, priority 98, CPU3)`; latency has no CPU there.
                let cpu = about.rsplit_once(", CPU").and_then(|(_, cpu)| cpu.trim_end_matches(')').parse().ok());
                self.is_latmus |= cpu.is_some();
                self.cpu = cpu.or(self.cpu);
            }
            "RTD" => {
                if let Some((min, mean, max)) = numbers() {
                    let (least, sum, most, count) = self.rows.unwrap_or((min, 0.0, max, 0));
                    self.rows = Some((least.min(min), sum + mean, most.max(max), count + 1));
                    self.seconds = self.seconds.max(Some(count + 1));
                    self.overruns = overruns().unwrap_or(0).max(self.overruns);
                }
            }
            "RTS" => {
                self.whole = numbers();
                self.overruns = overruns().unwrap_or(0).max(self.overruns);
                let ran = cells.get(6).and_then(|cell| cell.split('/').next()).map(|clock| {
                    clock
                        .split(':')
                        .filter_map(|part| part.parse::<u64>().ok())
                        .fold(0_u64, |sum, part| sum.saturating_mul(60).saturating_add(part))
                });
                self.seconds = ran.filter(|seconds| *seconds > 0).or(self.seconds);
            }
            _ => {
                let period = line
                    .strip_prefix("== Sampling period:")
                    .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
                self.period_us = period.filter(|period: &f64| *period > 0.0).or(self.period_us);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_at_the_end_counts_and_else_the_rows() {
        let rows = "== Sampling period: 100 us\nRTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)\n\
            RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst\n\
            RTD|      1.256|      1.400|      4.456|       0|     0|      1.256|      4.456\n\
            RTD|      1.300|      1.600|     11.312|       2|     0|      1.256|     11.312\n";
        let whole = "RTS|      1.256|      1.523|     11.312|       2|     0|    00:00:10/00:00:10\n";
        for (text, count, mean) in [(rows.to_owned(), 20_000, 1_500.0), (format!("{rows}{whole}"), 100_000, 1_523.0)] {
            let mut found = Found::default();
            read(&mut text.as_bytes(), &mut found);
            let samples = &found.samples[0];
            assert_eq!((samples.count, samples.extremes_ns()), (count, (Some(1_256), Some(11_312))));
            assert!((samples.mean_ns.unwrap_or_default() - mean).abs() < 1e-6);
            assert_eq!(found.problems.list().len(), 1, "2 periods were missed");
            assert_eq!((samples.source, samples.cpu), (Source::Xenomai, None));
            let mut found = Found::default();
            read(&mut text.replace("priority 99", "priority 98, CPU3").as_bytes(), &mut found);
            assert_eq!((found.samples[0].source, found.samples[0].cpu), (Source::Latmus, Some(3)));
        }
    }
}
