//! `perf kvm stat report`:
//!
//! ```text
//!              VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         Avg time
//!                  HLT      40833    95.85%    99.69%      1.16us    7968.39us     29.41us ( +-   1.54% )
//! Total Samples:42600, Total events handled time:1204521.56us.
//! ```

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
    while at + 7 <= words.len() {
        match row(&words[at..at + 7]) {
            Some(row) => {
                rows.push(row);
                at += 7;
            }
            None => at += 1,
        }
    }
    (rows, None)
}

fn row(words: &[&str]) -> Option<Row> {
    let [name, samples, count_share, time_share, min, max, mean] = words else { return None };
    let share = |word: &str| with_unit(word, "%").map(|percent| (percent / 100.0).min(1.0));
    let ns = |word: &str| with_unit(word, "us").map(|us| us * 1_000.0);
    Some(Row {
        name: (*name).to_owned(),
        count: count(samples)?,
        count_share: Some(share(count_share)?),
        time_share: Some(share(time_share)?),
        min_ns: Some(ns(min)?),
        max_ns: Some(ns(max)?),
        mean_ns: Some(ns(mean)?),
        ..Row::default()
    })
}
