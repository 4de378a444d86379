//! What cyclictest prints: `-h` a histogram, `-v` and `-F` every sample, else the extremes of each thread.
//!
//! ```text
//! 000017 000003  000028 [000031]                     length, count of each thread, with -H their sum
//! # Total: 000001998 000001988                       without what lies behind the histogram's end:
//! # Histogram Overflows: 00000 00008                 it stands here alone
//!        0:      12:      77                         thread, cycle, length
//! T: 0 (17159) P: 0 I:1000 C:   1000 Min:     68 Act:   77 Avg:   76 Max:      93
//! ```
//! With `-b` it names the thread that broke off, and its sample: `# Break thread: 2219`, `# Break value: 22`.
//! Lengths are whole us, cut off; with `-N` they are ns, and nothing but the width of `Act:` says so: 8 letters, not 5
//! (print_stat of rt-tests 2.4).

use super::buckets::Lengths;
use super::lines::{self, number_after, numbers};
use super::{Breach, Found, Samples, Source};
use base::MOST_CPUS;
use base::number::thousands;
use std::collections::BTreeMap;
use std::io::BufRead;

/// What the lines have told so far.
#[derive(Default)]
struct Told {
    /// Counts of each column, by length.
    rows: BTreeMap<u64, Vec<u64>>,
    totals: Vec<u64>,
    min: Vec<u64>,
    mean: Vec<u64>,
    max: Vec<u64>,
    overflows: Option<Vec<u64>>,
    /// Lines that list overflows of a thread.
    listed: usize,
    /// In which cycles those were, in words.
    cycles: Vec<String>,
    /// Samples of `-v`, by thread, and the cycle that was printed last.
    each: BTreeMap<u32, (Lengths, u64)>,
    /// Cycles of `-v` whose sample is not in the text.
    missing: u64,
    /// The last line of each thread, by its number.
    summaries: BTreeMap<u32, Summary>,
    /// With `-N`.
    is_ns: bool,
    /// Thread ids of all threads, which it prints with `-b`.
    tids: Vec<u64>,
    /// The thread whose sample was over the limit of `-b`, and that sample.
    break_thread: Option<u64>,
    break_value: Option<u64>,
}

/// How wide `Act:` is in ns.
const NS_WIDTH: usize = 8;

/// How wide the number is that a text begins with, with the blanks before it.
fn width(text: &str) -> usize {
    let digits = text.trim_start_matches(' ');
    text.len() - digits.trim_start_matches(|letter: char| letter.is_ascii_digit()).len()
}

#[derive(Clone, Copy)]
struct Summary {
    tid: Option<i32>,
    cycles: u64,
    min: u64,
    mean: u64,
    max: u64,
}

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let mut told = Told::default();
    lines::each(input, found, |offset, line, found| {
        if !told.hear(line.trim()) {
            let text = "some lines are not cyclictest's and were ignored";
            found.damaged(offset, "a line of cyclictest", format!("{} other bytes", line.len()), text);
        }
    });
    told.finish(found);
}

impl Told {
    /// Takes in a line; false if it is none of cyclictest's.
    fn hear(&mut self, line: &str) -> bool {
        let head = |name: &str| line.strip_prefix(name).map(numbers);
        if let Some(totals) = head("# Total:") {
            self.totals = totals;
        } else if let Some(min) = head("# Min Latencies:") {
            self.min = min;
        } else if let Some(mean) = head("# Avg Latencies:") {
            self.mean = mean;
        } else if let Some(max) = head("# Max Latencies:") {
            self.max = max;
        } else if let Some(overflows) = head("# Histogram Overflows:") {
            self.overflows = Some(overflows);
        } else if let Some(tids) = head("# Thread Ids:") {
            self.tids = tids;
        } else if let Some(thread) = head("# Break thread:") {
            self.break_thread = thread.first().copied();
        } else if let Some(value) = head("# Break value:") {
            self.break_value = value.first().copied();
        } else if let Some(thread) = line.strip_prefix("# Thread ") {
            self.listed += 1;
            self.cycles
                .extend(thread.split_once(':').and_then(|(thread, cycles)| overflowed(thread, &numbers(cycles))));
        } else if line.starts_with("T:") {
            return self.summary(line).is_some();
        } else if line.contains(':') && line.as_bytes().first().is_some_and(u8::is_ascii_digit) {
            return self.sample(line).is_some();
        } else if line.as_bytes().first().is_some_and(u8::is_ascii_digit) {
            let mut row = numbers(line);
            if row.len() < 2 || row.len() > MOST_CPUS as usize + 2 || row.len() != line.split_whitespace().count() {
                return false;
            }
            let length = row.remove(0);
            self.rows.insert(length, row);
        } else {
            let known = ["", "#", "Max CPUs", "Online CPUs", "Thread ", "policy:", "WARN", "INFO"];
            return line.is_empty() || known.iter().skip(1).any(|begin| line.starts_with(begin));
        }
        true
    }

