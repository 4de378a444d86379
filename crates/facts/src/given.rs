//! What the user states beside the recording: what is wanted of it, and what is known better than it says.

use crate::budget::{Budget, Workload};
use crate::names::GivenSymbols;
use crate::queries::Queries;
use crate::ranking::Ranking;
use base::Narrow;
use std::any::Any;
use std::collections::BTreeMap;

/// All that the user states. The facts depend on [`narrow`](Given::narrow) and [`traces`](Given::traces) alone.
#[derive(Debug, Clone, Default)]
pub struct Given {
    pub narrow: Narrow,
    pub traces: TraceHints,
    pub listing: Listing,
    /// Whether machines are asked about real time that do not claim it.
    pub realtime: bool,
    /// What counts as lost.
    pub latency: LossOptions,
    /// What is set otherwise of the [controls](base::Section::controls) of a question, by their ids.
    pub controls: BTreeMap<String, String>,
    /// Whether the recording and those made `again` are a series, in which changes are looked for.
    pub history: bool,
    /// How much worse a comparison may come out, as a share.
    pub accepted_regression: Option<f64>,
    /// Which latencies are accepted.
    pub budget: Option<Budget>,
    /// What a migrated guest is busy with.
    pub workload: Option<Workload>,
    /// What single questions are asked, each by a type of its own.
    pub queries: Queries,
}

impl Given {
    /// Nothing but `query`, which one question is asked.
    pub fn query<T: Any + Send + Sync>(query: T) -> Self {
        Self::default().with(query)
    }

    /// The same, and one question is asked `query`.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, query: T) -> Self {
        self.queries.set(query);
        self
    }
}

/// What counts as lost time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LossOptions {
    /// From exit to entry also while the guest had halted.
    pub include_halts: bool,
}

/// What the user knows of traces better than they say it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceHints {
    /// Events to treat as if they had not been recorded.
    pub ignore_events: Vec<String>,
    /// VM names by thread id, over what the trace says.
    pub vm_map: Vec<(i32, String)>,
    /// Symbols of machines, over what their traces carry.
    pub symbols: Vec<GivenSymbols>,
}

/// What of an answer is listed for people, and in which order.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// How tables rank their rows.
    pub ranking: Ranking,
    /// Every feature of every machine, not only those with a finding.
    pub all_features: bool,
}
