//! Counts a second, of what is long enough for them.

use facts::ledger::measure::Measures;

/// A shorter excerpt has counts, and no rates that anybody would multiply by an hour: our own limit.
pub(super) const SHORTEST_NS: u64 = 10_000_000;

/// A count a second; `None` of what is too short for that.
pub(super) fn per_second(measure: &Measures<'_>, count: u64) -> Option<f64> {
    let length_ns = measure.part.window.length_ns();
    (length_ns >= SHORTEST_NS).then(|| count as f64 * 1e9 / length_ns as f64)
}
