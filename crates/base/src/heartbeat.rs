//! What somebody outside saw of the heartbeat of a guest that was moved: `<machine>/heartbeat/<name>.json`.

use serde::{Deserialize, Serialize};

/// The schema this version reads and writes.
pub const SCHEMA: &str = "kvmscope-heartbeat/1";

/// It is some 200 bytes.
const MOST_BYTES: u64 = 1 << 16;

/// One move. Times are CLOCK_REALTIME of the one machine that both memories are on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// [`SCHEMA`].
    pub schema: String,
    /// When the last beat on the source was seen.
    pub last_on_source_ns: u64,
    /// When the first beat on the target was seen: a count above the last one of the source.
    pub first_on_target_ns: u64,
    /// The longest time between two looks that mattered, from the one before the last beat on the source on.
    pub poller_max_gap_ns: u64,
    /// How often the guest beats, at most.
    pub period_ns: u64,
}

crate::json_line::read_and_write!(Heartbeat);

impl Heartbeat {
    /// How long the guest was dark, as it was seen.
    pub fn dark_ns(&self) -> Option<u64> {
        self.first_on_target_ns.checked_sub(self.last_on_source_ns)
    }

    /// Either beat was seen up to a gap late, and the guest may have stood still for up to a period before the next one.
    pub fn error_ns(&self) -> u64 {
        self.poller_max_gap_ns.saturating_add(self.period_ns)
    }
}
