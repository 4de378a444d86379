//! What all chains of a window add up to.
//!
//! ```text
//! chains that begin in the window --> heat:   how many in each cell of time x cost (logarithmic)
//!                                 --> slots:  how many in each of 600 stretches, their exits, p50 and p99 of the last few
//!                                 --> shares: cost at quantiles of all of them
//! ```
//! A page holds some chains and a server gives them by the thousand; pictures of all chains are drawn from these sums, which
//! are exact. They take some 10 KB, packed.

use analysis::flow::timeline::{Drawn, DrawnChain};
use base::Span;
use base::timeline::{Timeline, pixel_start};
use serde::Serialize;

/// Columns of the heat map: its cells are 5 pixels wide on a page of 1,000.
const COLUMNS: u32 = 200;

/// Rows of the heat map.
const ROWS: u32 = 36;

/// Stretches for values over time: more than a dial tells apart when it is played back.
const SLOTS: u32 = 600;

/// Percentiles at an instant are of the chains of so many slots up to it.
const BACK: u32 = 24;

/// Shares at which the curve of costs is drawn; those that fewer chains than one lie beyond are left out.
const SHARES: [f64; 13] = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999];

/// Sums over the chains that begin in a window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Aggregates {
    /// The window.
    pub t0_ns: u64,
    /// Its end.
    pub t1_ns: u64,
    /// All chains in it.
    pub chains: u64,
    /// Those whose end was not seen, which have no cost.
    pub censored: u64,
    /// Closed ones in which the guest hypervisor halted or whose nested guest moved: their cost is not that of one exit.
    pub disturbed: u64,
    /// Cost of closed chains over time.
    pub heat: Heat,
    /// Quantile and cost of closed chains, from the least to the most.
    pub shares: Vec<(f64, u64)>,
    /// Values over time.
    pub slots: Slots,
    /// Where the most expensive undisturbed chain lies.
    pub worst: Option<Place>,
}

/// Counts by time and cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Heat {
    /// Cells side by side.
    pub columns: u32,
    /// Cells above each other, the least cost below.
    pub rows: u32,
    /// Least cost of an undisturbed chain, where the lowest row begins.
    pub from_ns: u64,
    /// Above the most.
    pub to_ns: u64,
    /// Cells with chains, row by row from below: place and how many.
    pub cells: Vec<(u32, u32)>,
    /// Chains outside the rows, which the outermost rows hold.
    pub beyond: u64,
}

/// Values over time, one for each stretch of the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slots {
    /// Over how many slots up to its own a percentile is taken.
    pub back: u32,
    /// Chains that begin in the slot.
    pub chains: Vec<u64>,
    /// Of these, the closed ones.
    pub closed: Vec<u64>,
    /// Exits of the closed ones.
    pub exits: Vec<u64>,
    /// Median cost of the closed chains of the last `back` slots; `None` without one.
    pub p50_ns: Vec<Option<u64>>,
    /// Their 99th percentile.
    pub p99_ns: Vec<Option<u64>>,
}

/// A place on the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Its begin.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
}

/// The sums of `window`, or of everything.
pub fn aggregates(drawn: &Drawn, window: Option<Span>) -> Aggregates {
    let window = window.unwrap_or_else(|| drawn.timeline.span());
    let whole_span = window.to_ns >= drawn.timeline.span().to_ns;
    // A chain that begins with the last event belongs to a window that ends there.
    let inside = |at_ns: u64| at_ns >= window.from_ns && (at_ns < window.to_ns || whole_span);
    let mut chains: Vec<&DrawnChain> = drawn.chains.iter().filter(|chain| inside(chain.span.from_ns)).collect();
    chains.sort_by_key(|chain| chain.span.from_ns);
    let closed: Vec<&DrawnChain> = chains.iter().copied().filter(|chain| chain.cost_ns.is_some()).collect();
    let worst = closed.iter().filter(|chain| chain.is_undisturbed()).max_by_key(|chain| chain.cost_ns);
    Aggregates {
        t0_ns: window.from_ns,
        t1_ns: window.to_ns,
        chains: chains.len() as u64,
        censored: (chains.len() - closed.len()) as u64,
        disturbed: closed.iter().filter(|chain| !chain.is_undisturbed()).count() as u64,
        heat: heat(&closed, window),
        shares: shares(&closed),
        slots: slots(&chains, window),
        worst: worst.map(|chain| Place { from_ns: chain.span.from_ns, to_ns: chain.span.to_ns }),
    }
}

