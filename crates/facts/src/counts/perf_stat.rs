//! `perf stat -e 'kvm:*'`:
//!
//! ```text
//!  Performance counter stats for 'system wide':
//!            331,503      kvm:kvm_exit                                          [100.00%]
//!       10.001234567 seconds time elapsed
//! ```

use super::{Row, count};

pub(super) fn read(text: &str) -> (Vec<Row>, Option<f64>) {
    let lines = || text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let seconds = lines().find_map(|words| match words.as_slice() {
        [seconds, "seconds", "time", "elapsed", ..] => seconds.replace(',', ".").parse::<f64>().ok(),
        _ => None,
    });
    let rate = |count: u64| seconds.filter(|seconds| *seconds > 0.0).map(|seconds| count as f64 / seconds);
    let row = |words: Vec<&str>| {
        // Some locales put a blank between thousands.
        let event = words.iter().position(|word| word.starts_with("kvm:"))?;
        let name = words[event].strip_prefix("kvm:")?;
        let count = count(&words[..event].join(" "))?;
        Some(Row { name: name.to_owned(), count, per_second: rate(count), ..Row::default() })
    };
    (lines().filter_map(row).collect(), seconds)
}
