//! What a page draws of a recording: its timeline and chains, added up while the trace is read.
//!
//! ```text
//! first walk    every lane at the zooms of the page, sums over all chains, which chains stand for the others
//! second walk   the slices of those
//! ```
//! Memory is that of the page's pictures, not of the trace.

use super::chains::{Choosing, Chosen, MOST_SLICES};
use crate::aggregates::{Aggregates, One, Sums};
use analysis::facts::ledger::model::Flow;
use analysis::facts::timeline::{Overview, ToldChain, inside, overview, whole_span};
use analysis::{Input, Options};

/// What a page draws.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// Its lanes.
    pub overview: Overview,
    /// What all chains add up to.
    pub aggregates: Aggregates,
    /// Chains that stand for the others.
    pub chains: Chosen,
    /// How far quantiles over time are rounded, if they are, in a sentence.
    pub rounded: Option<String>,
}

impl Drawing {
    /// The drawing of `flow`, which was built from `input` with the same `options`.
    pub fn of(input: &Input, options: &Options, flow: &Flow, progress: &mut dyn FnMut(u64, u64)) -> Self {
        let span = whole_span(flow);
        let (mut sums, mut choosing) = (Sums::new(span, span), Choosing::default());
        let mut hear = |chain: &ToldChain<'_>| {
            sums.add(&One::from(chain));
            choosing.add(chain);
        };
        let overview = overview(input, options, flow, &mut hear, progress);
        let chains = choosing
            .choose(&overview, |wanted| inside(input, options, flow, (&overview, wanted, MOST_SLICES), progress));
        Self { overview, aggregates: sums.finish(), chains, rounded: sums.rounded() }
    }

    /// Whether there are lanes beside those of the vCPUs.
    pub fn has_lanes_beside(&self) -> bool {
        self.overview.lanes.len() > self.overview.vcpus.len()
    }

    /// What is not shown of a recording because it is too long, in sentences.
    pub fn bounds(&self) -> Vec<String> {
        let bounds = self.overview.bounds.iter().cloned();
        bounds.chain(super::chains::thinned(&self.chains.reasons)).chain(self.rounded.clone()).collect()
    }
}
