//! hwlatdetect of rt-tests 2.4, what it prints and its report, or the lines of the kernel's tracer hwlat.
//!
//! ```text
//! Max Latency: 14us                                       or `Below threshold`
//! ts: 1499801089.066141940, inner:12, outer:14            us, each the longest of a window; by CLOCK_REALTIME
//! 1408928107.0286324723\t18\t17                            the same before rt-tests 1.0
//! <...>-1729 [001] d... 678.473449: #1 inner/outer(us):   12/14    ts:1499801089.066141940 count:6
//!                                                         the same by the tracer (kernel/trace/trace_output.c), by its CPU,
//!                                                         with how often the window had such a time
//! ```
//! Only what is longer than the threshold is recorded, so these are no samples of all windows.

use super::buckets::Lengths;
use super::lines::{self, number_after, seconds_ns};
use super::{Found, SampleClock, Samples, Source};
use std::collections::BTreeMap;
use std::io::BufRead;

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let (mut cpus, mut said) = (BTreeMap::<Option<u32>, (Lengths, Samples)>::new(), Said::default());
    let mut times = 0_u64;
    lines::each(input, found, |_, line, _| match sample(line) {
        Some(sample) => {
            let thread = sample.cpu.map_or("hwlat".to_owned(), |cpu| format!("hwlat-{cpu:03}"));
            let (lengths, samples) = cpus.entry(sample.cpu).or_insert_with(|| {
                let samples = Samples { cpu: sample.cpu, ..Samples::new(Source::Hwlatdetect, thread) };
                (Lengths::default(), Samples { clock: SampleClock::Realtime, ..samples })
            });
            lengths.add(sample.length);
            samples.add_timed(sample.end_ns, sample.length.saturating_mul(samples.unit_ns));
            times = times.saturating_add(sample.times.unwrap_or(0));
        }
        None => said.hear(line),
    });
    let mut all: Vec<Samples> = cpus.into_values().map(|(lengths, samples)| lengths.of(samples)).collect();
    if !said.began {
        all.iter_mut().for_each(|samples| samples.source = Source::Hwlat);
    }
    if all.is_empty() {
        all.push(Samples { clock: SampleClock::Realtime, ..Samples::new(Source::Hwlatdetect, "hwlat") });
    }
    let listed = all.iter().fold(0_u64, |sum, samples| sum.saturating_add(samples.count));
    match said.recorded {
        // Without --watch samples are counted and not listed.
        Some(count) if listed == 0 && count > 0 => {
            // The shortest is longer than the threshold, and nobody says by how much.
            all[0].between(None, said.max);
            let from_ns = said.threshold.unwrap_or(0).saturating_mul(all[0].unit_ns);
            all[0].add_unkept(from_ns, count);
        }
        Some(count) if count != listed => {
            let text = format!("{count} samples were recorded, and {listed} are listed");
            found.damaged(0, "a line for every sample", "others", text);
            // Those that are not listed were longer than the threshold as well.
            if let Some(missing) = count.checked_sub(listed) {
                all[0].between(None, said.max);
                let from_ns = said.threshold.unwrap_or(0).saturating_mul(all[0].unit_ns);
                all[0].add_unkept(from_ns, missing);
                all[0].buckets.sort_by_key(|bucket| (bucket.from_ns, bucket.to_ns));
                all[0].mean_ns = None;
            }
        }
        Some(0) => found.nothing = Some(said.clean()),
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
    if let Some(smis) = said.smis.filter(|smis| *smis > 0) {
        found.said = Some(format!("It counted {smis} SMIs meanwhile"));
    }
    if times > listed {
        found.said = Some(format!("These windows had {times} times above the threshold"));
    }
    found.samples.extend(all);
}

#[derive(Default)]
struct Said {
    began: bool,
    seconds: Option<u64>,
    cpus: Option<String>,
    threshold: Option<u64>,
    max: Option<u64>,
    recorded: Option<u64>,
    /// System management interrupts by the processors' own count.
    smis: Option<u64>,
}

impl Said {
    fn hear(&mut self, line: &str) {
        self.began |= line.starts_with("hwlatdetect:");
        self.seconds = self.seconds.or(number_after(line, "test duration "));
        self.cpus = self.cpus.take().or_else(|| Some(line.split_once("CPU list:")?.1.trim().to_owned()));
        self.threshold = self.threshold.or(number_after(line, "Latency threshold:"));
        self.max = self.max.or(number_after(line, "Max Latency:"));
        self.smis = self.smis.or(number_after(line, "SMIs during run:"));
        self.recorded = self.recorded.or(number_after(line, "Samples recorded:"));
    }

