//! `perf kvm stat report`:
//!
//! ```text
//!              VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         Avg time
//!                  HLT      40833    95.85%    99.69%      1.16us    7968.39us     29.41us ( +-   1.54% )
//! Total Samples:42600, Total events handled time:1204521.56us.
//! ```
//! Since Linux 6.4 times are in ns, the mean behind the others, below other heads:
//!
//! ```text
//! Event name   Samples   Sample%    Time (ns)     Time%   Max Time (ns)   Min Time (ns)  Mean Time (ns)
//! STORE_GUEST_PAGE_FAULT     26968     54.00%    2003031800    40.00%        3361400           27600           74274
//! ```
//! Early versions have the average time alone (tools/perf/builtin-kvm.c, `print_result`, Linux 3.12).

use super::{Row, Total, count, with_unit};

/// `Total Samples:42600, Total events handled time:1204521.56us.`
pub(super) fn total(text: &str) -> Option<Total> {
    let (_, behind) = text.split_once("Total Samples:")?;
    let samples = behind.split(',').next()?;
    let (_, time) = behind.split_once("handled time:")?;
    let us = with_unit(time.split_whitespace().next()?.trim_end_matches('.'), "us")?;
    Some(Total { count: count(samples.trim())?, ns: us * 1_000.0 })
}

pub(super) fn read(text: &str) -> (Vec<Row>, Option<f64>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (mut rows, mut at) = (Vec::new(), 0);
    while at < words.len() {
        match row(&words[at..]) {
            Some((mut row, taken)) => {
                // `unknown kvm exit code:131072 on VMX`, above the row.
                let code = || words[..at].iter().rev().take(3).find_map(|word| word.strip_prefix("code:"));
                if let Some(code) = code().filter(|_| row.name == UNKNOWN) {
                    row.name = format!("{UNKNOWN}:{code}");
                }
                rows.push(row);
                at += taken;
            }
            None => at += 1,
        }
    }
    (rows, None)
}

/// How perf calls exits whose code it does not know.
const UNKNOWN: &str = "UNKNOWN";

/// A row, and how many words it has.
fn row(words: &[&str]) -> Option<(Row, usize)> {
    let [name, samples, count_share, time_share, times @ ..] = words else { return None };
    let share = |word: &str| with_unit(word, "%").map(|percent| (percent / 100.0).min(1.0));
    // Time is the sum of all, and stands before its share.
    if let (Some(_), [time_share, max, min, mean, ..]) = (count(time_share), times)
        && let (Some(time_share), Some(max), Some(min), Some(mean)) =
            (share(time_share), count(max), count(min), count(mean))
    {
        let row = Row {
            name: (*name).to_owned(),
            count: count(samples)?,
            count_share: Some(share(count_share)?),
            time_share: Some(time_share),
            min_ns: Some(min as f64),
            max_ns: Some(max as f64),
            mean_ns: Some(mean as f64),
            ..Row::default()
        };
        return Some((row, 8));
    }
    let times: Vec<f64> = times.iter().take(3).map_while(|word| with_unit(word, "us")).map(|us| us * 1_000.0).collect();
    let (min_ns, max_ns, mean_ns) = match times[..] {
        [min, max, mean] => (Some(min), Some(max), mean),
        [mean] => (None, None, mean),
        _ => return None,
    };
    let row = Row {
        name: (*name).to_owned(),
        count: count(samples)?,
        count_share: Some(share(count_share)?),
        time_share: Some(share(time_share)?),
        min_ns,
        max_ns,
        mean_ns: Some(mean_ns),
        ..Row::default()
    };
    Some((row, 4 + times.len()))
}
