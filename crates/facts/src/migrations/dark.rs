//! How long was the guest dark, by each who can tell, and how far off may that be?

use super::{CLOCKS_NS, Clocks, Migration};
use base::number::duration;

/// QEMU counts whole milliseconds.
pub const REPORTED_ERROR_NS: u64 = 1_000_000;
/// Its events and traces have microseconds, two of them.
pub(crate) const EVENTS_ERROR_NS: u64 = 2_000;
/// A poller that was away for more than this of what it says invents dark time.
const MOST_GAP_SHARE: f64 = 0.1;

impl Migration {
    /// How far a time may be off that begins on the source and ends on the target.
    pub fn across_ns(&self) -> u64 {
        EVENTS_ERROR_NS.saturating_add(match self.clocks {
            Clocks::One => 0,
            Clocks::Within(ns) => ns,
            Clocks::Assumed => CLOCKS_NS,
        })
    }

    /// From STOP to RESUME.
    pub fn by_events(&self) -> Option<u64> {
        self.resumed_ns?.checked_sub(self.stopped_ns?)
    }

    /// From the moment at which the source began to stop the guest until the target let it run.
    pub fn by_checkpoints(&self) -> Option<u64> {
        let began_ns = self.source.as_ref()?.passed("src-downtime-start")?;
        self.target.as_ref()?.started()?.checked_sub(began_ns)
    }

    /// By the guest's heartbeat, seen in the memory of both sides; or why that is nothing to go by.
    pub fn by_heartbeat(&self) -> Option<Result<u64, String>> {
        let heartbeat = self.heartbeat.as_ref()?;
        let dark_ns = heartbeat.dark_ns()?;
        let gap_ns = heartbeat.poller_max_gap_ns;
        let is_rejected = gap_ns as f64 > dark_ns as f64 * MOST_GAP_SHARE;
        let why =
            || format!("rejected: the poller was away for {} of {}", duration(gap_ns as f64), duration(dark_ns as f64));
        Some(if is_rejected { Err(why()) } else { Ok(dark_ns) })
    }
}