    /// `T: 0 (17159) P: 0 I:1000 C:   1000 Min:     68 Act:   77 Avg:   76 Max:      93`; it is printed over and over.
    fn summary(&mut self, line: &str) -> Option<()> {
        let thread = u32::try_from(number_after(line, "T:")?).ok()?;
        let tid = number_after(line, "(").and_then(|tid| i32::try_from(tid).ok());
        self.is_ns |= line.split_once("Act:").is_some_and(|(_, rest)| width(rest) >= NS_WIDTH);
        let [cycles, min, mean, max] = ["C:", "Min:", "Avg:", "Max:"].map(|name| number_after(line, name));
        let summary = Summary { tid, cycles: cycles?, min: min?, mean: mean?, max: max? };
        self.summaries.insert(thread, summary);
        Some(())
    }

    /// `0:      12:      77`.
    fn sample(&mut self, line: &str) -> Option<()> {
        let mut fields = line.split(':').map(|field| field.trim().parse::<u64>().ok());
        let (thread, cycle, length) = (fields.next()??, fields.next()??, fields.next()??);
        if fields.next().is_some() {
            return None;
        }
        let (lengths, next) = self.each.entry(u32::try_from(thread).ok()?).or_default();
        self.missing = self.missing.saturating_add(cycle.saturating_sub(*next));
        *next = cycle.saturating_add(1);
        lengths.add(length);
        Some(())
    }

    /// The thread id of a thread, by its number.
    fn tid(&self, thread: u32) -> Option<i32> {
        let listed = || self.tids.get(thread as usize).and_then(|tid| i32::try_from(*tid).ok());
        self.summaries.get(&thread).and_then(|summary| summary.tid).or_else(listed)
    }

    /// The sample after which it broke off.
    fn breach(&self) -> Option<Breach> {
        Some(Breach {
            tid: i32::try_from(self.break_thread?).ok()?,
            length_ns: self.break_value?.saturating_mul(self.samples(None, String::new()).unit_ns),
        })
    }

    /// Samples of a thread, in the unit of this text.
    fn samples(&self, tid: Option<i32>, thread: String) -> Samples {
        let samples = Samples { tid, ..Samples::new(Source::Cyclictest, thread) };
        if self.is_ns { Samples { unit_ns: 1, ..samples } } else { samples }
    }

    fn finish(mut self, found: &mut Found) {
        found.breach = self.breach();
        if !self.rows.is_empty() {
            return self.histogram(found);
        }
        if self.missing > 0 {
            let text = format!("{} cycles are missing between those that were printed", self.missing);
            found.damaged(0, "a line for every cycle", "gaps", text);
        }
        let is_bare = self.each.is_empty() && self.summaries.is_empty();
        for (thread, (lengths, _)) in std::mem::take(&mut self.each) {
            let tid = self.tid(thread);
            self.summaries.remove(&thread);
            found.samples.push(lengths.of(self.samples(tid, thread.to_string())));
        }
        for (thread, summary) in &self.summaries {
            let mut samples = self.samples(summary.tid, thread.to_string());
            if summary.cycles > 0 {
                samples.between(Some(summary.min), Some(summary.max));
                samples.mean_ns = Some(summary.mean as f64 * samples.unit_ns as f64);
                samples.only_extremes(summary.cycles);
            }
            found.samples.push(samples);
        }
        if is_bare {
            self.last_lines(found);
        }
    }

