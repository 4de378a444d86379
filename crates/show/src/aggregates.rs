//! What all chains of a window add up to.
//!
//! ```text
//! chains that begin in the window --> heat:   how many in each cell of time x cost (logarithmic)
//!                                 --> slots:  how many in each of 600 stretches, their exits, p50 and p99 of the last few
//!                                 --> shares: cost at quantiles of all of them
//! ```
//! Costs and exits are those of undisturbed chains; how many others there are is told.
//!
//! A page holds some chains and a server gives them by the thousand; pictures of all chains are drawn from these sums, which take
//! some 10 KB, packed. Counts, sums, the least and the most are exact. So are quantiles, unless a slot has more than 2,048 different
//! costs: then they are at most a part in some hundred too low.

use base::Span;
use base::number::percent;
use base::timeline::{Chain, ChainSums, Drawn, Timeline, pixel_start};
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Columns of the heat map, some slots each: its cells are 5 pixels wide on a page of 1,000.
const COLUMNS: u32 = 200;

/// Rows of the heat map.
const ROWS: u32 = 36;

/// Stretches for values over time: more than a gauge tells apart when it is played back.
const SLOTS: u32 = 600;

/// Percentiles at an instant are of the chains of so many slots up to it.
const BACK: u32 = 24;

/// Shares at which the curve of costs is drawn; those that fewer chains than one lie beyond are left out.
const SHARES: [f64; 13] = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999];

/// Sums over the chains that begin in a window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Aggregates {
    pub(crate) t0_ns: u64,
    pub(crate) t1_ns: u64,
    pub chains: u64,
    /// Those whose end was not seen, which have no cost.
    pub censored: u64,
    /// Closed ones in which the guest hypervisor halted or whose nested guest moved: their cost is not that of one exit.
    pub disturbed: u64,
    /// Cost of undisturbed chains over time.
    pub heat: Heat,
    /// Quantile and cost of undisturbed chains, from the least to the most.
    pub shares: Vec<(f64, u64)>,
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
    /// Least cost, where the lowest row begins.
    pub from_ns: u64,
    /// Above the most.
    pub to_ns: u64,
    /// Cells with chains, row by row from below: place and how many.
    pub cells: Vec<(u32, u32)>,
}

/// Values over time, one for each stretch of the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slots {
    /// Over how many slots up to its own a percentile is taken.
    pub back: u32,
    /// Chains that begin in the slot.
    pub chains: Vec<u64>,
    /// Those of them that were closed and not disturbed.
    pub undisturbed: Vec<u64>,
    /// Exits of the undisturbed ones.
    pub exits: Vec<u64>,
    /// Median cost of the undisturbed chains of the last `back` slots; `None` without one.
    pub p50_ns: Vec<Option<u64>>,
    /// Their 99th percentile.
    pub p99_ns: Vec<Option<u64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Place {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// The sums of `window`, or of everything.
pub fn aggregates(drawn: &Drawn, window: Option<Span>) -> Aggregates {
    let span = drawn.timeline.span();
    let mut sums = Sums::new(window.unwrap_or(span), span);
    drawn.chains.iter().for_each(|chain| sums.add(&One::from(chain)));
    sums.finish()
}

/// What the sums need of a chain.
#[derive(Debug, Clone, Copy)]
pub struct One {
    span: Span,
    exits: u64,
    cost_ns: Option<u64>,
    is_undisturbed: bool,
}

impl From<&Chain> for One {
    fn from(chain: &Chain) -> Self {
        let is_undisturbed = chain.is_undisturbed();
        Self { span: chain.span, exits: chain.exits, cost_ns: chain.cost_ns, is_undisturbed }
    }
}

impl From<&ChainSums<'_>> for One {
    fn from(chain: &ChainSums<'_>) -> Self {
        let &ChainSums { span, exits, cost_ns, is_undisturbed, .. } = chain;
        Self { span, exits, cost_ns, is_undisturbed }
    }
}

