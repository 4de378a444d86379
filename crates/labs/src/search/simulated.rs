//! Devices whose truth is known.

use super::Trial;

/// A device: what it carries, how often a trial is disturbed, and a span of rates at which it loses frames for no reason.
#[derive(Debug, Clone)]
pub(super) struct Device {
    /// Frames per second that it carries.
    pub(super) capacity_pps: f64,
    /// The share of trials that lose a burst.
    pub(super) noise: f64,
    /// From, to, and the share that is lost there.
    pub(super) lossy: Option<(u64, u64, f64)>,
    pub(super) sender_pps: f64,
    /// The share of trials during which time was stolen.
    pub(super) steal: f64,
    /// Of its random numbers.
    pub(super) state: u64,
}

impl Device {
    pub(super) fn new(capacity_pps: f64, seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self { capacity_pps, noise: 0.0, lossy: None, sender_pps: f64::INFINITY, steal: 0.0, state }
    }

    /// A number from 0 to 1 (xorshift64*, Vigna 2016).
    pub(super) fn random(&mut self) -> f64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The share that it loses of that rate when nothing disturbs it.
    pub(super) fn loss(&self, pps: u64) -> f64 {
        let over = (1.0 - self.capacity_pps / pps as f64).max(0.0);
        let here = self.lossy.filter(|(from, to, _)| (*from..*to).contains(&pps));
        here.map_or(over, |(.., share)| share.max(over))
    }

    pub(super) fn trial(&mut self, pps: u64) -> Trial {
        let sent = (pps as f64).min(self.sender_pps) as u64;
        let burst = if self.random() < self.noise { 0.02 } else { 0.0 };
        let received = (sent as f64 * (1.0 - self.loss(pps.min(sent)).max(burst))).floor() as u64;
        let stolen = self.random() < self.steal;
        // What steal takes the device loses.
        let received = if stolen { received / 2 } else { received };
        Trial { intended_pps: pps, sent, received, took_ns: 1_000_000_000, steal_share: if stolen { 0.3 } else { 0.0 } }
    }
}
