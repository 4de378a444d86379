//! A trial's window piece by piece: what a wall of gauges shows while it runs, and again when it is played back.

use super::DatapathRun;
use serde::{Deserialize, Serialize};

/// Packets between two readings of the counters within a trial's window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateSample {
    /// When they were read, CLOCK_MONOTONIC; it counts from the sample before, the first one from the beginning of the window.
    pub to_ns: u64,
    /// How long reading took.
    pub read_ns: u64,
    /// Packets sent by the senders.
    pub sent: u64,
    /// Packets received at the ends of all chains together.
    pub received: u64,
    /// Packets that each VNF sent, as the switch counted them.
    pub vnfs: Vec<u64>,
}

impl RateSample {
    /// Packets that all VNFs sent: the counting of the system rate.
    pub fn of_system(&self) -> u64 {
        self.vnfs.iter().fold(0, |sum, vnf| sum.saturating_add(*vnf))
    }
}

impl DatapathRun {
    /// Its samples, each with the time from which it counts.
    pub fn sampled(&self) -> impl Iterator<Item = (u64, &RateSample)> {
        let begins = std::iter::once(self.begin_ns).chain(self.samples.iter().map(|sample| sample.to_ns));
        begins.zip(&self.samples)
    }
}

/// Gb/s of so many packets a second of that size, FCS counted.
pub fn gbps(pps: f64, size_bytes: u32) -> f64 {
    pps * f64::from(size_bytes) * 8.0 / 1e9
}