/// Sums of a window, to which chains are added in any order. They take the same memory for any number of chains.
pub struct Sums {
    window: Span,
    /// A chain that begins with the last event belongs to a window that ends there.
    to_the_end: bool,
    censored: u64,
    disturbed: u64,
    slots: Vec<Slot>,
    /// Least and most cost.
    range: Option<(u64, u64)>,
    /// Cost, begin and end of the most expensive undisturbed chain; of equals the last one.
    worst: Option<(u64, u64, u64)>,
}

/// Chains that begin in one stretch.
#[derive(Default)]
struct Slot {
    chains: u64,
    undisturbed: u64,
    exits: u64,
    costs: Costs,
}

impl Sums {
    /// Nothing, of `window` in a recording of `span`.
    pub fn new(window: Span, span: Span) -> Self {
        Self {
            window,
            to_the_end: window.to_ns >= span.to_ns,
            censored: 0,
            disturbed: 0,
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            range: None,
            worst: None,
        }
    }

    /// Adds a chain, if it begins in the window.
    pub fn add(&mut self, chain: &One) {
        let at_ns = chain.span.from_ns;
        if at_ns < self.window.from_ns || (at_ns >= self.window.to_ns && !self.to_the_end) {
            return;
        }
        let slot = &mut self.slots[stretch(self.window, at_ns, SLOTS) as usize];
        slot.chains += 1;
        let Some(cost_ns) = chain.cost_ns else {
            self.censored += 1;
            return;
        };
        if !chain.is_undisturbed {
            self.disturbed += 1;
            return;
        }
        slot.undisturbed += 1;
        slot.exits += chain.exits;
        slot.costs.add(cost_ns);
        let (least, most) = self.range.unwrap_or((cost_ns, cost_ns));
        self.range = Some((least.min(cost_ns), most.max(cost_ns)));
        self.worst = self.worst.max(Some((cost_ns, at_ns, chain.span.to_ns)));
    }

    pub fn finish(&self) -> Aggregates {
        Aggregates {
            t0_ns: self.window.from_ns,
            t1_ns: self.window.to_ns,
            chains: self.slots.iter().map(|slot| slot.chains).sum(),
            censored: self.censored,
            disturbed: self.disturbed,
            heat: self.heat(),
            shares: self.shares(),
            slots: self.slots(),
            worst: self.worst.map(|(_, from_ns, to_ns)| Place { from_ns, to_ns }),
        }
    }

    /// How far costs are rounded where there are very many, in a sentence; counts never are.
    pub fn rounded(&self) -> Option<String> {
        let bits = self.slots.iter().map(|slot| slot.costs.bits).min()?;
        (bits < u64::BITS).then(|| {
            let share = percent(0.5_f64.powi(bits.saturating_sub(1) as i32));
            format!("There are so many chains that their cost over time is rounded down, by {share} at most.")
        })
    }

    fn heat(&self) -> Heat {
        let (least_ns, most_ns) = self.range.unwrap_or((1, 1));
        let (from_ns, to_ns) = (least_ns.max(1), most_ns.max(1) + 1);
        let mut counts = vec![0u32; (COLUMNS * ROWS) as usize];
        let height = (to_ns as f64 / from_ns as f64).ln();
        for (slot, place) in self.slots.iter().zip(0..) {
            let column = place / (SLOTS / COLUMNS);
            for (cost_ns, count) in &slot.costs.counts {
                let row = (((*cost_ns).max(1) as f64 / from_ns as f64).ln() / height * f64::from(ROWS)) as u32;
                let cell = &mut counts[(row.min(ROWS - 1) * COLUMNS + column) as usize];
                *cell = cell.saturating_add(u32::try_from(*count).unwrap_or(u32::MAX));
            }
        }
        let cells = (0..).zip(counts).filter(|(_, count)| *count > 0).collect();
        Heat { columns: COLUMNS, rows: ROWS, from_ns, to_ns, cells }
    }

