//! Chains: what one exit of a nested guest cost, from the exit until the guest ran again.
//!
//! ```text
//! L2   ####                      ####     the guest before, and when it runs again
//! L1     \         ###          /         its hypervisor, whose exits are counted
//! L0      ####----/   ####-----/
//!         |<------- span ----->|          without what the CPU did elsewhere it is the cost
//! ```

use super::{LaneId, Slice};
use crate::Span;
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// One reflected exit of a nested guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// The vCPU's lane.
    pub lane: LaneId,
    /// Why the nested guest stopped, as its hypervisor is told.
    pub reason: String,
    /// From there until it ran again; to its start for a censored chain.
    #[serde(flatten)]
    pub span: Span,
    /// Exits of the guest hypervisor in it, the last entry request included.
    pub exits: u64,
    /// The span without time off the CPU; `None` for a censored chain.
    pub cost_ns: Option<u64>,
    /// Reasons of its exits in order, as many as were kept; chains that did the same share them.
    #[serde(serialize_with = "each")]
    pub sequence: Arc<[String]>,
    /// How many of those that were not kept had which reason.
    #[serde(skip)]
    pub beyond: Vec<(String, u64)>,
    /// The guest hypervisor halted inside: it did other things before it went on with its guest.
    pub interrupted: bool,
    /// Another nested guest ran next, or the same one on another thread first: what was counted is not what it cost.
    pub migrated: bool,
}

fn each<S: Serializer>(sequence: &Arc<[String]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(sequence.iter())
}

impl Chain {
    /// Whether its cost is that of one exit alone: it was closed, the guest hypervisor did not halt in it, and its nested
    /// guest did not move.
    pub fn is_undisturbed(&self) -> bool {
        is_undisturbed(self.cost_ns, (self.interrupted, self.migrated))
    }

    /// The most frequent reason of its exits, the first of equals, and how often it was the reason.
    pub fn most_frequent(&self) -> Option<(&str, u64)> {
        let mut counts: Vec<(&str, u64)> = Vec::new();
        let beyond = self.beyond.iter().map(|(reason, count)| (reason.as_str(), *count));
        for (reason, count) in self.sequence.iter().map(|reason| (reason.as_str(), 1)).chain(beyond) {
            match counts.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, sum)) => *sum += count,
                None => counts.push((reason, count)),
            }
        }
        // What came first says more than what came last.
        counts.into_iter().rev().max_by_key(|(_, count)| *count)
    }
}

/// Whether the cost of a chain that was `interrupted` or `migrated` or not is that of one exit alone.
pub fn is_undisturbed(cost_ns: Option<u64>, (interrupted, migrated): (bool, bool)) -> bool {
    cost_ns.is_some() && !interrupted && !migrated
}

/// What is known of a chain when it is over and nothing of it is kept.
#[derive(Debug, Clone, Copy)]
pub struct ChainSums<'a> {
    /// The vCPU's lane.
    pub lane: LaneId,
    /// Which of the lane's chains it is.
    pub nth: u32,
    /// Why the nested guest stopped, as its hypervisor is told.
    pub reason: &'a str,
    /// From there until it ran again; to its start for a censored chain.
    pub span: Span,
    /// Exits of the guest hypervisor in it.
    pub exits: u64,
    /// The span without time off the CPU; `None` for a censored chain.
    pub cost_ns: Option<u64>,
    /// As [`Chain::is_undisturbed`] says.
    pub is_undisturbed: bool,
}

/// A chain that is wanted with its slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainRequest {
    /// The vCPU's lane.
    pub lane: LaneId,
    /// Which of the lane's chains it is.
    pub nth: u32,
    /// When it was open.
    pub span: Span,
    /// How long before and after it slices are wanted, too.
    pub lead_ns: u64,
}

impl ChainRequest {
    /// The chain and what is wanted around it.
    pub fn window(&self) -> Span {
        let Span { from_ns, to_ns } = self.span;
        Span { from_ns: from_ns.saturating_sub(self.lead_ns), to_ns: to_ns.saturating_add(self.lead_ns) }
    }
}

/// A chain with its slices.
#[derive(Debug, Clone)]
pub struct ChainSlices {
    /// The chain.
    pub chain: Chain,
    /// The slices that touch it or what is wanted around it, the first ones of both, and what is known of each.
    pub slices: Vec<(Slice, String)>,
    /// How many more touch the chain.
    pub left_out: u64,
}
