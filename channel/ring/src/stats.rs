//! What one end of a channel counts.

use hdrhistogram::Histogram;

use crate::fault::PeerFault;
use crate::memory::Ticks;

/// A window open for longer was not used all the while: the thread was switched out, or interrupted, inside.
pub const INTERRUPTED_NS: u64 = 5_000;
/// A minute; no window stays open longer without somebody stopping the process.
const LONGEST_NS: u64 = 60_000_000_000;

/// Counts since this end was made.
#[derive(Clone, Debug)]
pub struct ChannelStats {
    /// Frames sent or received.
    pub packets: u64,
    /// In them.
    pub bytes: u64,
    /// Windows in which at least one frame moved.
    pub batches: u64,
    /// Attempts to send that found no room for all frames.
    pub full: u64,
    /// Attempts to receive that found none.
    pub empty: u64,
    /// By the order of [`PeerFault::KINDS`].
    pub faults: [u64; 5],
    /// Frames of older generations that were ignored.
    pub outdated: u64,
    /// Frames that were dropped, because the receiver's flow table said that the sender's was out of date.
    pub undelivered: u64,
    /// How often the peer had written our own index, of the times that it was looked at: one in eight.
    pub overwritten: u64,
    /// Kicks that this end sent.
    pub kicks: u64,
    /// Kicks that the peer wanted sooner than it may.
    pub kicks_held: u64,
    /// How long each window was open; empty where windows are not timed, or there are none.
    pub window_open_ns: Histogram<u64>,
    /// The sum of these, exactly.
    pub window_open_sum_ns: u64,
    /// Windows open for more than [`INTERRUPTED_NS`].
    pub interrupted: u64,
}

impl Default for ChannelStats {
    fn default() -> ChannelStats {
        ChannelStats {
            packets: 0,
            bytes: 0,
            batches: 0,
            full: 0,
            empty: 0,
            faults: [0; 5],
            outdated: 0,
            undelivered: 0,
            overwritten: 0,
            kicks: 0,
            kicks_held: 0,
            window_open_ns: Histogram::new_with_bounds(1, LONGEST_NS, 2).expect("bounds are constant and in order"),
            window_open_sum_ns: 0,
            interrupted: 0,
        }
    }
}

impl ChannelStats {
    /// What was counted after `earlier`, which this end gave before.
    pub fn since(&self, earlier: &ChannelStats) -> ChannelStats {
        let mut window_open_ns = self.window_open_ns.clone();
        // Of the same end, so that it has no count that is not in this one.
        let _ = window_open_ns.subtract(&earlier.window_open_ns);
        ChannelStats {
            packets: self.packets - earlier.packets,
            bytes: self.bytes - earlier.bytes,
            batches: self.batches - earlier.batches,
            full: self.full - earlier.full,
            empty: self.empty - earlier.empty,
            faults: std::array::from_fn(|kind| self.faults[kind] - earlier.faults[kind]),
            outdated: self.outdated - earlier.outdated,
            undelivered: self.undelivered - earlier.undelivered,
            overwritten: self.overwritten - earlier.overwritten,
            kicks: self.kicks - earlier.kicks,
            kicks_held: self.kicks_held - earlier.kicks_held,
            window_open_ns,
            window_open_sum_ns: self.window_open_sum_ns - earlier.window_open_sum_ns,
            interrupted: self.interrupted - earlier.interrupted,
        }
    }

    pub(crate) fn fault(&mut self, fault: PeerFault) {
        self.faults[fault.kind()] += 1;
    }

    #[inline]
    pub(crate) fn opened(&mut self, ns: u64) {
        self.window_open_ns.saturating_record(ns.max(1));
        self.window_open_sum_ns += ns;
        self.interrupted += u64::from(ns > INTERRUPTED_NS);
    }
}

/// Times windows, where there are any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter(pub Option<Ticks>);

impl Meter {
    #[inline]
    pub(crate) fn begin(self) -> u64 {
        if self.0.is_some() { Ticks::now() } else { 0 }
    }

    #[inline]
    pub(crate) fn end(self, begun: u64, stats: &mut ChannelStats) {
        if let Some(ticks) = self.0 {
            stats.opened(ticks.ns(Ticks::now().wrapping_sub(begun)));
        }
    }
}
