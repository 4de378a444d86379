//! Bounds that searches found, before and after: intervals, which are apart or not.
//!
//! A search says between which rates frames begin to be lost. Where the interval of one side lies above that of the other, the searches
//! disagree; whether the change or the hour is the cause, one search a side cannot tell, and that is said.

use base::datapath::RateBounds;
use base::number::counted;
use base::{Cell, Shown, Table, TableSpec, shown, table};
use facts::datapaths::Bed;
use std::collections::BTreeMap;

/// Bounds of both sides.
pub(crate) const BOUNDS: TableSpec = table! {
    compare.bounds version 1:
    "Between which rates frames begin to be lost, before and after, by searches for one goal: the lowest and the highest bound of all \
          searches of a side. verdict: above or below if the interval after lies beyond the one before, overlap, or open where a deciding bound was not found.";
    key design, key_u64("") vnfs, key_u64("") size_bytes, key goal, key method, u64("") before_lower_pps,
    u64("") before_upper_pps, u64("") after_lower_pps, u64("") after_upper_pps, text verdict, count before_searches,
    count after_searches;
    Shown {
        whole: &["verdict"],
        ..shown![
            "Rates between which frames begin to be lost, before and after", 40;
            design, vnfs: "VNFs", size_bytes: "bytes", goal, before_lower_pps: "from", before_upper_pps: "to",
            after_lower_pps: "from, after", after_upper_pps: "to, after", verdict,
        ]
    }
};

/// What makes searches the same: design, VNFs, bytes, goal, method.
type Key = (String, u32, u32, String, String);

/// The bounds of all searches of a side.
#[derive(Debug, Clone, Copy)]
struct Interval {
    lower: Option<u64>,
    upper: Option<u64>,
    searches: u64,
}

/// A goal that both sides searched for.
pub(super) struct Found {
    key: Key,
    before: Interval,
    after: Interval,
}

impl Interval {
    fn of(found: &RateBounds) -> Self {
        Self { lower: found.lower_pps, upper: found.upper_pps, searches: 1 }
    }

    /// Both together: a bound that one of them lacks is not known.
    fn with(self, other: Self) -> Self {
        let least = self.lower.zip(other.lower).map(|(one, two)| one.min(two));
        let most = self.upper.zip(other.upper).map(|(one, two)| one.max(two));
        Self { lower: least, upper: most, searches: self.searches + other.searches }
    }
}

impl Found {
    fn verdict(&self) -> &'static str {
        let beyond = |low: Option<u64>, high: Option<u64>| low.zip(high).map(|(low, high)| low > high);
        match (beyond(self.after.lower, self.before.upper), beyond(self.before.lower, self.after.upper)) {
            (Some(true), _) => "above",
            (_, Some(true)) => "below",
            (Some(false), Some(false)) => "overlap",
            _ => "open",
        }
    }
}

/// The goals that both sides searched for.
pub(super) fn compared(before: &[&[Bed]], after: &[&[Bed]]) -> Vec<Found> {
    let [before, mut after] = [before, after].map(of);
    let both = before.into_iter().filter_map(|(key, before)| {
        let after = after.remove(&key)?;
        Some(Found { key, before, after })
    });
    both.collect()
}

fn of(side: &[&[Bed]]) -> BTreeMap<Key, Interval> {
    let mut all: BTreeMap<Key, Interval> = BTreeMap::new();
    for found in side.iter().flat_map(|beds| beds.iter()).flat_map(|bed| &bed.runs.bounds) {
        let key = (found.design.clone(), found.vnfs, found.size_bytes, found.goal.clone(), found.method.clone());
        let interval = Interval::of(found);
        all.entry(key).and_modify(|known| *known = known.with(interval)).or_insert(interval);
    }
    all
}

/// What they say in a sentence; none where nothing was searched.
pub(super) fn summary(all: &[Found]) -> Option<String> {
    let of = |verdict: &str| all.iter().filter(|found| found.verdict() == verdict).count() as u64;
    let searches = counted(all.len() as u64, "pair of searches", "pairs of searches");
    let said = match (of("above"), of("below")) {
        (0, 0) => format!("Of {searches} for the rate at which frames begin to be lost, none is apart."),
        (above, below) => format!(
            "Of {searches} for the rate at which frames begin to be lost, {above} found a higher rate after and {below} a lower one; one search \
             a side cannot tell the change from the hour."
        ),
    };
    (!all.is_empty()).then_some(said)
}

/// Table [`BOUNDS`].
pub(super) fn table(all: &[Found]) -> Table {
    let mut table = Table::new(&BOUNDS);
    for found in all {
        let (design, vnfs, size_bytes, goal, method) = &found.key;
        let cells: [Cell; 12] = [
            design.as_str().into(),
            u64::from(*vnfs).into(),
            u64::from(*size_bytes).into(),
            goal.as_str().into(),
            method.as_str().into(),
            found.before.lower.into(),
            found.before.upper.into(),
            found.after.lower.into(),
            found.after.upper.into(),
            found.verdict().into(),
            found.before.searches.into(),
            found.after.searches.into(),
        ];
        table.push(cells.into());
    }
    table
}
