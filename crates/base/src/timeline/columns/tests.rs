//! The store against a scan that walks through every slice for every pixel.

use super::*;
use crate::timeline::LaneKind;
use proptest::prelude::*;

const STATES: u8 = 3;

fn empty() -> (Columns, LaneId) {
    let state = |n: u8| State { name: format!("s{n}"), title: String::new() };
    let mut columns = Columns::new((0..STATES).map(state).collect());
    let lane = columns.add_lane(Lane { kind: LaneKind::Vcpu, group: "web".into(), title: "vCPU 0".into(), tid: None });
    (columns, lane)
}

fn filled(first_ns: u64, slices: &[(u8, u64)]) -> (Columns, LaneId, Vec<Slice>) {
    let (mut columns, lane) = empty();
    let mut at = first_ns;
    let mut truth = Vec::new();
    for (index, (state, length)) in slices.iter().enumerate() {
        let id = columns.push(lane, at, StateId(*state), &index.to_string());
        truth.push(Slice { id, span: Span { from_ns: at, to_ns: at + length }, state: StateId(*state) });
        at += length;
    }
    columns.end(lane, at);
    (columns, lane, truth)
}

fn overlap(a: Span, b: Span) -> u64 {
    a.to_ns.min(b.to_ns).saturating_sub(a.from_ns.max(b.from_ns))
}

fn scan(truth: &[Slice], window: Span, width: u32) -> Coverage {
    let mut coverage = Coverage { states: usize::from(STATES), ..Coverage::default() };
    for pixel in 0..width {
        let span = Span { from_ns: pixel_start(window, pixel, width), to_ns: pixel_start(window, pixel + 1, width) };
        let touching: Vec<&Slice> = truth.iter().filter(|slice| overlap(slice.span, span) > 0).collect();
        for state in 0..STATES {
            let of_state = touching.iter().filter(|slice| slice.state.0 == state);
            coverage.time_ns.push(of_state.map(|slice| overlap(slice.span, span)).sum());
        }
        coverage.count.push(touching.len() as u32);
        let longest = touching.iter().rev().max_by_key(|slice| slice.span.length_ns());
        coverage.longest.push(longest.map(|slice| slice.id.index));
    }
    coverage
}

proptest! {
    #[test]
    fn coverage_is_what_a_full_scan_finds(
        first in 0..500u64,
        slices in prop::collection::vec((0..STATES, 1..40u64), 0..400),
        from in 0..9_000u64,
        length in 0..9_000u64,
        width in 1..60u32,
    ) {
        let (columns, lane, truth) = filled(first, &slices);
        let window = Span { from_ns: from, to_ns: from + length };
        prop_assert_eq!(columns.coverage(lane, window, width), scan(&truth, window, width));
        let found = columns.slices(lane, window, 10);
        let touching: Vec<Slice> = truth.iter().filter(|slice| overlap(slice.span, window) > 0).copied().collect();
        prop_assert_eq!(found.left_out as usize, touching.len().saturating_sub(10));
        prop_assert_eq!(&found.slices[..], &touching[..touching.len().min(10)]);
    }

    #[test]
    fn zooming_never_changes_a_total(
        slices in prop::collection::vec((0..STATES, 1..1_000u64), 1..300),
        cut in 0..300_000u64,
        width in 1..50u32,
    ) {
        let (columns, lane, _) = filled(7, &slices);
        let all = columns.span();
        let cut = cut.clamp(all.from_ns, all.to_ns);
        let total = |window, width| -> Vec<u64> {
            let coverage = columns.coverage(lane, window, width);
            (0..coverage.states).map(|s| coverage.time_ns.iter().skip(s).step_by(coverage.states).sum()).collect()
        };
        let whole = total(all, 1);
        prop_assert_eq!(whole.iter().sum::<u64>(), all.length_ns());
        prop_assert_eq!(&total(all, width), &whole);
        let (left, right) = (total(Span { to_ns: cut, ..all }, width), total(Span { from_ns: cut, ..all }, width));
        let both: Vec<u64> = left.iter().zip(right).map(|(left, right)| left + right).collect();
        prop_assert_eq!(both, whole);
    }
}

#[test]
fn empty_backward_and_foreign_windows_are_empty() {
    let (columns, lane, _) = filled(100, &[(0, 10), (1, 20)]);
    for window in
        [Span { from_ns: 0, to_ns: 100 }, Span { from_ns: 130, to_ns: u64::MAX }, Span { from_ns: 120, to_ns: 110 }]
    {
        let coverage = columns.coverage(lane, window, 3);
        assert_eq!((coverage.time_ns.iter().sum::<u64>(), coverage.count), (0, vec![0; 3]), "{window:?}");
    }
    let everywhere = Span { from_ns: 0, to_ns: u64::MAX };
    assert_eq!(columns.coverage(LaneId(7), everywhere, 2).longest, [None, None]);
    assert_eq!(columns.coverage(lane, everywhere, 0), Coverage { states: 3, ..Coverage::default() });
    assert_eq!(columns.coverage(lane, everywhere, u32::MAX).count.len(), WIDEST as usize);
    assert_eq!(columns.detail(SliceId { lane, index: 2 }), None);
    assert_eq!(Columns::default().span(), Span::default());
}

#[test]
fn the_later_of_two_states_at_one_instant_wins_with_its_detail() {
    let (mut columns, lane) = empty();
    columns.push(lane, 10, StateId(0), "entered");
    columns.push(lane, 20, StateId(1), "a");
    let id = columns.push(lane, 20, StateId(2), "");
    assert_eq!(columns.push(lane, 15, StateId(1), "b"), id, "a clock that runs backwards stays where it was");
    columns.end(lane, 30);
    let (slice, detail) = columns.detail(id).unwrap();
    assert_eq!((slice.span, slice.state, detail), (Span { from_ns: 20, to_ns: 30 }, StateId(1), "b"));
    assert_eq!(columns.coverage(lane, columns.span(), 1).time_ns, [10, 10, 0]);
}

#[test]
fn a_slice_that_has_not_ended_takes_no_time_yet() {
    let (mut columns, lane) = empty();
    columns.push(lane, u64::MAX - 5, StateId(0), "");
    columns.push(lane, u64::MAX - 1, StateId(1), "");
    let window = Span { from_ns: 0, to_ns: u64::MAX };
    assert_eq!(columns.coverage(lane, window, 1).count, [1]);
    columns.end(lane, u64::MAX);
    assert_eq!(
        columns.coverage(lane, window, 1),
        Coverage { states: 3, time_ns: vec![4, 1, 0], longest: vec![Some(0)], count: vec![2] }
    );
}
