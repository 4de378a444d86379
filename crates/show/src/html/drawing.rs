//! What a page draws of a recording: its timeline and chains, added up while the trace is read.
//!
//! ```text
//! first walk    the ledger, and which chains stand for the others
//! second walk   every lane at the zooms of the page, sums over all chains, the slices of those
//! ```
//! Memory is that of the page's pictures, not of the trace.

use super::chains::Chosen;
use crate::aggregates::{Aggregates, One, Sums};
use base::Span;
use base::timeline::{ChainRanks, ChainSlices, ChainSums, Overview};

#[derive(Debug, Clone)]
pub struct Drawing {
    pub overview: Overview,
    /// What all chains add up to.
    pub aggregates: Aggregates,
    pub chains: Chosen,
    /// How far quantiles over time are rounded, if they are, in a sentence.
    pub rounded: Option<String>,
}

/// A drawing of which the chains are told one by one, in the order of their lanes and time.
pub struct Drafting {
    sums: Sums,
}

impl Drafting {
    /// Nothing yet, of a recording of `span`.
    pub fn new(span: Span) -> Self {
        Self { sums: Sums::new(span, span) }
    }

    pub fn chain(&mut self, chain: &ChainSums<'_>) {
        self.sums.add(&One::from(chain));
    }

    /// The drawing, once all chains of `overview` were told; of those that stand for the others by `ranks`, `found` are the
    /// slices, in the order in which `ranks` want them.
    pub fn finish(self, ranks: &ChainRanks, overview: Overview, found: Vec<ChainSlices>) -> Drawing {
        let chains = Chosen::of(ranks, &overview, found);
        Drawing { overview, aggregates: self.sums.finish(), chains, rounded: self.sums.rounded() }
    }
}

impl Drawing {
    /// Whether there are lanes beside those of the vCPUs.
    pub(crate) fn has_lanes_beside(&self) -> bool {
        self.overview.lanes.len() > self.overview.vcpus.len()
    }

    /// What is not shown of a recording because it is too long, in sentences.
    pub fn bounds(&self) -> Vec<String> {
        let bounds = self.overview.bounds.iter().cloned();
        bounds.chain(super::chains::thinned(&self.chains.reasons)).chain(self.rounded.clone()).collect()
    }
}
