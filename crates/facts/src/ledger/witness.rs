//! Whose record of a thing counts, where several levels of a recording saw it.
//!
//! ```text
//! L0's trace   |-- L1 guest --|-- L2 guest --|-- work on L2's exit --|-- L2 guest --|
//! L1's trace   |------------- L1 runs, or L2 does: what L0 did is inside -----------|     the same time, once more
//! ```
//! The outermost machine that saw it counts it, or the one that the user asks for; what another recorded refines it, and is never
//! added to it.

use super::measure::{Measures, measure};
use crate::Case;
use base::Level;
use std::collections::BTreeSet;

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
    /// The outermost ones among the traces of a recording, or those of the level that is asked for.
    pub fn of(measures: &[Measures<'_>], asked: Option<Level>) -> Self {
        let counts = |saw: fn(&Measures<'_>) -> bool| {
            let levels = measures.iter().filter(|measure| saw(measure)).map(|measure| measure.part.level);
            levels.filter(|level| asked.is_none_or(|asked| asked == *level)).min()
        };
        Self {
            states: counts(|measure| measure.wall_ns > 0),
            exits: counts(|measure| measure.exits > 0),
            chains: counts(|measure| measure.chains.count > 0),
        }
    }

    /// Whether a trace is drawn and told as the recording's own: where nothing tells of time, each is.
    pub fn is_told(&self, measure: &Measures<'_>) -> bool {
        self.states.is_none() || self.has_states(measure)
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

/// The levels whose record of the time of vCPUs counts, as a case is asked.
pub fn told_levels(case: &Case) -> BTreeSet<Level> {
    let measures = measure(case.ledger(), case.given());
    let witnesses = Witnesses::of(&measures, case.given().narrow.witness);
    measures.iter().filter(|measure| witnesses.is_told(measure)).map(|measure| measure.part.level).collect()
}
