//! At which rates does a device lose no more than a goal allows? Searches over trials; what a trial does is the caller's.
//!
//! ```text
//! least..most pps, goals --> a rate --> the caller's trial --> sent, received --> the next rate --> ... --> bounds
//!                                       discarded if the sender missed its rate, or the host was taken away
//! ```
//! `mlr` finds a lower and an upper bound for several goals at once out of many short trials; [`binary`] is the plain form of
//! RFC 2544 with one trial for each rate. Both say bounds, never a point, and why they ended where they did.
//! Sources: RFC 2544, 26.1; RFC 9971 (Multiple Loss Ratio Search, once draft-ietf-bmwg-mlrsearch-15).

mod binary;
pub(crate) mod bounds;
mod mlr;
mod sums;
mod trials;

pub use binary::binary;
pub use bounds::Method;
pub(crate) use mlr::mlr;
pub use trials::{Discarded, Trial};

/// Loss and certainty that are searched for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// `ndr`, `pdr`.
    pub name: &'static str,
    /// A trial that loses a larger share of its frames is bad.
    pub loss_ratio: f64,
    /// The share of the time of all trials at a lower bound that bad ones may have.
    pub exceed_ratio: f64,
    /// Bounds are close enough if they differ by no more than this share of the upper one.
    pub width: f64,
    /// How many trials' worth of time settles a rate.
    pub trials: u32,
}

impl Goal {
    /// No drop rate: no frame is lost.
    pub const NDR: Goal = Goal { name: "ndr", loss_ratio: 0.0, exceed_ratio: 0.5, width: 0.005, trials: 21 };
    /// Partial drop rate: one frame of 200 may be lost. Both goals are FD.io CSIT's.
    pub const PDR: Goal = Goal { name: "pdr", loss_ratio: 0.005, ..Goal::NDR };
}

/// What may be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    least_pps: u64,
    most_pps: u64,
    most_trials: u32,
}

impl Range {
    /// Rates from `least_pps` to `most_pps`, and no more trials than `most_trials`, discarded ones included.
    pub fn new(least_pps: u64, most_pps: u64, most_trials: u32) -> Self {
        let least_pps = least_pps.max(1);
        Self { least_pps, most_pps: most_pps.max(least_pps), most_trials }
    }
}

/// Why a search for a goal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The bounds are as close as the goal wants them.
    Narrow,
    /// The highest rate of the range is a lower bound: the device may carry more.
    CarriesAll,
    /// The lowest rate of the range is an upper bound.
    CarriesLess,
    /// The sender did not hold this rate, the lowest that would have had to be tried: the device may carry more.
    SenderMissed {
        pps: u64,
    },
    /// The host lost too much of its time in trial after trial.
    Stolen,
    Trials,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    pub goal: Goal,
    /// The highest rate below `upper_pps` that meets the goal; `None` if none was found that does.
    pub lower_pps: Option<u64>,
    /// The lowest rate that does not meet it; `None` if all that were tried do.
    pub upper_pps: Option<u64>,
    /// Why the search ended there.
    pub ended: Ended,
}

/// A search, and all of its trials in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// For each goal, in their order.
    pub found: Vec<Found>,
    pub trials: Vec<(Trial, Option<Discarded>)>,
}

/// True if bounds are so close that the goal's width is met.
fn is_narrow(lower: u64, upper: u64, width: f64) -> bool {
    // Rates are whole numbers.
    upper.saturating_sub(lower) as f64 <= width * upper as f64 + 1.0
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
