//! What a frame takes at either end of a ring that two VMs share.
//!
//! ```text
//! side = (t_window + t_index) / batch + t_copy(s)        one CPU, one frame; a bench that sees a rate sees the slower of two ends
//! VNF  = its own time + side x (ends of a ring that it has, 2 in the middle of a chain)
//! ```
//! The VNFs copy themselves, so that a CPU which forwards a frame pays for it on the way in and on the way out.

mod model;

pub use model::{Model, Refused};

use std::ops::RangeInclusive;

/// How the ring of a plan is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelUse {
    /// Its window: one that was measured, or that has a row of kind modelled.
    pub window: String,
    /// Frames that go at once.
    pub batch: u32,
}

impl Default for ChannelUse {
    /// Without a window, and the batch of the published rate.
    fn default() -> Self {
        Self { window: "none".to_owned(), batch: 32 }
    }
}

/// Time of an end for a frame, affine in its size, in batches of one size and with one window.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelCost {
    /// Of a frame without bytes.
    pub ns: f64,
    pub ns_per_byte: f64,
    /// By which factor each may be off, at most: 1.1 is 10 %.
    pub spread: f64,
    pub sizes: RangeInclusive<u32>,
    /// How a batch of each measured size adds up, for other batches.
    pub sweeps: Vec<(u32, Model)>,
}

impl ChannelCost {
    /// As somebody gives it, for all sizes.
    pub fn given(ns: f64, ns_per_byte: f64) -> Option<Self> {
        let is_cost = (0.1..1e9).contains(&ns) && (0.0..1e6).contains(&ns_per_byte);
        is_cost.then(|| Self { ns, ns_per_byte, spread: 1.0, sizes: 0..=u32::MAX, sweeps: Vec::new() })
    }

    /// Nanoseconds for a frame of `bytes`.
    pub fn of(&self, bytes: f64) -> f64 {
        self.ns + self.ns_per_byte * bytes
    }

    /// Whether it is known of frames of `bytes`.
    pub fn covers(&self, bytes: f64) -> bool {
        (f64::from(*self.sizes.start())..=f64::from(*self.sizes.end())).contains(&bytes)
    }

    /// The smallest batch in which an end takes no more than `ns` for a frame; `None` where no batch of that size was swept that does.
    pub fn smallest_batch(&self, bytes: u32, ns: f64) -> Option<u32> {
        let (_, model) = self.sweeps.iter().find(|(size, _)| *size == bytes)?;
        model
            .mpps(model.least)
            .ok()
            .filter(|mpps| 1_000.0 / mpps <= ns)
            .map(|_| model.least)
            .or_else(|| model.smallest_batch(1_000.0 / ns).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_known_of_the_sizes_that_were_measured() {
        let cost = ChannelCost { sizes: 64..=512, ..ChannelCost::given(10.0, 0.02).unwrap() };
        assert!(cost.covers(64.0) && cost.covers(512.0) && !cost.covers(1518.0));
        assert!((cost.of(100.0) - 12.0).abs() < 1e-12);
        assert_eq!([ChannelCost::given(0.0, 1.0), ChannelCost::given(10.0, -1.0)], [None, None]);
    }

    #[test]
    fn the_smallest_batch_is_one_that_was_swept_or_none() {
        let model = Model::fit(&[(1, 88.0 + 14.0), (32, 88.0 + 448.0), (64, 88.0 + 896.0)], 28.0).unwrap();
        let cost = ChannelCost { sweeps: vec![(64, model)], ..ChannelCost::given(16.0, 0.0).unwrap() };
        // 88 / (20 - 14) = 14.7
        assert_eq!(cost.smallest_batch(64, 20.0), Some(15));
        assert_eq!(cost.smallest_batch(64, 200.0), Some(1), "the smallest swept one is enough");
        assert_eq!((cost.smallest_batch(64, 14.1), cost.smallest_batch(512, 20.0)), (None, None));
    }
}
