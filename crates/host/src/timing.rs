//! How long does a CPUID take here, against arithmetic?
//!
//! `timing.json` of a snapshot, taken on the machine itself. CPUID is the instruction that no hypervisor can leave to the
//! processor (Intel SDM volume 3, 26.1.2), so its time hints at who answers it: the processor, or somebody below.

use crate::Snapshot;
use serde::{Deserialize, Serialize};

/// Name of the file in a snapshot.
pub const TIMING_FILE: &str = "timing.json";

/// So many additions in a row, each of which waits for the one before.
pub const ADDITIONS: u64 = 64;

/// The least of many measurements, in cycles of the time-stamp counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// A CPUID.
    pub cpuid_cycles: u64,
    /// [`ADDITIONS`] additions: as many cycles of the core's own clock.
    pub additions_cycles: u64,
}

impl Timing {
    /// What the snapshot holds; nothing if it was not taken, or is damaged.
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        serde_json::from_str(&snapshot.read(TIMING_FILE)?).ok()
    }

    /// A CPUID in cycles of the core's own clock.
    pub fn cpuid_core_cycles(self) -> f64 {
        self.cpuid_cycles as f64 * ADDITIONS as f64 / self.additions_cycles.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_runs_faster_than_its_counter_has_more_cycles() {
        let timing: Timing = serde_json::from_str(r#"{"cpuid_cycles": 1000, "additions_cycles": 32}"#).unwrap();
        assert_eq!(timing.cpuid_core_cycles(), 2_000.0);
    }
}
