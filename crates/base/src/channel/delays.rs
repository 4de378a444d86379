//! How long were frames on their way that were sent at one rate?
//!
//! Frames are due by the clock, whatever became of those before them: one that a full ring or a lost CPU held up counts from when it was
//! due (no coordinated omission). The samples are the distribution of the result that this stands beside, in ns.

use super::Setup;
use serde::{Deserialize, Serialize};

/// Loads that are named by how they were found, in [`Delays::load`]; shares of the clean rate are `10 %`, given rates `given`.
pub const NO_LOSS: &str = "no loss";
/// See there: 10 frames of a million may be lost.
pub const LOSS_10_PPM: &str = "10 ppm loss";
/// See there.
pub const GIVEN: &str = "given";

/// Frames at one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// How they were sent.
    #[serde(flatten)]
    pub setup: Setup,
    /// Why this rate: a share of the clean rate (`50 %`), [`GIVEN`], [`NO_LOSS`], [`LOSS_10_PPM`].
    pub load: String,
    /// Frames that were due, millions per second; `None` if the search found no rate.
    pub rate_mpps: Option<f64>,
    /// The clean rate just before, of which shares are.
    pub clean_mpps: Option<f64>,
    /// For so long frames were due.
    pub ns: u64,
    /// So long after that time the last one was sent: the sender did not hold the rate. 0 where it did.
    #[serde(default)]
    pub behind_ns: u64,
    /// Frames that were due.
    pub due: u64,
    /// Of these, frames that found the ring full: nobody waits for room.
    pub dropped: u64,
    /// Sent, and never arrived.
    pub lost: u64,
    /// Arrived twice, after a later one, or changed.
    pub wrong: u64,
    /// The longest delay.
    pub max_ns: u64,
    /// How a rate was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
}

/// How a rate was found (RFC 2544, 26.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The highest rate below all that lost too much; `None` if none was found.
    pub lower_mpps: Option<f64>,
    /// The lowest rate that lost too much; `None` if none did.
    pub upper_mpps: Option<f64>,
    /// Why it ended there.
    pub ended: String,
    /// Rates that were tried.
    pub trials: u32,
}
