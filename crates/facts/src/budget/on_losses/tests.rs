//! Goals on losses, held against windows that were computed elsewhere.

use super::*;
use crate::budget::{Goal, Verdict, built_in};
use proptest::prelude::*;

const US: u64 = 1_000;

fn spans(of: &[(u64, u64)], unit_ns: u64) -> Vec<Span> {
    of.iter().map(|(from, to)| Span { from_ns: from * unit_ns, to_ns: to * unit_ns }).collect()
}

/// A vCPU that lost these stretches for certain, and may have lost those.
fn lost(span_ns: u64, certain: &[Span], unknown: &[Span]) -> Lost {
    let (certain, unknown) = (Stretches::of(certain.iter().copied()), Stretches::of(unknown.iter().copied()));
    let possible = certain.or(&unknown);
    Lost { span: Span { from_ns: 0, to_ns: span_ns }, certain, possible, unknown_ns: unknown.total_ns(), outside_ns: 0 }
}

/// A goal of the built-in budget that takes no length of trace.
fn goal(id: &str) -> Goal {
    let mut goal = built_in("kvm4nfv-2015").unwrap().goals.into_iter().find(|goal| goal.id == id).unwrap();
    goal.require.trace_ns = None;
    goal
}

fn judged(goal: &Goal, lost: &Lost) -> (Verdict, u64) {
    let judgement = judge(goal, lost, &[], 0);
    (judgement.verdict, judgement.bounds.unwrap().value_ns)
}

/// V1 to V3 with their exact answers; aligned tumbling windows would pass V1 and V3 at limits of 23 and 26 us.
#[test]
fn windows_are_judged_wherever_they_begin() {
    let v1 = lost(4_000 * US, &spans(&[(200, 212), (990, 1004), (1500, 1509), (1985, 1993), (2600, 2605)], US), &[]);
    let v2 = lost(10_000 * US, &spans(&[(100, 110), (500, 8498), (9000, 9005)], US), &[]);
    let v3 = lost(4_000 * US, &spans(&[(10, 20), (950, 965), (1015, 1030), (1990, 2000), (3005, 3006)], US), &[]);
    let window = goal("preempt-window");
    for (lost, us) in [(&v1, 28), (&v2, 1_000), (&v3, 30)] {
        assert_eq!(judged(&window, lost), (Verdict::Fail, us * US));
        let at = |limit_ns| judged(&Goal { limit_ns, ..window.clone() }, lost).0;
        assert_eq!(at(us * US), Verdict::Fail, "a loss as large as the limit breaks <");
        assert_eq!(at(us * US + 1), Verdict::Pass);
    }
    let v1 = judge(&window, &v1, &[], 0);
    assert_eq!(v1.worst, Some(Span { from_ns: 990 * US, to_ns: 1_990 * US }));
    assert_eq!(v1.episodes.map(|episodes| (episodes.low, episodes.high, episodes.blocks)), Some((1, 1, 1)));
}

/// The golden vector: V4, and its longest stretch without a break.
#[test]
fn the_golden_vector_has_its_windows_and_its_longest_break() {
    let golden = lost(40_000, &spans(&[(1_000, 2_000), (5_000, 12_500), (29_000, 31_000)], 1), &[]);
    for (window_ns, loss_ns) in [(12_000, 8_500), (10_000, 7_500), (30_000, 10_500)] {
        let window = Goal { window_ns: Some(window_ns), limit_ns: 8_500, ..goal("preempt-window") };
        let verdict = if loss_ns < 8_500 { Verdict::Pass } else { Verdict::Fail };
        assert_eq!(judged(&window, &golden), (verdict, loss_ns), "{window_ns}");
    }
    let period = goal("preempt-period");
    assert_eq!(judged(&period, &golden), (Verdict::Pass, 7_500));
    let met_exactly = Goal { limit_ns: 7_500, ..period.clone() };
    assert_eq!(judged(&met_exactly, &golden), (Verdict::Pass, 7_500), "<= takes the limit itself");
    let broken = judge(&Goal { limit_ns: 1_999, ..period }, &golden, &[], 0);
    assert_eq!((broken.verdict, broken.counts.unwrap().over_low), (Verdict::Fail, 2));
    assert_eq!(broken.worst, Some(Span { from_ns: 5_000, to_ns: 12_500 }));
}

#[test]
fn twenty_microseconds_are_a_violation_already() {
    let window = goal("preempt-window");
    let of = |us: u64| judged(&window, &lost(4_000 * US, &spans(&[(100, 100 + us)], US), &[])).0;
    assert_eq!((of(19), of(20), of(21)), (Verdict::Pass, Verdict::Fail, Verdict::Fail));
}

