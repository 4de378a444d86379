//! `rtla timerlat hist` and `rtla osnoise hist` (tools/tracing/rtla/src/timerlat_hist.c and osnoise_hist.c, Linux 6.1 to 6.17).
//!
//! ```text
//! # Time unit is microseconds (us)
//! Index   IRQ-000   Thr-000   Usr-000   IRQ-001 ..      columns of the CPUs that had samples, whichever there are
//! 0          1200        20 ..                          rows step by the size of a bucket; empty ones are left out
//! over:         0         3
//! count: min: avg: max:                                 `-` where a column is empty
//! ALL:                                                  sums over the columns: not read
//! ```

use super::lines::{self, numbers};
use super::{Found, Samples, Source};
use std::collections::BTreeMap;
use std::io::BufRead;

#[derive(Default)]
struct Told {
    source: Option<Source>,
    in_ns: bool,
    columns: Vec<String>,
    rows: BTreeMap<u64, Vec<u64>>,
    summary: BTreeMap<&'static str, Vec<Option<f64>>>,
    /// The sums over all columns have begun.
    over: bool,
}

const SUMMARY: [&str; 5] = ["over", "count", "min", "avg", "max"];

pub(super) fn read(input: &mut dyn BufRead, found: &mut Found) {
    let mut told = Told::default();
    lines::each(input, found, |offset, line, found| {
        if !told.hear(line.trim()) {
            let text = "some lines are not of rtla's histogram and were ignored";
            found.damaged(offset, "a row of the histogram", format!("{} other bytes", line.len()), text);
        }
    });
    told.finish(found);
}

impl Told {
    fn hear(&mut self, line: &str) -> bool {
        if let Some(said) = line.strip_prefix("# ") {
            if let Some(name) = said.strip_prefix("RTLA ") {
                self.source = Some(if name.starts_with("osnoise") { Source::Osnoise } else { Source::Timerlat });
            }
            self.in_ns |= said.starts_with("Time unit is nanoseconds");
            return true;
        }
        if let Some(columns) = line.strip_prefix("Index") {
            self.columns = columns.split_whitespace().map(str::to_owned).collect();
            return true;
        }
        let ends = line.starts_with("ALL:")
            || line.starts_with("rtla ")
            || line.starts_with("saving ")
            || line.starts_with('#');
        self.over |= ends;
        if line.is_empty() || self.over {
            return true;
        }
        if let Some((name, values)) = line.split_once(':') {
            let Some(name) = SUMMARY.into_iter().find(|known| *known == name) else { return false };
            self.summary.insert(name, values.split_whitespace().map(|value| value.parse().ok()).collect());
            return true;
        }
        let mut row = numbers(line);
        // A row that was cut off has fewer columns.
        let is_whole = row.len() == line.split_whitespace().count() && row.len() == self.columns.len() + 1;
        if is_whole && row.len() > 1 {
            let index = row.remove(0);
            self.rows.insert(index, row);
        }
        is_whole && !self.columns.is_empty()
    }

    fn finish(self, found: &mut Found) {
        let source = self.source.unwrap_or(Source::Timerlat);
        let unit_ns = if self.in_ns { 1 } else { 1_000 };
        if self.columns.is_empty() {
            let text = "the histogram has no line that names its columns (--no-index), so its rows have no lengths; nothing is read";
            return found.damaged(0, "a line that begins with Index", "none", text);
        }
        // Where rows are missing this may be several buckets: then more is left open than has to be.
        let step = self.rows.keys().fold(0, |step, index| divisor(step, *index)).max(1);
        let behind = self.rows.last_key_value().map_or(0, |(index, _)| index.saturating_add(step));
        for (place, column) in self.columns.iter().enumerate() {
            let summary = |name: &str| self.summary.get(name).and_then(|row| row.get(place).copied().flatten());
            let whole = |name: &str| summary(name).filter(|value| *value >= 0.0).map(|value| value as u64);
            let mut samples = Samples { unit_ns, ..Samples::new(source, column) };
            samples.cpu = column.rsplit_once('-').and_then(|(_, cpu)| cpu.parse().ok());
            samples.between(whole("min"), whole("max"));
            // Early versions divide whole numbers, so that 0 is any mean below 1, and one outside of the extremes is none.
            let fits = |mean: &f64| *mean > 0.0 && summary("min").is_none_or(|min| *mean >= min);
            samples.mean_ns = summary("avg").filter(fits).map(|mean| mean * unit_ns as f64);
            for (index, row) in &self.rows {
                add(&mut samples, *index, step, row.get(place).copied().unwrap_or(0));
            }
            samples.overflow = whole("over").unwrap_or(0);
            samples.add_unkept(behind.saturating_mul(unit_ns), samples.overflow);
            if whole("count").is_some_and(|count| count != samples.count) {
                let text = format!("{column}: rows and overflows do not sum to the count");
                found.damaged(0, "rows that sum to the count", "another sum", text);
            }
            found.samples.push(samples);
        }
        if !self.summary.contains_key("over") || !self.summary.contains_key("max") {
            let text = "the summary below the histogram is missing: overflows and maxima are not known";
            found.damaged(0, "lines `over:` and `max:`", "none", text);
        }
    }
}

/// Samples of a bucket of `step` units, which is cut at the extremes.
fn add(samples: &mut Samples, index: u64, step: u64, count: u64) {
    let first = samples.interval(index).from_ns;
    let last = samples.interval(index.saturating_add(step - 1)).to_ns;
    let low = samples.min.map_or(first, |min| min.from_ns.clamp(first, last));
    let high = samples.max.map_or(last, |max| max.to_ns.clamp(low, last));
    samples.add_between(low, high, count);
}

fn divisor(one: u64, other: u64) -> u64 {
    let (mut one, mut other) = (one, other);
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}