/// Which of `width` stretches of `window` an instant lies in.
fn stretch(window: Span, at_ns: u64, width: u32) -> u32 {
    let length = u128::from(window.length_ns().max(1));
    let place = u128::from(at_ns.saturating_sub(window.from_ns)) * u128::from(width) / length;
    let mut place = place.min(u128::from(width) - 1) as u32;
    // Stretches begin at whole nanoseconds, rounded down.
    while place + 1 < width && at_ns >= pixel_start(window, place + 1, width) {
        place += 1;
    }
    place
}

fn heat(closed: &[&DrawnChain], window: Span) -> Heat {
    let costs = |undisturbed: bool| {
        let of = closed.iter().filter(move |chain| !undisturbed || chain.is_undisturbed());
        of.map(|chain| chain.cost_ns.unwrap_or(0).max(1))
    };
    // A chain that was disturbed would stretch the axis by decades; where there are no others, it is the axis.
    let undisturbed = costs(true).next().is_some();
    let from_ns = costs(undisturbed).min().unwrap_or(1);
    let to_ns = costs(undisturbed).max().unwrap_or(1) + 1;
    let mut counts = vec![0u32; (COLUMNS * ROWS) as usize];
    let mut beyond = 0;
    let height = (to_ns as f64 / from_ns as f64).ln();
    for chain in closed {
        let cost_ns = chain.cost_ns.unwrap_or(0).max(1);
        beyond += u64::from(!(from_ns..to_ns).contains(&cost_ns));
        let row = ((cost_ns as f64 / from_ns as f64).ln() / height * f64::from(ROWS)) as u32;
        let column = stretch(window, chain.span.from_ns, COLUMNS);
        counts[(row.min(ROWS - 1) * COLUMNS + column) as usize] += 1;
    }
    let cells = (0..).zip(counts).filter(|(_, count)| *count > 0).collect();
    Heat { columns: COLUMNS, rows: ROWS, from_ns, to_ns, cells, beyond }
}

fn shares(closed: &[&DrawnChain]) -> Vec<(f64, u64)> {
    let mut costs: Vec<u64> = closed.iter().filter_map(|chain| chain.cost_ns).collect();
    costs.sort_unstable();
    let Some(most) = costs.last() else { return Vec::new() };
    let count = costs.len() as f64;
    let told = SHARES.into_iter().filter(|share| 1.0 - share >= 1.0 / count - 1e-9);
    told.map(|share| (share, rank(&costs, share))).chain([(1.0, *most)]).collect()
}

/// The least of the ordered `costs` that `share` of all do not exceed.
fn rank(costs: &[u64], share: f64) -> u64 {
    let rank = (share * costs.len() as f64).ceil() as usize;
    costs.get(rank.max(1) - 1).copied().unwrap_or(0)
}