#[test]
fn unknown_time_decides_between_pass_and_inconclusive() {
    let window = goal("preempt-window");
    let certain = spans(&[(100, 110)], US);
    let harmless = lost(4_000 * US, &certain, &spans(&[(3_000, 3_015)], US));
    assert_eq!(judge(&window, &harmless, &[], 0).verdict, Verdict::Pass, "they are in no window together");
    let unsure = lost(4_000 * US, &certain, &spans(&[(900, 915)], US));
    let judgement = judge(&window, &unsure, &[], 0);
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
    assert_eq!(judgement.doubts, [Doubt::UnknownTime { high_ns: 25_000 }]);
    let mut strict = goal("preempt-window");
    strict.require.unknown_share = Some(0.003);
    let judgement = judge(&strict, &harmless, &[], 0);
    assert_eq!(judgement.doubts, [Doubt::UnknownShare { share: 0.00375, most: 0.003 }]);
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
}

#[test]
fn too_short_a_trace_is_not_enough_and_not_zero() {
    let window = goal("preempt-window");
    let short = judge(&window, &lost(999 * US, &[], &[]), &[], 0);
    assert_eq!((short.verdict, short.bounds), (Verdict::Inconclusive, None));
    assert_eq!(short.doubts[0].to_string(), "not enough trace: 999 us were recorded, and a window is 1 ms long");
    let minute = built_in("kvm4nfv-2015").unwrap().goals.remove(4);
    let (quiet, broken) = (lost(4_000 * US, &[], &[]), lost(4_000 * US, &spans(&[(0, 20)], US), &[]));
    assert_eq!(judge(&minute, &quiet, &[], 0).verdict, Verdict::Inconclusive, "a PASS takes 60 s");
    assert_eq!(judge(&minute, &broken, &[], 0).verdict, Verdict::Fail, "a FAIL takes none");
    assert_eq!(judge(&minute, &lost(60_000_000 * US, &[], &[]), &[], 0).verdict, Verdict::Pass);
}

#[test]
fn what_a_trace_cannot_show_is_no_pass() {
    let (window, quiet) = (goal("preempt-window"), lost(4_000 * US, &[], &[]));
    let judged = |doubt| judge(&window, &quiet, &[doubt], 0).verdict;
    assert_eq!(judged(Doubt::Unseen("sched_switch")), Verdict::Inconclusive);
    assert_eq!(judged(Doubt::Uncalibrated), Verdict::Inconclusive);
    let broken = lost(4_000 * US, &spans(&[(0, 37)], US), &[]);
    assert_eq!(judge(&window, &broken, &[Doubt::Unseen("kvm_exit")], 0).verdict, Verdict::Fail);
    assert_eq!(judge(&window, &broken, &[], 5_000).verdict, Verdict::Fail, "a quarter of the limit is allowed");
    assert_eq!(judge(&window, &broken, &[], 5_001).verdict, Verdict::Inconclusive);
}

proptest! {
    #[test]
    fn more_unknown_time_never_makes_a_pass(
        pieces in prop::collection::vec((0u64..4_000, 1u64..30), 0..8),
        unknown in prop::collection::vec((0u64..4_000, 1u64..200), 0..4),
        more in prop::collection::vec((0u64..4_000, 1u64..200), 0..4),
        hides in any::<bool>(),
    ) {
        let sorted = |of: &[(u64, u64)]| {
            let mut spans = spans(&of.iter().map(|(from, length)| (*from, (from + length).min(4_000))).collect::<Vec<_>>(), US);
            spans.sort_by_key(|span| span.from_ns);
            spans
        };
        let before = lost(4_000 * US, &sorted(&pieces), &sorted(&unknown));
        // What becomes unknown may be what was lost: then it is no longer certain.
        let keeps = if hides { pieces.len() / 2 } else { pieces.len() };
        let all: Vec<_> = unknown.iter().chain(&more).chain(&pieces[keeps..]).copied().collect();
        let after = lost(4_000 * US, &sorted(&pieces[..keeps]), &sorted(&all));
        for id in ["preempt-window", "preempt-period"] {
            let (first, second) = (judge(&goal(id), &before, &[], 0).verdict, judge(&goal(id), &after, &[], 0).verdict);
            prop_assert!(second != Verdict::Pass || first == Verdict::Pass, "{id}: {first:?} became {second:?}");
        }
    }
}
