//! Which exit in a guest's own trace is which exit that the machine below reflected?
//!
//! ```text
//! below   a b c d e f g h        reflected to one vCPU, in order: (reason, instruction pointer)
//! above     b c d e   g h i      kvm_exit of one CPU of the guest, in order
//! ```
//! Both list the same exits in the same order; one list may begin earlier, and events may be lost in either. If they are
//! equally long and agree in all reasons, the k-th is the k-th. Else stretches that occur once in either list are
//! anchors; those that keep their order are extended in both directions as far as the two agree (the idea of the
//! patience diff of B. Cohen, 2003). Other causes and effects that both sides list are matched in the same way.

use super::guest_side::OwnExit;
use super::host_side::Reflected;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use walk::events::reasons::Reason;

/// Exits in a row that make an anchor.
const ANCHOR: usize = 6;

/// Pairs (place below, place above), rising in both, with equal reasons.
pub(super) type Pairs = Vec<(usize, usize)>;

pub(super) fn by_order(below: &[Reflected], above: &[OwnExit]) -> Pairs {
    let same = |(one, other): (&Reflected, &OwnExit)| one.reason == other.reason;
    if below.len() == above.len() && below.iter().zip(above).all(same) {
        return (0..below.len()).map(|place| (place, place)).collect();
    }
    // At the edge of a gap two reasons can agree by chance; a place in the code hardly does.
    let low: Vec<(Reason, u64)> = below.iter().map(|exit| (exit.reason, exit.rip)).collect();
    let high: Vec<(Reason, u64)> = above.iter().map(|exit| (exit.reason, exit.rip)).collect();
    in_order(&low, &high)
}

/// Pairs of equal things in two lists in which the same things happened in the same order.
pub(super) fn in_order<T: Hash + Eq>(below: &[T], above: &[T]) -> Pairs {
    let mut pairs: Pairs = Vec::new();
    for (low, high) in anchors(below, above) {
        let (mut from, mut to) = ((low, high), (low, high));
        let free = pairs.last().map_or((0, 0), |last| (last.0 + 1, last.1 + 1));
        if low < free.0 || high < free.1 {
            continue;
        }
        while from.0 > free.0 && from.1 > free.1 && below[from.0 - 1] == above[from.1 - 1] {
            from = (from.0 - 1, from.1 - 1);
        }
        while to.0 < below.len() && to.1 < above.len() && below[to.0] == above[to.1] {
            to = (to.0 + 1, to.1 + 1);
        }
        pairs.extend((from.0..to.0).zip(from.1..to.1));
    }
    pairs
}

/// Pairs found by time: `placed` are the times of `above` on the axis of `below`, the earliest first, where a counter that was
/// set back leaves several. An exit was reflected before the guest wrote it down, and the next one was not.
pub(super) fn by_time<P>(below: &[Reflected], above: &[OwnExit], placed: impl Fn(&OwnExit) -> P) -> Pairs
where
    P: IntoIterator<Item = u64>,
{
    let mut pairs: Pairs = Vec::new();
    for (high, exit) in above.iter().enumerate() {
        let last = pairs.last().map(|(last, _)| *last);
        let before = |at: u64| below.partition_point(|reflected| reflected.at <= at).checked_sub(1);
        // Both lists are in order, so what an earlier exit took is of an earlier stretch.
        let fits = |low: &usize| last.is_none_or(|last| last < *low) && below[*low].reason == exit.reason;
        let found = placed(exit).into_iter().filter_map(before).find(fits);
        pairs.extend(found.map(|low| (low, high)));
    }
    pairs
}

/// Places of stretches that occur once in either list, rising in both.
fn anchors<T: Hash + Eq>(below: &[T], above: &[T]) -> Pairs {
    let (low, high) = (once(below), once(above));
    let mut common: Pairs = low.iter().filter_map(|(words, place)| Some((*place, *high.get(words)?))).collect();
    common.sort_unstable_by_key(|(_, high)| *high);
    longest_rising(&common)
}

/// Stretches that occur once, with their places.
fn once<T: Hash + Eq>(words: &[T]) -> FxHashMap<&[T], usize> {
    let mut places: FxHashMap<&[T], Option<usize>> = FxHashMap::default();
    for (place, stretch) in words.windows(ANCHOR).enumerate() {
        places.entry(stretch).and_modify(|known| *known = None).or_insert(Some(place));
    }
    places.into_iter().filter_map(|(stretch, place)| Some((stretch, place?))).collect()
}

/// The longest sub-list that rises in the first number too (patience sorting).
fn longest_rising(pairs: &[(usize, usize)]) -> Pairs {
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (place, (low, _)) in pairs.iter().enumerate() {
        let pile = ends.partition_point(|end| pairs[*end].0 < *low);
        before.push(pile.checked_sub(1).map(|left| ends[left]));
        if pile == ends.len() { ends.push(place) } else { ends[pile] = place }
    }
    let mut rising: Pairs =
        std::iter::successors(ends.last().copied(), |place| before[*place]).map(|place| pairs[place]).collect();
    rising.reverse();
    rising
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use walk::events::reasons::{Isa, Reason};

    fn lists(rips: &[u64]) -> (Vec<Reflected>, Vec<OwnExit>) {
        let reason = |rip: &u64| Reason::of(Isa::Svm, 0x60 + rip % 5);
        let low = rips.iter().enumerate();
        let low = low.map(|(at, rip)| Reflected { at: 10 * at as u64, reason: reason(rip), rip: *rip });
        let high = rips.iter().map(|rip| OwnExit { at: 0, reason: reason(rip), rip: *rip, entered: None });
        (low.collect(), high.collect())
    }

    proptest! {
        #[test]
        fn a_list_that_lacks_its_ends_and_a_gap_is_matched_right(
            rips in prop::collection::vec(0u64..1_000_000_000, 80..200),
            first in 0usize..20, last in 0usize..20, gap in 0usize..20,
        ) {
            let (low, mut high) = lists(&rips);
            let true_places: Vec<usize> = (0..rips.len()).collect();
            let mut kept = true_places;
            kept.truncate(rips.len() - last);
            kept.drain(30..30 + gap);
            kept.drain(..first);
            high = kept.iter().map(|place| high[*place]).collect();
            let pairs = by_order(&low, &high);
            prop_assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
            let wrong = pairs.iter().filter(|(low, high)| kept[*high] != *low).count();
            prop_assert_eq!(wrong, 0);
            prop_assert!(pairs.len() == kept.len(), "{} of {}", pairs.len(), kept.len());
        }
    }

    #[test]
    fn strangers_do_not_match() {
        let (low, _) = lists(&(0..50).map(|n| n * 7919 % 1009).collect::<Vec<_>>());
        let (_, high) = lists(&(0..60).map(|n| n * 104_729 % 2003 + 5000).collect::<Vec<_>>());
        assert!(by_order(&low, &high).is_empty());
    }

    #[test]
    fn an_exit_is_matched_to_the_one_handed_up_last() {
        let (low, high) = lists(&[1, 2, 3, 9]);
        let times = [(1, 4), (3, 29), (9, 28)];
        let at = |exit: &OwnExit| times.iter().find(|(rip, _)| *rip == exit.rip).map(|(_, at)| *at);
        // The last one lies before the one it should follow: its exit is taken.
        assert_eq!(by_time(&low, &high, at), [(0, 0), (2, 2)]);
    }
}
