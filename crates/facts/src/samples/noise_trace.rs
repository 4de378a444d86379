//! A printed trace of the kernel's tracers timerlat and osnoise (kernel/trace/trace_osnoise.c and trace_entries.h, Linux 6.12).
//!
//! ```text
//!   <idle>-0   [000] d.h1    54.029328: #1     context    irq timer_latency       932 ns
//!  osnoise/8-961 [008] d.h.  5789.857532: irq_noise: local_timer:236 start 5789.857529929 duration 1845 ns
//!  osnoise/0-859 [000] ....    81.637220: 1000000   190  99.98100  9  18  0  1007  18  1        a period's sums: `noise`
//! ```
//! Between `[000]` and a time of 12 digits no blank needs to stand: what follows the bracket is read, not words. A line that is
//! none of a tracer's is counted.

use super::buckets::Lengths;
use super::lines::{self, number_after, seconds_ns};
use super::{Found, Noise, SampleClock, Samples, Source};
use std::collections::BTreeMap;
use std::io::BufRead;

const NOISES: [&str; 4] = ["nmi_noise", "irq_noise", "softirq_noise", "thread_noise"];

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let mut threads: BTreeMap<(u32, &str), (Lengths, Samples)> = BTreeMap::new();
    let mut noise: BTreeMap<u32, Noise> = BTreeMap::new();
    let mut untimed = 0_u64;
    lines::each(input, found, |offset, line, found| match heard(line) {
        Heard::Sample(sample) => {
            let key = (sample.cpu, sample.thread);
            let (lengths, samples) = threads.entry(key).or_insert_with(|| {
                let thread = format!("{}-{:03}", sample.thread, sample.cpu);
                let samples = Samples { cpu: Some(sample.cpu), unit_ns: 1, ..Samples::new(sample.source, thread) };
                (Lengths::default(), Samples { clock: SampleClock::Local, ..samples })
            });
            lengths.add(sample.length_ns);
            untimed += u64::from(!samples.add_timed(sample.end_ns, sample.length_ns));
        }
        Heard::Period(period) => {
            let cpu = period.cpu;
            noise.entry(cpu).or_insert_with(|| Noise { cpu, ..Noise::default() }).add(&period);
        }
        Heard::Lost(count) => {
            let text = format!("the trace lost {count} events here");
            found.damaged(offset, "all events", "a mark of lost ones", text);
        }
        Heard::Nothing => {}
        Heard::Strange => {
            let text = "some lines are none of timerlat's or osnoise's and were ignored";
            found.damaged(offset, "a line of timerlat or osnoise", format!("{} other bytes", line.len()), text);
        }
    });
    // Where each noise stands by itself, the sums of periods count the same ones once more.
    let is_listed = threads.values().any(|(_, samples)| samples.source == Source::Osnoise);
    found.samples.extend(threads.into_values().map(|(lengths, samples)| lengths.of(samples)));
    found.samples.extend(noise.values().filter(|_| !is_listed).map(|noise| noise.samples(1_000)));
    found.noise.extend(noise.into_values());
    if found.samples.is_empty() {
        found.damaged(
            0,
            "a line of a sample",
            "none",
            "the text has no sample of timerlat or osnoise: no line behind its header",
        );
    }
    if untimed > 0 {
        let text =
            format!("{untimed} samples are counted without their times: only the first of each kind keep theirs");
        found.remark("fewer samples", "more", text);
    }
}

struct Sample {
    source: Source,
    thread: &'static str,
    cpu: u32,
    end_ns: u64,
    length_ns: u64,
}

enum Heard {
    Sample(Sample),
    Period(Noise),
    Lost(u64),
    Nothing,
    Strange,
}

fn heard(line: &str) -> Heard {
    let text = line.trim();
    // Stacks and headers.
    if text.is_empty() || text.starts_with('#') || text.starts_with("=>") {
        return Heard::Nothing;
    }
    if let Some(count) = text.strip_prefix("CPU:").and_then(|lost| number_after(lost, "[LOST")) {
        return Heard::Lost(count);
    }
    event(text).unwrap_or(Heard::Strange)
}

