//! `kvm_stat -1` and its screen, of tracepoints or of debugfs:
//!
//! ```text
//! kvm statistics - summary
//!  Event                                         Total %Total CurAvg/s
//!  kvm_fpu                                      331506   26.6    16575
//!    HLT                                         10000    0.8      500
//!  Total                                       1114522           55725
//! ```
//! `-1` prints no head: `kvm_exit(HLT)   912300   9215`. The rows of `-d` are debugfs's counters, of which each counts something of its own: their shares mean nothing, and are left out.

use super::{Row, count};

pub(super) fn read(text: &str) -> (Vec<Row>, Option<f64>) {
    let lines = || text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let has_header = lines().any(|words| words.contains(&"%Total") && words.first() == Some(&"Event"));
    if !has_header {
        let rows: Vec<Row> = lines().filter_map(|words| batch(&words)).collect();
        let seconds = (!rows.is_empty()).then_some(1.0);
        return (rows, seconds);
    }
    (lines().filter_map(|words| row(&words)).collect(), None)
}

/// A row of `kvm_stat -1`: the name, all since the start, and what came in one second (`batch` in tools/kvm/kvm_stat/kvm_stat, Linux 6.12).
fn batch(words: &[&str]) -> Option<Row> {
    let [name, total, more] = words else { return None };
    let (total, more) = (count(total)?, count(more)?);
    let name = name.strip_prefix("kvm_exit(").and_then(|name| name.strip_suffix(')')).unwrap_or(name);
    Some(Row { name: name.to_owned(), count: total, per_second: Some(more as f64), ..Row::default() })
}

fn row(words: &[&str]) -> Option<Row> {
    let [name, total, share, rest @ ..] = words else { return None };
    // The sum has no share, and its average stands in that column.
    if *name == "Total" || rest.len() > 1 {
        return None;
    }
    let share: f64 = share.replace(',', ".").parse().ok()?;
    let per_second = rest.first().and_then(|word| count(word)).map(|average| average as f64);
    let is_tracepoint = name.starts_with("kvm_");
    Some(Row {
        name: (*name).to_owned(),
        count: count(total)?,
        count_share: is_tracepoint.then_some(share / 100.0),
        per_second,
        ..Row::default()
    })
}
