//! How often was a vCPU away for how long, without a break, and why?

use super::super::measure::Measured;
use super::{goals, kind, whom};
use base::Figure;
use base::figure::{Axis, Bin, Drawing, Edge, Histogram};
use base::number::{duration, thousands};
use facts::Case;
use facts::budget::{Budget, Goal, Metric, exact};
use facts::losses::{Definition, LostIn, Pieces, Stretches};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Lengths up to this power of ten ns, eleven days, have a bin.
const LONGEST_POWER: u32 = 15;

/// Losses without a break of one vCPU, by the state that took most of each and by length.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    /// One number for each bin.
    counts: BTreeMap<LostIn, Vec<u64>>,
}

/// Where bins begin: at 1, 2 and 5 times powers of ten ns, and where a limit of the budget is broken.
pub(crate) fn ends(budget: Option<&Budget>) -> Vec<u64> {
    let round = (0..=LONGEST_POWER).flat_map(|power| [1, 2, 5].map(|times| times * 10_u64.pow(power)));
    let mut ends: BTreeSet<u64> = round.collect();
    let goals = budget.into_iter().flat_map(|budget| &budget.goals);
    for goal in goals.filter(|goal| goal.metric == Metric::PreemptPeriod && goal.definition == Definition::Involuntary)
    {
        // A bin of one nanosecond between the limit and what breaks it would be none.
        ends.remove(&goal.limit_ns);
        ends.insert(breaks_ns(goal));
    }
    ends.into_iter().collect()
}

/// The least length that breaks the goal.
fn breaks_ns(goal: &Goal) -> u64 {
    goal.most_ns().saturating_add(1)
}

impl Pauses {
    /// Those of `pieces`, which `lost` has without their breaks.
    pub(crate) fn of(lost: &Stretches, pieces: &Pieces, ends: &[u64]) -> Self {
        let mut counts: BTreeMap<LostIn, Vec<u64>> = BTreeMap::new();
        let mut pieces = pieces.iter().peekable();
        // Of one stretch; there may be a million.
        let mut taken: Vec<(LostIn, u64)> = Vec::new();
        for stretch in lost.spans() {
            taken.clear();
            while let Some(piece) = pieces.next_if(|piece| piece.span.from_ns < stretch.to_ns) {
                let (state, ns) = (piece.cause.state, piece.span.length_ns());
                match taken.iter_mut().find(|(known, _)| *known == state) {
                    Some((_, sum)) => *sum += ns,
                    None => taken.push((state, ns)),
                }
            }
            let most = taken.iter().min_by_key(|(state, ns)| (Reverse(*ns), *state));
            let Some((most, _)) = most.copied() else { continue };
            let bin = ends.partition_point(|end| *end <= stretch.length_ns()).saturating_sub(1);
            counts.entry(most).or_insert_with(|| vec![0; ends.len()])[bin] += 1;
        }
        Self { counts }
    }
}

/// All of them in one picture; none where nothing was lost.
pub(super) fn figure(measured: &[Measured<'_>], case: &Case) -> Option<Figure> {
    let ends = ends(case.budget());
    let mut counts: BTreeMap<LostIn, Vec<u64>> = BTreeMap::new();
    for (state, more) in measured.iter().flat_map(|one| &one.pauses.counts) {
        let sums = counts.entry(*state).or_insert_with(|| vec![0; ends.len()]);
        sums.iter_mut().zip(more).for_each(|(sum, count)| *sum += count);
    }
    let in_bin = |bin: usize| counts.values().map(|counts| counts[bin]).sum::<u64>();
    let goals: Vec<&Goal> = goals(case, Metric::PreemptPeriod).collect();
    let bin_of = |ns: u64| ends.partition_point(|end| *end <= ns).saturating_sub(1);
    let filled: Vec<usize> = (0..ends.len() - 1).filter(|bin| in_bin(*bin) > 0).collect();
    // Both sides of a limit are seen, though nothing lies there.
    let limits = goals.iter().map(|goal| bin_of(breaks_ns(goal)));
    let (first, last) = (*filled.first()?, *filled.last()?);
    let first = limits.clone().map(|bin| bin.saturating_sub(1)).fold(first, usize::min);
    let last = limits.fold(last, usize::max).min(ends.len() - 2);
    let bins = (first..=last).map(|bin| Bin {
        from: ends[bin] as f64,
        to: ends[bin + 1] as f64,
        counts: counts.values().map(|counts| counts[bin]).collect(),
    });
    let over = goals.iter().map(|goal| {
        let over: u64 = (bin_of(breaks_ns(goal))..ends.len()).map(in_bin).sum();
        let none = if over == 0 { "none".to_owned() } else { thousands(over) };
        format!("; {none} over the limit of {} ({})", exact(goal.limit_ns), goal.id)
    });
    let total: u64 = (0..ends.len()).map(in_bin).sum();
    let longest_ns = measured.iter().map(|one| one.definitions[0].longest_ns).max().unwrap_or(0);
    let mut caption = format!(
        "{} without a break, of {}: the longest {}{}.",
        base::number::counted(total, "loss", "losses"),
        whom(measured.len(), measured),
        duration(longest_ns as f64),
        over.collect::<String>()
    );
    let outside_ns: u64 = measured.iter().map(|one| one.losses.outside_ns).sum();
    let unknown_ns = measured.iter().map(Measured::unknown_ns).sum::<u64>().saturating_sub(outside_ns);
    let not_counted = [(outside_ns, "before a guest ran or after it ended"), (unknown_ns, "of unknown time")];
    let not_counted = not_counted.into_iter().filter(|(ns, _)| *ns > 0);
    let not_counted: Vec<String> = not_counted.map(|(ns, which)| format!("{} {which}", duration(ns as f64))).collect();
    if !not_counted.is_empty() {
        caption.push_str(&format!(" Not counted: {}.", base::number::list(&not_counted)));
    }
    let taken = |state: LostIn| {
        let culprits = measured.iter().flat_map(|one| &one.culprits).filter(move |(named, _)| named.state == state);
        culprits.map(|(named, sums)| (named.by.as_str(), sums.total_ns))
    };
    let kind = |state: &LostIn| kind(*state, taken(*state));
    let edge = |goal: &&Goal| Edge { label: goal.id.clone(), value: goal.limit_ns as f64 };
    Some(Figure {
        id: "pauses".into(),
        title: "How long vCPUs were away without a break".into(),
        caption,
        in_terminals: !goals.is_empty(),
        drawing: Drawing::Histogram(Histogram {
            x: Axis { title: "length".into(), unit: "ns", is_logarithmic: true },
            counted: "losses",
            kinds: counts.keys().map(kind).collect(),
            bins: bins.collect(),
            limits: goals.iter().map(edge).collect(),
        }),
    })
}
