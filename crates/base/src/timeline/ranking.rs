//! Which chains stand for all others? Those of each reason ordered by cost, and the most expensive of all.
//!
//! In: every chain that is over, none of which is kept. Out: what to ask for when the trace is read once more.

use super::{ChainRequest, ChainSums, LaneId};
use crate::Span;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Chains of one reason that are ranked. Of more only every second is, then every fourth, and so on: enough for any percentile
/// that is drawn, in some megabytes for a reason.
const MOST_RANKED: usize = 1 << 17;

/// Besides the median, the 99th percentile and the worst of each reason: this many of the most expensive.
const MOST_EXPENSIVE: usize = 40;

/// A chain by what it cost, and of equals by where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ranked {
    /// What it cost.
    pub cost_ns: u64,
    /// Its lane.
    pub lane: u32,
    /// Which of the lane's chains it is.
    pub nth: u32,
    from_ns: u64,
    to_ns: u64,
}

/// Undisturbed chains of one reason.
#[derive(Debug, Clone, Default)]
pub struct RanksOfReason {
    /// How many.
    pub count: u64,
    /// One in so many is ranked.
    pub one_in: u64,
    total_ns: u64,
    /// Cheapest first, once all are added.
    ranked: Vec<Ranked>,
    worst: Option<Ranked>,
}

impl RanksOfReason {
    fn add(&mut self, chain: Ranked, most: usize) {
        self.one_in = self.one_in.max(1);
        if self.count.is_multiple_of(self.one_in) {
            if self.ranked.len() == most {
                self.ranked = self.ranked.iter().copied().step_by(2).collect();
                self.one_in *= 2;
            }
            if self.count.is_multiple_of(self.one_in) {
                self.ranked.push(chain);
            }
        }
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(chain.cost_ns);
        self.worst = self.worst.max(Some(chain));
    }

    /// The chain that `share` of the ranked ones cost no more than; the most expensive one is that of all.
    fn at(&self, share: f64) -> Option<Ranked> {
        // Nearest rank: the smallest position that covers the share.
        let rank = (share * self.ranked.len() as f64).ceil() as usize;
        if share >= 1.0 { self.worst } else { self.ranked.get(rank.max(1) - 1).copied() }
    }

    /// The median, the 99th percentile and the worst.
    pub fn picks(&self) -> [Option<Ranked>; 3] {
        [0.5, 0.99, 1.0].map(|share| self.at(share))
    }

    /// Those of `other` as well.
    fn merge(&mut self, other: Self, most: usize) {
        let coarser = self.one_in.max(other.one_in);
        let thinned =
            |of: Self| of.ranked.into_iter().step_by((coarser / of.one_in.max(1)) as usize).collect::<Vec<_>>();
        (self.count, self.total_ns) = (self.count + other.count, self.total_ns.saturating_add(other.total_ns));
        self.worst = self.worst.max(other.worst);
        let own = Self { ranked: std::mem::take(&mut self.ranked), one_in: self.one_in, ..Self::default() };
        self.ranked = thinned(own);
        self.ranked.extend(thinned(other));
        self.one_in = coarser;
        while self.ranked.len() > most {
            self.ranked = self.ranked.iter().copied().step_by(2).collect();
            self.one_in *= 2;
        }
        self.ranked.sort_unstable();
    }
}

/// Chains as they are told: of each reason enough to choose those that stand for the others.
#[derive(Debug, Clone, Default)]
pub struct ChainRanks {
    reasons: BTreeMap<String, RanksOfReason>,
    expensive: BTreeSet<(Reverse<u64>, Ranked)>,
}

impl ChainRanks {
    /// Takes a chain.
    pub fn add(&mut self, chain: &ChainSums<'_>) {
        let Some(cost_ns) = chain.cost_ns.filter(|_| chain.is_undisturbed) else { return };
        let Span { from_ns, to_ns } = chain.span;
        let ranked = Ranked { cost_ns, lane: chain.lane.0, nth: chain.nth, from_ns, to_ns };
        match self.reasons.get_mut(chain.reason) {
            Some(reason) => reason.add(ranked, MOST_RANKED),
            None => self.reasons.entry(chain.reason.to_owned()).or_default().add(ranked, MOST_RANKED),
        }
        // Of equals the first ones.
        if self.expensive.last().is_none_or(|least| (Reverse(cost_ns), ranked) < *least)
            || self.expensive.len() < MOST_EXPENSIVE
        {
            self.expensive.insert((Reverse(cost_ns), ranked));
        }
        if self.expensive.len() > MOST_EXPENSIVE {
            self.expensive.pop_last();
        }
    }