    /// The lines behind a histogram alone, as people post them.
    fn last_lines(&self, found: &mut Found) {
        let threads = [&self.totals, &self.min, &self.mean, &self.max].into_iter().map(Vec::len).max().unwrap_or(0);
        for thread in 0..threads {
            let of = |list: &[u64]| list.get(thread).copied();
            let number = u32::try_from(thread).ok();
            let mut samples = self.samples(number.and_then(|number| self.tid(number)), thread.to_string());
            samples.between(of(&self.min), of(&self.max));
            samples.mean_ns = of(&self.mean).map(|mean| mean as f64 * samples.unit_ns as f64);
            samples.overflow = self.overflows.as_ref().and_then(|list| of(list)).unwrap_or(0);
            samples.only_extremes(of(&self.totals).map_or(0, |total| total.saturating_add(samples.overflow)));
            found.samples.push(samples);
        }
        let text = match (threads, self.totals.is_empty()) {
            (0, _) => "no line has a latency: neither a row of a thread or of the histogram, nor the lines behind one",
            (_, true) => "the text tells the extremes alone, and not how many samples there were",
            (_, false) => return,
        };
        found.remark("rows of a histogram", "the lines behind it", text);
    }

    fn histogram(self, found: &mut Found) {
        let columns = self.rows.values().map(Vec::len).max().unwrap_or(0);
        // With -H the last column is the sum of the others; nothing but the minima and the lists of overflows is without it.
        let threads = if self.min.is_empty() { self.listed } else { self.min.len() };
        let threads = if threads == 0 { columns } else { threads.min(columns) };
        let end = self.rows.last_key_value().map_or(0, |(length, _)| length.saturating_add(1));
        for thread in 0..threads {
            let of = |list: &[u64]| list.get(thread).copied();
            let number = u32::try_from(thread).ok();
            let tid = number.and_then(|number| self.tid(number));
            let mut samples = self.samples(tid, thread.to_string());
            let counts = || self.rows.iter().filter_map(|(length, row)| Some((*length, *row.get(thread)?)));
            let met = || counts().filter(|(_, count)| *count > 0).map(|(length, _)| length);
            let overflow = self.overflows.as_ref().and_then(|list| of(list));
            // Without the lines behind the histogram its own ends are all that is known.
            samples.between(of(&self.min).or(met().next()), of(&self.max).or(met().next_back()));
            counts().for_each(|(length, count)| samples.add(length, count));
            samples.overflow = overflow.unwrap_or(0);
            samples.add_unkept(end.saturating_mul(samples.unit_ns), samples.overflow);
            samples.mean_ns = match samples.overflow {
                // The printed mean is a whole number; where every sample is there, theirs is exact.
                0 if samples.count > 0 => {
                    let sum: u128 = counts().map(|(length, count)| u128::from(length) * u128::from(count)).sum();
                    Some(sum as f64 / samples.count as f64 * samples.unit_ns as f64)
                }
                0 => None,
                _ => of(&self.mean).map(|mean| mean as f64 * samples.unit_ns as f64),
            };
            if of(&self.totals).is_some_and(|total| total.saturating_add(samples.overflow) != samples.count) {
                let text = format!("thread {thread}: the histogram does not have as many samples as `# Total` says");
                found.damaged(0, "rows that sum to the total", "another sum", text);
            }
            if samples.count == 0 {
                samples.between(None, None);
            }
            found.samples.push(samples);
        }
        found.said = (!self.cycles.is_empty()).then(|| self.cycles.join("; "));
        if self.overflows.is_none() {
            let text = "the lines behind the histogram are missing: samples behind its end are not counted, and the maximum is that \
                        of the histogram";
            found.damaged(0, "a line `# Histogram Overflows`", "none", text);
        }
    }
}

/// In which cycles a thread had samples behind the histogram's end, and how regularly.
fn overflowed(thread: &str, cycles: &[u64]) -> Option<String> {
    let (first, last) = (cycles.first()?, cycles.last()?);
    let gaps = || cycles.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let every = match (gaps().min(), gaps().max()) {
        (Some(least), Some(most)) if least == most => format!(", {} apart", thousands(least)),
        (Some(least), Some(most)) => format!(", {} to {} apart", thousands(least), thousands(most)),
        _ => return Some(format!("thread {thread} was behind the histogram's end in cycle {}", thousands(*first))),
    };
    Some(format!(
        "thread {thread} was behind the histogram's end in {} cycles, from {} to {}{every}",
        cycles.len(),
        thousands(*first),
        thousands(*last)
    ))
}
