//! Every chain is in the sums, however many there are and whatever disturbed it.

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
        assert_eq!(sums.disturbed, total("disturbed"), "{name}");
        let undisturbed = sums.chains - sums.censored - sums.disturbed;
        assert_eq!(sums.slots.chains.iter().sum::<u64>(), sums.chains);
        assert_eq!(sums.slots.undisturbed.iter().sum::<u64>(), undisturbed);
        assert_eq!(sums.heat.cells.iter().map(|(_, count)| u64::from(*count)).sum::<u64>(), undisturbed);
        // Each exit of each undisturbed chain stands in table `chain_exits`, and in one slot.
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
    let undisturbed = drawn.chains.iter().filter(|chain| chain.is_undisturbed());
    let mut costs: Vec<u64> = undisturbed.filter_map(|chain| chain.cost_ns).collect();
    costs.sort_unstable();
    let sums = aggregates(&drawn, None);
    assert!(sums.shares.iter().all(|(_, cost_ns)| costs.binary_search(cost_ns).is_ok()));
    let at = |wanted: f64| sums.shares.iter().find(|(share, _)| *share == wanted).map(|(_, cost_ns)| *cost_ns);
    assert_eq!(at(0.5), Some(costs[costs.len().div_ceil(2) - 1]));
    assert_eq!(at(1.0), costs.last().copied());
}

#[test]
fn a_disturbed_chain_is_counted_and_is_in_no_picture() {
    let (mut drawn, _) = answered("nested-vmx-shadow-off-hog");
    let before = aggregates(&drawn, None);
    let chain = drawn.chains.iter_mut().find(|chain| chain.is_undisturbed()).unwrap();
    (chain.cost_ns, chain.interrupted) = (Some(90_000_000_000), true);
    let after = aggregates(&drawn, None);
    assert_eq!((after.chains, after.disturbed), (before.chains, before.disturbed + 1));
    let all = |sums: &Aggregates| sums.heat.cells.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
    assert_eq!(all(&after), all(&before) - 1);
    let most = |sums: &Aggregates| sums.shares.last().map(|(_, cost_ns)| *cost_ns);
    assert!(after.heat.to_ns <= before.heat.to_ns && most(&after) <= most(&before));
    assert!(after.slots.p99_ns.iter().flatten().all(|cost_ns| Some(*cost_ns) <= most(&before)));
}

#[test]
fn very_many_chains_are_all_counted_in_bounded_memory() {
    let window = Span { from_ns: 0, to_ns: 600_000_000 };
    let mut sums = Sums::new(window, window);
    let mut costs = Vec::new();
    for number in 0..200_000u64 {
        let cost_ns = 1_000 + number.wrapping_mul(2_654_435_761) % 1_000_003;
        let is_undisturbed = number % 100 > 0;
        costs.extend(is_undisturbed.then_some(cost_ns));
        // All of them in one slot.
        let span = Span { from_ns: 5_000_000 + number, to_ns: 5_000_000 + number + cost_ns };
        sums.add(&One { span, exits: 3, cost_ns: Some(cost_ns), is_undisturbed });
    }
    costs.sort_unstable();
    let slot = sums.slots.iter().find(|slot| slot.chains > 0).unwrap();
    assert!(slot.costs.counts.len() <= MOST_COSTS);
    let told = sums.finish();
    assert_eq!((told.chains, told.disturbed, told.slots.exits.iter().sum::<u64>()), (200_000, 2_000, 594_000));
    assert_eq!(told.heat.cells.iter().map(|(_, count)| u64::from(*count)).sum::<u64>(), 198_000);
    for (share, cost_ns) in &told.shares {
        let exact = costs[((share * 198_000.0).ceil() as usize).max(1) - 1];
        assert!(cost_ns.abs_diff(exact) as f64 <= exact as f64 / 128.0, "{share}: {cost_ns}, not {exact}");
    }
    assert_eq!(told.shares.last(), Some(&(1.0, costs[197_999])), "the most is exact");
}

#[test]
fn nothing_drawn_gives_sums_of_nothing() {
    let drawn = Drawn {
        host: base::Level::L0,
        timeline: base::timeline::Columns::new(Vec::new()),
        chains: Vec::new(),
        wakes: base::timeline::WakeUps::default(),
        wakers: Vec::new(),
        vcpus: Vec::new(),
        notes: Vec::new(),
        cut: None,
    };
    let sums = aggregates(&drawn, None);
    assert_eq!((sums.chains, sums.shares.len(), sums.worst), (0, 0, None));
    assert!(sums.slots.p99_ns.iter().all(Option::is_none));
}