fn slots(chains: &[&DrawnChain], window: Span) -> Slots {
    let empty = || vec![0; SLOTS as usize];
    let mut slots =
        Slots { back: BACK, chains: empty(), closed: empty(), exits: empty(), p50_ns: Vec::new(), p99_ns: Vec::new() };
    let mut costs: Vec<Vec<u64>> = vec![Vec::new(); SLOTS as usize];
    for chain in chains {
        let slot = stretch(window, chain.span.from_ns, SLOTS) as usize;
        slots.chains[slot] += 1;
        if let Some(cost_ns) = chain.cost_ns {
            slots.closed[slot] += 1;
            slots.exits[slot] += chain.exits;
            costs[slot].push(cost_ns);
        }
    }
    for slot in 0..SLOTS as usize {
        let mut recent = costs[(slot + 1).saturating_sub(BACK as usize)..=slot].concat();
        recent.sort_unstable();
        let at = |share| (!recent.is_empty()).then(|| rank(&recent, share));
        slots.p50_ns.push(at(0.5));
        slots.p99_ns.push(at(0.99));
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::witness::answered;
    use base::Cell;

    #[test]
    fn every_chain_is_in_the_sums_and_none_twice() {
        for name in ["nested-vmx-shadow-off-hog", "svm-linux"] {
            let (drawn, section) = answered(name);
            let sums = aggregates(&drawn, None);
            let chains = section.table("chains").unwrap();
            let total = |column: &str| -> u64 {
                let cells = (0..chains.rows.len()).filter_map(|row| chains.cell(row, column));
                cells.map(|cell| if let Cell::U64(value) = cell { *value } else { 0 }).sum()
            };
            assert_eq!((sums.chains, sums.censored), (total("count"), total("censored")), "{name}");
            let closed = sums.chains - sums.censored;
            assert_eq!(sums.slots.chains.iter().sum::<u64>(), sums.chains);
            assert_eq!(sums.heat.cells.iter().map(|(_, count)| u64::from(*count)).sum::<u64>(), closed);
            // Each exit of each closed chain stands in table `chain_exits`, and in one slot.
            let exits = section.table("chain_exits").unwrap();
            let counted = (0..exits.rows.len()).filter_map(|row| match exits.cell(row, "count") {
                Some(Cell::U64(count)) => Some(*count),
                _ => None,
            });
            assert_eq!(sums.slots.exits.iter().sum::<u64>(), counted.sum::<u64>(), "{name}");
            // Two windows that touch hold every chain once.
            let all = drawn.timeline.span();
            let middle = (all.from_ns + all.to_ns) / 2;
            let half = |from_ns, to_ns| aggregates(&drawn, Some(Span { from_ns, to_ns })).chains;
            assert_eq!(half(all.from_ns, middle) + half(middle, all.to_ns), sums.chains, "{name}");
        }
    }

    #[test]
    fn quantiles_are_costs_that_occurred_and_end_at_the_most() {
        let (drawn, _) = answered("svm-linux");
        let mut costs: Vec<u64> = drawn.chains.iter().filter_map(|chain| chain.cost_ns).collect();
        costs.sort_unstable();
        let sums = aggregates(&drawn, None);
        assert!(sums.shares.iter().all(|(_, cost_ns)| costs.binary_search(cost_ns).is_ok()));
        let at = |wanted: f64| sums.shares.iter().find(|(share, _)| *share == wanted).map(|(_, cost_ns)| *cost_ns);
        assert_eq!(at(0.5), Some(costs[costs.len().div_ceil(2) - 1]));
        assert_eq!(at(1.0), costs.last().copied());
    }

    #[test]
    fn a_disturbed_chain_does_not_stretch_the_axis_and_is_not_the_worst() {
        let (mut drawn, _) = answered("nested-vmx-shadow-off-hog");
        let before = aggregates(&drawn, None);
        let chain = drawn.chains.iter_mut().find(|chain| chain.is_undisturbed()).unwrap();
        (chain.cost_ns, chain.interrupted) = (Some(90_000_000_000), true);
        let after = aggregates(&drawn, None);
        assert!(after.heat.to_ns <= before.heat.to_ns);
        assert_eq!((after.heat.beyond, after.disturbed), (1, before.disturbed + 1));
        assert_eq!(after.shares.last(), Some(&(1.0, 90_000_000_000)), "it counts all the same");
    }

    #[test]
    fn nothing_drawn_gives_sums_of_nothing() {
        let drawn = Drawn {
            timeline: base::timeline::Columns::new(Vec::new()),
            chains: Vec::new(),
            vcpus: Vec::new(),
            notes: Vec::new(),
            cut: None,
        };
        let sums = aggregates(&drawn, None);
        assert_eq!((sums.chains, sums.shares.len(), sums.worst), (0, 0, None));
        assert!(sums.slots.p99_ns.iter().all(Option::is_none));
    }
}
