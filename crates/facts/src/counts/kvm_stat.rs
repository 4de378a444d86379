//! `kvm_stat -1` and its screen, of tracepoints or of debugfs:
//!
//! ```text
//! kvm statistics - summary
//!  Event                                         Total %Total CurAvg/s
//!  kvm_fpu                                      331506   26.6    16575
//!    HLT                                         10000    0.8      500
//!  Total                                       1114522           55725
//! ```
//! A row inside of another (`HLT`, or `kvm_exit(HLT)`) has its share of that one, never of all (`_refresh_body` in
//! tools/kvm/kvm_stat/kvm_stat, Linux 6.12).
//!
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
    let (mut rows, mut outer): (Vec<Row>, Vec<(String, u64)>) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let words = line.split_whitespace().collect::<Vec<_>>();
        let Some(row) = row(&words, &outer) else { continue };
        if row.share_of.is_none() {
            outer.push((row.name.clone(), row.count));
        }
        rows.push(row);
    }
    (rows, None)
}

/// A row of `kvm_stat -1`: the name, all since the start, and what came in one second (`batch` in tools/kvm/kvm_stat/kvm_stat, Linux 6.12).
fn batch(words: &[&str]) -> Option<Row> {
    let [name, total, more] = words else { return None };
    let (total, more) = (count(total)?, count(more)?);
    let name = name.strip_prefix("kvm_exit(").and_then(|name| name.strip_suffix(')')).unwrap_or(name);
    Some(Row { name: name.to_owned(), count: total, per_second: Some(more as f64), ..Row::default() })
}

/// A row of the screen; `outer` has those before it that are no part of another.
fn row(words: &[&str], outer: &[(String, u64)]) -> Option<Row> {
    let [name, total, rest @ ..] = words else { return None };
    // The sum has no share, and its average stands in that column.
    if *name == "Total" || rest.len() > 2 {
        return None;
    }
    let total = count(total)?;
    // Shares have a point, averages none; either may be missing.
    let is_share = |word: &&&str| word.contains(['.', ',']);
    let share = rest.first().filter(is_share).and_then(|share| share.replace(',', ".").parse::<f64>().ok());
    let average = rest.last().filter(|word| !is_share(word));
    if rest.is_empty() || share.is_none() && average.is_none() {
        return None;
    }
    let is_tracepoint = name.starts_with("kvm_");
    let within = match name.split_once('(') {
        Some((within, _)) => Some(within),
        None if !is_tracepoint => outer.last().map(|(name, _)| name.as_str()).filter(|name| name.starts_with("kvm_")),
        None => None,
    };
    let of_outer = outer.iter().find(|(name, all)| within == Some(name.as_str()) && *all >= total);
    let share = match within {
        Some(_) => of_outer.map(|(_, all)| total as f64 / *all as f64),
        None => share.map(|share| share / 100.0).filter(|share| is_tracepoint && *share <= 1.0),
    };
    Some(Row {
        name: (*name).to_owned(),
        count: total,
        count_share: share,
        share_of: within.map(str::to_owned),
        per_second: average.and_then(|word| count(word)).map(|average| average as f64),
        ..Row::default()
    })
}