fn event(line: &str) -> Option<Heard> {
    let (cpu, rest) = after_cpu(line)?;
    let (time_ns, event) = rest.match_indices(": ").find_map(|(at, _)| {
        let time = rest[..at].rsplit([' ', '\t']).next()?;
        Some((seconds_ns(time)?, rest[at + 2..].trim()))
    })?;
    if let Some(length_ns) = number_after(event, "timer_latency") {
        let (_, context) = event.split_once("context")?;
        let thread = match context.split_whitespace().next()? {
            "irq" => "IRQ",
            "thread" => "Thr",
            "user-ret" => "Usr",
            _ => return None,
        };
        return Some(Heard::Sample(Sample { source: Source::Timerlat, thread, cpu, end_ns: time_ns, length_ns }));
    }
    if let Some(thread) = NOISES.into_iter().find(|noise| event.starts_with(noise)) {
        let length_ns = number_after(event, "duration")?;
        let (_, start) = event.rsplit_once("start ")?;
        let start_ns = seconds_ns(start.split_whitespace().next()?)?;
        let end_ns = start_ns.saturating_add(length_ns);
        return Some(Heard::Sample(Sample { source: Source::Osnoise, thread, cpu, end_ns, length_ns }));
    }
    if let Some(period) = Noise::of_row(cpu, event) {
        return Some(Heard::Period(period));
    }
    event.starts_with('<').then_some(Heard::Nothing)
}

/// The CPU in the first brackets that hold a number, and what follows them.
fn after_cpu(line: &str) -> Option<(u32, &str)> {
    line.match_indices('[').find_map(|(at, _)| {
        let (number, rest) = line[at + 1..].split_once(']')?;
        Some((number.parse().ok()?, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_of_a_cpu_are_added_up() {
        let row = |time, noise, single| {
            format!("osnoise/3-9 [003] .... {time}.637220: 1000000 {noise} 99.9 {single} 1 2 3 4 5\n")
        };
        let lines = format!("# tracer: osnoise\n{}{}", row(81, 300, 20), row(82, 100, 40));
        let mut found = Found::default();
        read(&mut lines.as_bytes(), &mut found);
        let [noise] = &found.noise[..] else { panic!("{:?}", found.noise) };
        assert_eq!((noise.cpu, noise.periods, noise.noise_ns), (3, 2, 400_000));
        assert_eq!((noise.max_noise_ns, noise.max_single_ns), (300_000, 40_000));
        assert_eq!((noise.interferences, noise.available()), ([2, 4, 6, 8, 10], Some(99.98)));
        assert_eq!((found.samples[0].count, found.samples[0].extremes_ns().1), (30, Some(40_000)));
        assert_eq!(found.problems.list().len(), 0);
    }

    #[test]
    fn no_blank_is_needed_behind_the_cpu_and_commands_may_have_brackets() {
        let lines = "# tracer: timerlat\n\
                     <idle>-0       [000] d.h1    54.029328: #1     context    irq timer_latency       932 ns\n\
                     [kworker]-7 [000]123456.029339: #1     context thread timer_latency     11700 ns\n\
                     timerlat/1-5 [001] ....... 54.029346: #1 context user-ret timer_latency 12833 ns\n\
                     osnoise/8-961 [008] d.h.  5789.857532: irq_noise: local_timer:236 start 5789.857529929 duration 1845 ns\n\
                     osnoise/2-100 [002] ....   100.000001: thread_noise:  a start b:12 start 100.000000100 duration 5000 ns\n\
                     osnoise/0-859 [000] ....    81.637220: 1000000        190  99.98100            9      18    0   1007     18       1\n\
                     CPU:2 [LOST 7 EVENTS]\n => timerlat_irq\nsomething else\n";
        let mut found = Found::default();
        read(&mut lines.as_bytes(), &mut found);
        let told: Vec<_> = found.samples.iter().map(|one| (one.thread.as_str(), one.cpu, one.timed[0])).collect();
        let timed = |end_ns, length_ns| super::super::Timed { end_ns, length_ns };
        assert_eq!(
            told,
            [
                ("IRQ-000", Some(0), timed(54_029_328_000, 932)),
                ("Thr-000", Some(0), timed(123_456_029_339_000, 11_700)),
                ("Usr-001", Some(1), timed(54_029_346_000, 12_833)),
                ("thread_noise-002", Some(2), timed(100_000_005_100, 5_000)),
                ("irq_noise-008", Some(8), timed(5_789_857_531_774, 1_845)),
            ]
        );
        let problems: Vec<_> =
            found.problems.list().iter().map(|problem| (problem.expected.as_str(), problem.count)).collect();
        assert_eq!(problems, [("all events", 1), ("a line of timerlat or osnoise", 1)]);
    }
}
