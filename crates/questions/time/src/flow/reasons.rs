//! Reasons of exits as sentences name them.

use base::number::thousands;
use facts::ledger::measure::{Measures, ReasonTotal};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use walk::events::details::Detail;

/// The three most frequent reasons, with how often.
pub(super) fn most_frequent(measure: &Measures<'_>) -> Vec<String> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for total in &measure.reasons {
        *counts.entry(named(total)).or_default() += total.count;
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts.into_iter().take(3).map(|(name, count)| format!("{} {name}", thousands(count))).collect()
}

/// A reason, with the exception behind it where all its exits came from one.
fn named(total: &ReasonTotal) -> String {
    match total.details.as_slice() {
        [(detail @ (Detail::Exception(_) | Detail::Nmi), count, _)] if *count == total.count => {
            format!("{} ({})", total.reason.name(), detail.text())
        }
        _ => total.reason.name(),
    }
}
