//! Interrupts that the machine below injected and handlers in the guest's trace: clocks of guests without guests.

use super::generated::{aligned_but, methods, score, story};
use generate::guest::pair;
use generate::{GuestClock, Pair};
use kvmscope_analysis::facts::align::Alignment;

const HANDLERS: &str = "local_timer_entry";
/// Accesses to MSRs, which tell by themselves.
const ACCESSES: [&str; 2] = ["write_msr", "read_msr"];
/// A guest that halts until its timer wakes it, and has no guest.
const HALTS: &str = "halts";

fn halting(seed: u64, clock: GuestClock) -> Pair {
    pair(&story(HALTS, seed), &clock, seed)
}

fn aligned(pair: &Pair, hidden: &[&str]) -> Alignment {
    aligned_but(&pair.below, &pair.above, None, &[hidden, &ACCESSES].concat())
}

#[test]
fn a_guest_without_guests_is_placed_by_its_interrupts() {
    for seed in 1..8 {
        let drift_ppb = (seed as i64 - 4) * 90_000;
        let pair = halting(seed, GuestClock { offset: -31_000_000_000, drift_ppb, ..GuestClock::default() });
        let alignment = aligned(&pair, &[]);
        assert_eq!(methods(&alignment), ["causal_lines"]);
        let (wrong, placed, worst_ns) = score(&pair, &alignment);
        assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()), "{seed}");
        assert!(worst_ns < 1_000.0, "{seed}: {worst_ns} ns");
        assert_eq!(alignment.cpus[0].outside.violations, 0);
        assert_eq!(methods(&aligned(&pair, &[HANDLERS])), ["none"], "nothing else tells");
    }
}

#[test]
fn a_guest_that_was_recorded_for_a_shorter_time_finds_its_place() {
    for seed in 1..8 {
        let mut pair = halting(seed, GuestClock { offset: 5_000, ..GuestClock::default() });
        let fifth = pair.true_ns.len() / 8;
        let kept = fifth..pair.true_ns.len() - fifth;
        pair.above.records = pair.above.records[kept.clone()].to_vec();
        pair.true_ns = pair.true_ns[kept].to_vec();
        let (wrong, placed, _) = score(&pair, &aligned(&pair, &[]));
        assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()), "{seed}");
    }
}

#[test]
fn a_clock_that_is_no_line_is_never_placed_wrong_by_interrupts() {
    for seed in 1..12 {
        for (jump, step_every) in [(5_000_000, 0), (-3_000, 0), (0, 1), (0, 7)] {
            let pair = halting(seed, GuestClock { offset: 7_000_000, jump, step_every, ..GuestClock::default() });
            if pair.above.records.windows(2).any(|two| two[0].ticks > two[1].ticks) {
                continue;
            }
            let alignment = aligned(&pair, &[]);
            let (wrong, ..) = score(&pair, &alignment);
            assert!(wrong.is_empty(), "{seed} {jump} {step_every}: {:?} {wrong:?}", methods(&alignment));
        }
    }
}

#[test]
fn interrupts_of_another_run_fit_nowhere() {
    let clock = GuestClock { offset: 7_000_000, ..GuestClock::default() };
    let (one, other) = (halting(1, clock), halting(2, clock));
    assert_eq!(methods(&aligned_but(&one.below, &other.above, None, &ACCESSES)), ["none"]);
}
