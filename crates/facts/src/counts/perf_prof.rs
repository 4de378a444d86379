//! `perf-prof kvm-exit` (github.com/OpenCloudOS/perf-prof, docs/kvm-exit.md), whose columns differ by version:
//!
//! ```text
//! kvm-exit latency
//! exit_reason             calls        total(us)   min(us)   avg(us)      max(us)  %gsys
//! -------------------- -------- ---------------- --------- --------- ------------ ------
//! HLT                     20747     53004499.016     0.734  2554.803   199989.423 100.00
//! ```
//! It prints a table each second, or for each thread (`--perins`): what is of one reason is added up. Shares and means are ours, from
//! its sums.

use super::{Row, count};
use std::collections::BTreeMap;

/// Calls of one reason, and their times in us: all together, the shortest and the longest.
type Sums = (u64, f64, f64, f64);

pub(super) fn read(text: &str) -> (Vec<Row>, Option<f64>) {
    let (mut head, mut reasons): (Vec<&str>, BTreeMap<&str, Sums>) = (Vec::new(), BTreeMap::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.contains(&"exit_reason") && words.contains(&"calls") {
            head = words;
            continue;
        }
        // A thread's name before the reason may have blanks, and no number behind it has.
        let of = |name: &str| {
            let from_end = head.len() - head.iter().position(|column| *column == name)?;
            words.get(words.len().checked_sub(from_end)?).copied()
        };
        let us = |name: &str| of(name)?.parse::<f64>().ok().filter(|us| us.is_finite() && *us >= 0.0);
        let row = || Some((of("exit_reason")?, count(of("calls")?)?, us("total(us)")?, us("min(us)")?, us("max(us)")?));
        let Some((reason, calls, total, min, max)) = row() else { continue };
        let known = reasons.entry(reason).or_insert((0, 0.0, min, max));
        *known = (known.0.saturating_add(calls), known.1 + total, known.2.min(min), known.3.max(max));
    }
    let calls = reasons.values().fold(0_u64, |sum, (calls, ..)| sum.saturating_add(*calls)) as f64;
    let time: f64 = reasons.values().map(|(_, total, ..)| total).sum();
    let row = |(name, (count, total, min, max)): (&str, Sums)| Row {
        name: name.to_owned(),
        count,
        count_share: (calls > 0.0).then(|| count as f64 / calls),
        time_share: (time > 0.0).then(|| total / time),
        min_ns: Some(min * 1e3),
        mean_ns: (count > 0).then(|| total * 1e3 / count as f64),
        max_ns: Some(max * 1e3),
        ..Row::default()
    };
    (reasons.into_iter().map(row).collect(), None)
}
