//! Chains, found by reason and time, and those worth looking at.
//!
//! A chain's id is its place among all chains of the recording, which are ordered by lane and time.

use crate::error::Refused;
use base::timeline::{Chain, Drawn};
use serde::{Deserialize, Serialize};
use show::json::timeline::{ChainRow, Picks};

/// The most chains or slices of one answer.
pub(crate) const MOST: usize = 100_000;

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Wanted {
    lane: Option<u32>,
    reason: Option<String>,
    t0: Option<u64>,
    t1: Option<u64>,
    #[serde(default)]
    sort: Sort,
    #[serde(default)]
    descending: u8,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sort {
    #[default]
    Time,
    Cost,
    Exits,
}

/// Some chains, and how many there are.
#[derive(Debug, Serialize)]
pub(crate) struct Found<'a> {
    chains: Vec<ChainRow<'a>>,
    total: usize,
}

/// Chains as `wanted`.
///
/// # Errors
/// If the window ends before it begins.
pub(crate) fn find<'a>(drawn: &'a Drawn, wanted: &Wanted) -> Result<Found<'a>, Refused> {
    let (t0, t1) = (wanted.t0.unwrap_or(0), wanted.t1.unwrap_or(u64::MAX));
    if t0 >= t1 {
        return Err(Refused::wrong("t0 must be before t1, both in ns since the first event"));
    }
    let matches = |chain: &Chain| {
        wanted.lane.is_none_or(|lane| chain.lane.0 == lane)
            && wanted.reason.as_ref().is_none_or(|reason| *reason == chain.reason)
            && chain.span.from_ns < t1
            && chain.span.to_ns.max(chain.span.from_ns + 1) > t0
    };
    let mut ids: Vec<usize> = (0..drawn.chains.len()).filter(|id| matches(&drawn.chains[*id])).collect();
    // Sorting is stable: of equals the earlier comes first, in both directions.
    let mut by = |key: fn(&Chain) -> Option<u64>| {
        ids.sort_by(|a, b| {
            let (a, b) = (key(&drawn.chains[*a]), key(&drawn.chains[*b]));
            // What is not known stands last in both directions.
            a.is_none().cmp(&b.is_none()).then(if wanted.descending != 0 { b.cmp(&a) } else { a.cmp(&b) })
        });
    };
    match wanted.sort {
        Sort::Time => by(|chain| Some(chain.span.from_ns)),
        // What a disturbed chain took is not known to be the cost of its exit.
        Sort::Cost => by(|chain| chain.cost_ns.filter(|_| chain.is_undisturbed())),
        Sort::Exits => by(|chain| (!chain.interrupted && !chain.migrated).then_some(chain.exits)),
    }
    let limit = wanted.limit.unwrap_or(100).min(MOST);
    let shown = ids.iter().skip(wanted.offset).take(limit);
    let chains = shown.map(|id| ChainRow::of(*id as u64, &drawn.chains[*id])).collect();
    Ok(Found { chains, total: ids.len() })
}

/// The chains to look at beside chain `id`. Percentiles are those of the nearest rank: the least cost that at least
/// the wanted share of the chains does not exceed.
pub(crate) fn picks(drawn: &Drawn, id: usize) -> Picks {
    let chain = &drawn.chains[id];
    let same = |other: &usize| drawn.chains[*other].reason == chain.reason && drawn.chains[*other].is_undisturbed();
    let mut by_cost: Vec<(u64, usize)> =
        (0..drawn.chains.len()).filter(same).filter_map(|id| Some((drawn.chains[id].cost_ns?, id))).collect();
    by_cost.sort_unstable();
    let rank =
        |percent: usize| by_cost.get((by_cost.len() * percent).div_ceil(100).max(1) - 1).map(|(_, id)| *id as u64);
    let place = by_cost.iter().position(|(_, known)| *known == id);
    let at = |place: Option<usize>| Some(by_cost.get(place?)?.1 as u64);
    Picks {
        median: rank(50),
        p99: rank(99),
        worst: by_cost.last().map(|(_, id)| *id as u64),
        next: at(place.map(|place| place + 1)),
        previous: at(place.and_then(|place| place.checked_sub(1))),
    }
}
