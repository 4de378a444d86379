//! Edges and notes of known truth.

use super::*;
use crate::bench::probe::shared::Taken;

/// A guest whose counter is 1,000,000 ticks ahead, which is known up to 5.
const AHEAD: Bounds = Bounds { low: 999_995, high: 1_000_005 };

fn note(at: u64) -> u64 {
    at + 1_000_000
}

fn notes(at: &[u64]) -> Taken {
    Taken { notes: at.iter().map(|at| note(*at)).collect(), lost: 0 }
}

fn lengths(pairing: &Pairing) -> Vec<(u64, u64)> {
    pairing.answered.iter().map(|one| (one.edge, one.ticks(1_000_000))).collect()
}

#[test]
fn each_edge_is_answered_by_the_first_run_behind_it() {
    let mut pairing = Pairing::new(AHEAD);
    pairing.edges([100, 200]);
    pairing.notes(&notes(&[140]), 150);
    assert!(pairing.waits());
    pairing.edges([300]);
    pairing.notes(&notes(&[260, 390]), 1_000);
    assert_eq!(lengths(&pairing), [(100, 40), (200, 60), (300, 90)]);
    assert_eq!((pairing.rung, pairing.merged, pairing.extra, pairing.lost, pairing.unanswered()), (3, 0, 0, 0, 0));
}

#[test]
fn edges_before_one_run_are_merged_and_the_oldest_is_the_sample() {
    let mut pairing = Pairing::new(AHEAD);
    pairing.edges([100, 200, 300, 400]);
    pairing.notes(&notes(&[350, 410, 420]), 1_000);
    assert_eq!(lengths(&pairing), [(100, 250), (400, 10)]);
    assert_eq!((pairing.merged, pairing.extra), (2, 1), "the last run had no edge of its own");
    pairing.edges([500]);
    assert_eq!(pairing.unanswered(), 1);
}

#[test]
fn within_the_error_of_the_clocks_an_answer_may_seem_to_come_first() {
    let mut pairing = Pairing::new(AHEAD);
    pairing.edges([100]);
    pairing.notes(&notes(&[96]), 200);
    assert_eq!(lengths(&pairing), [(100, 0)]);
    pairing.edges([300]);
    pairing.notes(&notes(&[294]), 400);
    assert_eq!((pairing.extra, pairing.unanswered()), (1, 1), "that is more than the error");
}

#[test]
fn where_notes_are_lost_or_torn_nobody_guesses_a_length() {
    let mut pairing = Pairing::new(AHEAD);
    pairing.edges([100, 200, 300, 400]);
    pairing.notes(&Taken { lost: 2, ..notes(&[310, 410]) }, 1_000);
    assert_eq!((lengths(&pairing), pairing.lost, pairing.merged), (vec![(400, 10)], 3, 0));
    // Half of a number that was written, and one from the future.
    for (torn, edges, next) in [(5, [500, 600], 650), (700_000, [700, 800], 850)] {
        pairing.edges(edges);
        pairing.notes(&notes(&[torn]), 1_000);
        assert_eq!((pairing.answered.len(), pairing.unanswered()), (1, 2));
        pairing.notes(&notes(&[next]), 1_000);
        assert_eq!((pairing.answered.len(), pairing.unanswered()), (1, 0));
    }
    assert_eq!((pairing.torn, pairing.lost), (2, 7));
}

#[test]
fn every_edge_is_in_exactly_one_amount() {
    // Steps of a small generator: edges, answers, losses in any order.
    let mut state = 7_u64;
    let mut random = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for _ in 0..500 {
        let (mut pairing, mut now) = (Pairing::new(AHEAD), 1_000);
        for _ in 0..random(40) {
            now += 50 + random(100);
            match random(5) {
                0 | 1 => pairing.edges([now]),
                2 => pairing.notes(&notes(&[now]), now + 10),
                3 => pairing.notes(&Taken { lost: random(3), ..notes(&[now]) }, now + 10),
                _ => pairing.notes(&notes(&[now + 100_000]), now + 10),
            }
        }
        let Pairing { merged, lost, rung, ref answered, .. } = pairing;
        assert_eq!(answered.len() as u64 + merged + lost + pairing.unanswered(), rung);
        assert!(answered.is_sorted_by(|one, other| one.edge < other.edge && one.note < other.note));
    }
}
