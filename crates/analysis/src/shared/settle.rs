//! Which level is one that only the end of the trace can tell? (docs/flow.md, "Backfill")

use super::machine::{Seen, Thread};
use super::state::Lv;

/// What `level`, as it was known while the trace was read, turned out to be for `thread`.
pub fn settled(level: Lv, thread: &Thread, seen: &Seen) -> Lv {
    let never_nested = thread.first_nested_sign.is_none();
    let blind = !seen.nested_vmexit && !seen.inject;
    match level {
        Lv::Early | Lv::Lost if never_nested => Lv::L1,
        // Entries and exits alone: whoever guesses from them is wrong in two of three exits.
        _ if !never_nested && blind => Lv::Lost,
        Lv::Asked if seen.nested_vmexit => Lv::L1,
        Lv::Asked => Lv::L2,
        Lv::Early if seen.nested_vmexit || thread.first_nested_sign == Some(true) => Lv::L1,
        known => known,
    }
}