    /// The same after all were added: with each chain on the `lane` of what it was told of, and at the times that `axis` gives.
    /// Chains without a lane are left out.
    #[must_use]
    pub fn on_lanes(self, lane: impl Fn(u32) -> Option<u32>, axis: impl Fn(u64) -> u64) -> Self {
        let placed = |ranked: Ranked| {
            let [from_ns, to_ns] = [ranked.from_ns, ranked.to_ns].map(&axis);
            Some(Ranked { lane: lane(ranked.lane)?, from_ns, to_ns, ..ranked })
        };
        let of_reason = |(reason, of): (String, RanksOfReason)| {
            let mut ranked: Vec<Ranked> = of.ranked.into_iter().filter_map(placed).collect();
            ranked.sort_unstable();
            let worst = of.worst.and_then(placed);
            (!ranked.is_empty()).then_some((reason, RanksOfReason { ranked, worst, ..of }))
        };
        let expensive = self.expensive.into_iter().filter_map(|(cost, ranked)| Some((cost, placed(ranked)?)));
        Self { reasons: self.reasons.into_iter().filter_map(of_reason).collect(), expensive: expensive.collect() }
    }

    /// Those of `other`, on lanes of its own, as well.
    pub fn merge(&mut self, other: Self) {
        for (reason, of) in other.reasons {
            self.reasons.entry(reason).or_default().merge(of, MOST_RANKED);
        }
        self.expensive.extend(other.expensive);
        while self.expensive.len() > MOST_EXPENSIVE {
            self.expensive.pop_last();
        }
    }

    /// By reason, those whose chains cost most in all first.
    pub fn most_expensive_first(&self) -> Vec<(&str, &RanksOfReason)> {
        let mut reasons: Vec<_> = self.reasons.iter().map(|(reason, of)| (reason.as_str(), of)).collect();
        reasons.sort_by_key(|(_, of)| Reverse(of.total_ns));
        reasons
    }

    /// The chains that stand for the others, by lane and time.
    pub fn chosen(&self) -> Vec<Ranked> {
        let picks = self.reasons.values().flat_map(RanksOfReason::picks).flatten();
        let all = picks.chain(self.expensive.iter().map(|(_, ranked)| *ranked));
        let chosen: BTreeMap<(u32, u32), Ranked> = all.map(|ranked| ((ranked.lane, ranked.nth), ranked)).collect();
        chosen.into_values().collect()
    }

    /// The same, each with what is drawn around it.
    pub fn wanted(&self) -> Vec<ChainRequest> {
        let wanted = |ranked: Ranked| {
            let span = Span { from_ns: ranked.from_ns, to_ns: ranked.to_ns };
            ChainRequest { lane: LaneId(ranked.lane), nth: ranked.nth, span, lead_ns: lead_ns(span) }
        };
        self.chosen().into_iter().map(wanted).collect()
    }
}

/// A little of what was before a chain and after is drawn with it, so long each.
pub fn lead_ns(span: Span) -> u64 {
    (span.length_ns() / 30).min(span.from_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(cost_ns: u64) -> Ranked {
        Ranked { cost_ns, lane: 0, nth: cost_ns as u32, from_ns: 0, to_ns: cost_ns }
    }

    fn reason(costs: impl Iterator<Item = u64>, most: usize) -> RanksOfReason {
        let mut reason = RanksOfReason::default();
        costs.for_each(|cost_ns| reason.add(ranked(cost_ns), most));
        reason.ranked.sort_unstable();
        reason
    }

    #[test]
    fn percentiles_are_chains_that_happened() {
        let of = |reason: &RanksOfReason| [0.5, 0.99, 1.0].map(|share| reason.at(share).unwrap().cost_ns);
        assert_eq!(of(&reason(10..20, MOST_RANKED)), [14, 19, 19]);
        assert_eq!(of(&reason(7..8, MOST_RANKED)), [7, 7, 7]);
    }

    #[test]
    fn of_very_many_chains_some_are_ranked_and_all_counted() {
        let costs = || (0..100_000u64).map(|number| number * 7_919 % 100_003);
        let many = reason(costs(), 1_000);
        assert!(many.ranked.len() <= 1_000 && many.one_in == 128, "{} of {}", many.ranked.len(), many.one_in);
        assert_eq!((many.count, many.total_ns), (100_000, costs().sum()));
        assert_eq!(many.at(1.0).unwrap().cost_ns, costs().max().unwrap(), "the worst is that of all");
        let median = many.at(0.5).unwrap().cost_ns;
        assert!((48_000..52_000).contains(&median), "{median}");
    }
}
