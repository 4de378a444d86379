//! How many frames does a path between two machines carry, what does a window cost, and what disturbed the run?
//!
//! ```text
//! producer   a process on one CPU     frames with a number and a checksum --> ring --> consumer   a process on another
//!            both look at the counter of their CPU once for each batch: where it jumps, somebody else had the CPU
//! ```
//! Paths of DPDK are kept busy by DPDK's own programs (`dpdk/`).
//!
//! A launch runs every setup once, in an order that is drawn, so that what is compared was measured in the same minutes.

pub mod dpdk;
mod frames;
mod ground;
mod pair;
mod peer;
mod rings;
mod side;

pub use ground::ground;
pub use pair::relation;

use super::launch::Job;
use crate::Error;
use crate::random::Random;
use base::bench::{Measured, Params};
use base::channel::{DPDK_PATHS, Run, Setup};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Paths of ours, as [`Setup::path`] names them.
pub const PATHS: [&str; 2] = ["ring", "ring-ro"];
/// Windows, as [`Setup::window`] does.
pub const WINDOWS: [&str; 3] = ["none", "pkey", "mprotect"];
/// Policies, as [`Setup::policy`] does.
pub const POLICIES: [&str; 3] = ["poll", "kick", "adaptive"];
/// A frame has room for its number and its checksum.
pub const LEAST_BYTES: u32 = 16;
/// The longest that a slot holds.
pub const MOST_BYTES: u32 = 9_216;
/// The largest batch.
pub const MOST_BATCH: u32 = 1_024;

/// What a launch measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Who sends, and who receives.
    pub cpus: (u32, u32),
    /// How these two are related: one of [`base::channel::PAIRS`].
    pub pair: String,
    /// All that is measured.
    pub setups: Vec<Setup>,
    /// Slots of a ring.
    pub slots: u32,
    /// Whether descriptors lie apart from frames; `None` for whichever moves fewer bytes.
    pub apart: Option<bool>,
    /// Whether numbers and checksums are looked at.
    pub verify: bool,
    /// How long each setup is measured.
    pub length: Duration,
    /// And how long it runs before.
    pub warm_up: Duration,
    /// Whether to measure by the real-time policy SCHED_FIFO.
    pub fifo: bool,
    /// What programs of DPDK have here, or why they cannot run.
    pub dpdk: Result<dpdk::Bed, String>,
    /// Which launch of the process it is.
    pub launch: u32,
}

impl Plan {
    /// Its results, one a setup.
    pub fn results(&self) -> usize {
        self.setups.len()
    }

    /// What a process is to do for launch `number`.
    pub fn launch(&self, number: u32) -> Job {
        Job::Channel(Self { launch: number, ..self.clone() })
    }
}

/// Measures every setup, and tells each result.
///
/// # Errors
/// If a process or a ring cannot be made, or `tell` fails; a window or a path that this machine lacks is a result without a run.
pub fn run(plan: &Plan, tell: &mut dyn FnMut(Measured) -> Result<(), Error>) -> Result<(), Error> {
    let mut setups = plan.setups.clone();
    Random::of(u64::from(plan.launch) + 1).shuffle(&mut setups);
    for setup in setups {
        let carried = match DPDK_PATHS.contains(&setup.path.as_str()) {
            true => dpdk::carry(plan, &setup),
            false => rings::carry(plan, &setup),
        };
        let (channel, skipped) = match carried {
            Ok(run) => (Some(Box::new(run)), None),
            Err(Error::Absent(why)) => (None, Some(why)),
            Err(error) => return Err(error),
        };
        tell(measured(plan, &setup, channel, skipped))?;
    }
    Ok(())
}

fn measured(plan: &Plan, setup: &Setup, channel: Option<Box<Run>>, skipped: Option<String>) -> Measured {
    let Setup { path, window, size_bytes, batch, .. } = setup;
    Measured {
        name: format!("{path}, window {window}, {size_bytes} B, batch {batch}"),
        params: Params { place: "here".to_owned(), launch: plan.launch, ..Params::default() },
        unit: "count".to_owned(),
        channel,
        skipped,
        ..Measured::default()
    }
}
