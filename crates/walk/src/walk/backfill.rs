//! Which level is one that only the end of the trace can tell? (docs/read/flow.md, "Backfill")

use crate::state::TracedLevel;
use crate::thread::{Seen, Thread};

/// What `level`, as it was known while the trace was read, turned out to be for `thread`.
pub fn backfilled(level: TracedLevel, thread: &Thread, seen: &Seen) -> TracedLevel {
    let never_nested = thread.first_nested_sign.is_none();
    let blind = !seen.nested_vmexit && !seen.inject;
    match level {
        TracedLevel::Early | TracedLevel::Lost if never_nested => TracedLevel::L1,
        // Entries and exits alone: whoever guesses from them is wrong in two of three exits.
        _ if !never_nested && blind => TracedLevel::Lost,
        TracedLevel::Asked if seen.nested_vmexit => TracedLevel::L1,
        TracedLevel::Asked => TracedLevel::L2,
        TracedLevel::Early if seen.nested_vmexit || thread.first_nested_sign == Some(true) => TracedLevel::L1,
        known => known,
    }
}
