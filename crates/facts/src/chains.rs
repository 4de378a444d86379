//! Which chains stand for all others, found while the ledger's walk runs: whoever draws them then needs one more walk only.

use crate::ledger::build::{Ledger, build_with};
use crate::ledger::extra::Extra;
use crate::timeline::lanes_of;
use crate::{Given, Input};
use base::Span;
use base::timeline::{ChainRanks, ChainSums, LaneId};
use rustc_hash::FxHashMap;
use walk::events::Reason;
use walk::thread::{Chain, Thread};

/// Ranks the chains of one trace; lanes are the numbers of threads.
#[derive(Debug, Default)]
pub(crate) struct Ranking {
    window: Span,
    ranks: ChainRanks,
    /// Chains of each thread so far.
    chains: FxHashMap<usize, u32>,
    names: FxHashMap<Reason, String>,
    /// Thread ids by number.
    tids: Vec<i32>,
}

impl Ranking {
    pub(crate) fn begin(&mut self, window: Span) {
        self.window = window;
    }

    pub(crate) fn chain(&mut self, thread: usize, chain: &Chain) {
        if !(self.window.from_ns..self.window.to_ns).contains(&chain.start_ns) {
            return;
        }
        let nth = self.chains.entry(thread).or_default();
        let reason = self.names.entry(chain.reason).or_insert_with(|| chain.reason.name());
        self.ranks.add(&ChainSums {
            lane: LaneId(thread as u32),
            nth: *nth,
            reason,
            span: chain.span(),
            exits: chain.exits,
            cost_ns: chain.cost_ns,
            is_undisturbed: chain.is_undisturbed(),
        });
        *nth += 1;
    }

    pub(crate) fn end(&mut self, threads: &[Thread]) {
        self.tids = threads.iter().map(|thread| thread.tid).collect();
    }
}

/// The ledger, and which chains of the lowest machines stand for the others, on the lanes that a timeline of the ledger has.
pub fn build(input: &Input, given: &Given, progress: &mut dyn FnMut(u64, u64)) -> (Ledger, ChainRanks) {
    let ranks = || Extra { ranking: Some(Ranking::default()), ..Extra::default() };
    let (ledger, mut extras) = build_with(input, given, ranks, progress);
    let mut all = ChainRanks::default();
    for (place, part, first_lane) in lanes_of(&ledger.flow) {
        let Ranking { ranks, tids, .. } = extras[place].ranking.take().unwrap_or_default();
        let lanes: FxHashMap<i32, u32> = part.vcpus.iter().map(|vcpu| vcpu.tid).zip(first_lane..).collect();
        let lane = |thread: u32| lanes.get(tids.get(thread as usize)?).copied();
        all.merge(ranks.on_lanes(lane, |at_ns| part.on_axis(at_ns)));
    }
    (ledger, all)
}