    fn shares(&self) -> Vec<(f64, u64)> {
        let Some((_, most_ns)) = self.range else { return Vec::new() };
        let mut costs: Vec<(u64, u64)> = self.slots.iter().flat_map(Slot::costs).collect();
        costs.sort_unstable();
        let count = costs.iter().map(|(_, count)| count).sum::<u64>();
        let told = SHARES.into_iter().filter(|share| 1.0 - share >= 1.0 / count as f64 - 1e-9);
        let at = |share: f64| (share, rank(costs.iter().copied(), count, share).unwrap_or(0));
        told.map(at).chain([(1.0, most_ns)]).collect()
    }

    fn slots(&self) -> Slots {
        let each = |of: fn(&Slot) -> u64| self.slots.iter().map(of).collect();
        let (mut p50_ns, mut p99_ns) = (Vec::new(), Vec::new());
        // The costs of the last slots, to which one is added while one is taken away.
        let mut recent: BTreeMap<u64, u64> = BTreeMap::new();
        for (place, slot) in self.slots.iter().enumerate() {
            for (cost_ns, count) in slot.costs() {
                *recent.entry(cost_ns).or_default() += count;
            }
            let gone = place.checked_sub(BACK as usize).map(|place| &self.slots[place]);
            for (cost_ns, count) in gone.into_iter().flat_map(Slot::costs) {
                if let Entry::Occupied(mut known) = recent.entry(cost_ns) {
                    *known.get_mut() -= count;
                    if *known.get() == 0 {
                        known.remove();
                    }
                }
            }
            let count = recent.values().sum();
            let at = |share| rank(recent.iter().map(|(cost_ns, count)| (*cost_ns, *count)), count, share);
            p50_ns.push(at(0.5));
            p99_ns.push(at(0.99));
        }
        Slots {
            back: BACK,
            chains: each(|slot| slot.chains),
            undisturbed: each(|slot| slot.undisturbed),
            exits: each(|slot| slot.exits),
            p50_ns,
            p99_ns,
        }
    }
}

impl Slot {
    /// Costs, each with its number.
    fn costs(&self) -> impl Iterator<Item = (u64, u64)> {
        self.costs.counts.iter().map(|(cost_ns, count)| (*cost_ns, *count))
    }
}

/// Different costs that are told apart in a slot: over a million chains in all of them, in some 50 MB.
const MOST_COSTS: usize = 2_048;

/// Costs and how often each occurred. They are exact until there are too many different ones; then each loses its last bits, as
/// many as it takes.
struct Costs {
    counts: BTreeMap<u64, u64>,
    /// Leading bits of a cost that are kept.
    bits: u32,
}

impl Default for Costs {
    fn default() -> Self {
        Self { counts: BTreeMap::new(), bits: u64::BITS }
    }
}

impl Costs {
    fn add(&mut self, cost_ns: u64) {
        *self.counts.entry(rounded(cost_ns, self.bits)).or_default() += 1;
        while self.counts.len() > MOST_COSTS {
            // Costs are seldom longer than seconds, of which this keeps a part in 65,536.
            self.bits = (self.bits - 1).min(16);
            for (cost_ns, count) in std::mem::take(&mut self.counts) {
                *self.counts.entry(rounded(cost_ns, self.bits)).or_default() += count;
            }
        }
    }
}

/// The first `bits` bits of a cost.
fn rounded(cost_ns: u64, bits: u32) -> u64 {
    let dropped = (u64::BITS - cost_ns.leading_zeros()).saturating_sub(bits);
    cost_ns.checked_shr(dropped).and_then(|kept| kept.checked_shl(dropped)).unwrap_or(0)
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

/// The least of the ordered `costs`, each with its number, that `share` of all `count` do not exceed; `None` of none.
fn rank(costs: impl Iterator<Item = (u64, u64)>, count: u64, share: f64) -> Option<u64> {
    let rank = ((share * count as f64).ceil() as u64).max(1);
    let mut so_far = 0;
    let mut reached = costs.skip_while(|(_, count)| {
        so_far += count;
        so_far < rank
    });
    reached.next().map(|(cost_ns, _)| cost_ns)
}

#[cfg(test)]
mod tests;
