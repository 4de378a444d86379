//! What the user states beside the recording: what is wanted of it, and what is known better than it says.

use crate::ablation;
use crate::contention::Trial;
use crate::datapath;
use crate::facts::align::names::GivenSymbols;
use crate::facts::budget::{Budget, Workload};
use crate::fleet::Fleet;
use crate::flow::ranking::Ranking;
use crate::migration;
use crate::nesting::plan::Asked;
use crate::placement::Wishes;
use base::Narrow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All that the user states. The facts depend on [`narrow`](Given::narrow) and [`traces`](Given::traces) alone.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// What of the answers is wanted.
    pub narrow: Narrow,
    /// How traces are to be understood.
    pub traces: TraceHints,
    /// How answers are listed.
    pub listing: Listing,
    /// What placements are for, and what stays as it is.
    pub placement: Wishes,
    /// Whether machines are asked about real time that do not claim it.
    pub realtime: bool,
    /// What the cost model is asked for.
    pub plan: Option<Asked>,
    /// The datapaths that a plan weighs.
    pub datapath: Option<Box<datapath::Plan>>,
    /// What a migration is asked about.
    pub migration: Option<migration::Asked>,
    /// What is asked about guests that are saved to files.
    pub hibernation: Option<migration::model::hibernation::Asked>,
    /// What is known of that guest's memory.
    pub looked: migration::Looked,
    /// What an experiment measured, where one was made.
    pub contention: Option<Trial>,
    /// What a trial of changes measured by a budget, where one was made.
    pub ablation: Option<ablation::Trial>,
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
    /// All recordings of a data set, where one is asked about.
    pub fleet: Option<Arc<Fleet>>,
    /// What a migrated guest is busy with.
    pub workload: Option<Workload>,
}

/// What counts as lost time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LossOptions {
    /// From exit to entry also while the guest had halted.
    pub include_halts: bool,
    /// What KVM4NFV's program vm-trace would print beside.
    pub vm_trace: bool,
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