    /// What a run without a sample says.
    fn clean(&self) -> String {
        let threshold = self.threshold.map_or(String::new(), |us| format!(" of {us} us"));
        let seconds = self.seconds.map_or(String::new(), |seconds| format!(" in {seconds} s"));
        let cpus = self.cpus.as_ref().map_or(String::new(), |cpus| format!(" on CPUs {cpus}"));
        format!("found nothing above its threshold{threshold}{seconds}{cpus}")
    }
}

struct Sample {
    cpu: Option<u32>,
    end_ns: u64,
    /// The longer of its two times.
    length: u64,
    /// How often the window had a time above the threshold.
    times: Option<u64>,
}

/// `1408928107.0286324723   18   17` of rt-tests before 1.0: the time, with nanoseconds in ten digits, and both lengths.
fn old_sample(line: &str) -> Option<Sample> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [time, inner, outer] = words[..] else { return None };
    let (seconds, ns) = time.split_once('.').filter(|(seconds, ns)| seconds.len() >= 9 && ns.len() == 10)?;
    let end_ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(ns.parse().ok()?)?;
    let length = inner.parse::<u64>().ok()?.max(outer.parse().ok()?);
    Some(Sample { cpu: None, end_ns, length, times: None })
}

fn sample(line: &str) -> Option<Sample> {
    let Some((_, rest)) = line.split_once("ts:") else { return old_sample(line) };
    let time = rest.trim_start().split([',', ' ', '\t']).next()?;
    let (inner, outer, cpu) = match line.split_once("inner/outer(us):") {
        Some((head, lengths)) => {
            let (inner, outer) = lengths.split_once('/')?;
            let cpu = head.rsplit_once('[').and_then(|(_, cpu)| cpu.split_once(']')?.0.parse().ok());
            (inner.trim().parse().ok()?, number_after(outer, "")?, cpu)
        }
        None => {
            let cpu = number_after(line, "cpu:").and_then(|cpu| u32::try_from(cpu).ok());
            (number_after(line, "inner:")?, number_after(line, "outer:")?, cpu)
        }
    };
    Some(Sample { cpu, end_ns: seconds_ns(time)?, length: inner.max(outer), times: number_after(line, "count:") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Found {
        let mut found = Found::default();
        read(&mut text.as_bytes(), &mut found);
        found
    }

    #[test]
    fn the_tracer_tells_its_cpus_and_a_clean_run_what_it_looked_at() {
        let row = |cpu, inner, count| {
            format!("<...>-9 [{cpu:03}] d... 6.473449: #1 inner/outer(us): {inner}/12 ts:15.9 count:{count}\n")
        };
        let found = of(&format!("# tracer: hwlat\n#\n{}{}", row(4, 31, 3), row(1, 9, 1)));
        let told: Vec<_> = found.samples.iter().map(|one| (one.source, one.cpu, one.extremes_ns().1)).collect();
        assert_eq!(told, [(Source::Hwlat, Some(1), Some(12_000)), (Source::Hwlat, Some(4), Some(31_000))]);
        assert_eq!(found.said.as_deref(), Some("These windows had 4 times above the threshold"));
        let head = "hwlatdetect:  test duration 60 seconds\n CPU list: 1-3\n Latency threshold: 5us\n";
        let clean = of(&format!("{head}Max Latency: Below threshold\nSamples recorded: 0\n"));
        let said = "found nothing above its threshold of 5 us in 60 s on CPUs 1-3";
        assert_eq!(clean.nothing.as_deref(), Some(said));
        assert_eq!(of(head).nothing, None, "it was cut off, so nobody knows");
        let counted = format!("{head}Max Latency: 21us\nSamples recorded: 4\n");
        for rows in ["", "1408928107.0286324723\t18\t17\n.\n1408928180.0296881126\t15\t21\n"] {
            let samples = &of(&format!("{counted}{rows}")).samples[0];
            assert_eq!((samples.count, samples.extremes_ns()), (4, (None, Some(21_000))), "{rows}");
        }
    }
}
