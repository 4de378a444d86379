//! Whose record of a thing counts, where several levels of a recording saw it.
//!
//! ```text
//! L0's trace   |-- L1 guest --|-- L2 guest --|-- work on L2's exit --|-- L2 guest --|
//! L1's trace   |------------- L1 runs, or L2 does: what L0 did is inside -----------|     the same time, once more
//! ```
//! The outermost machine that saw it counts it; what an inner one recorded refines it, and is never added to it.

use super::measure::Measures;
use base::Level;

/// The levels whose traces count; `None` where no trace has any of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Witnesses {
    /// Time of vCPUs, by state.
    states: Option<Level>,
    exits: Option<Level>,
    /// Chains of exits of nested guests.
    chains: Option<Level>,
}

impl Witnesses {
    /// The outermost ones among the traces of a recording.
    pub fn of(measures: &[Measures<'_>]) -> Self {
        let outermost = |saw: fn(&Measures<'_>) -> bool| {
            measures.iter().filter(|measure| saw(measure)).map(|measure| measure.part.level).min()
        };
        Self {
            states: outermost(|measure| measure.wall_ns > 0),
            exits: outermost(|measure| measure.exits > 0),
            chains: outermost(|measure| measure.chains.count > 0),
        }
    }

    /// Whether the times of the vCPUs of this trace are the recording's.
    pub fn has_states(&self, measure: &Measures<'_>) -> bool {
        self.states == Some(measure.part.level)
    }

    /// Whether its exits are.
    pub fn has_exits(&self, measure: &Measures<'_>) -> bool {
        self.exits == Some(measure.part.level)
    }

    /// Whether its chains are.
    pub fn has_chains(&self, measure: &Measures<'_>) -> bool {
        self.chains == Some(measure.part.level)
    }
}
