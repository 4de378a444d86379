use super::simulated::Device;
use super::sums::{Class, Sums};
use super::*;
use std::convert::Infallible;

const RANGE: Range = Range { least_pps: 1_000, most_pps: 1_000_000, most_trials: 2_000 };
const BOTH: [Goal; 2] = [Goal::NDR, Goal::PDR];

fn by_mlr(device: &mut Device) -> Outcome {
    let Ok(outcome) = mlr(&BOTH, &RANGE, |pps| Ok::<_, Infallible>(device.trial(pps)));
    outcome
}

fn by_halves(device: &mut Device) -> Outcome {
    let Ok(outcome) = binary(&BOTH, &RANGE, |pps| Ok::<_, Infallible>(device.trial(pps)));
    outcome
}

/// Bounds of a found goal, which must be close.
fn close(found: &Found) -> (u64, u64) {
    assert_eq!(found.ended, Ended::Narrow, "{found:?}");
    let (lower, upper) = found.lower_pps.zip(found.upper_pps).unwrap();
    assert!(lower < upper && (upper - lower) as f64 <= found.goal.width * upper as f64 + 1.0, "{found:?}");
    (lower, upper)
}

/// Capacities over the whole range, evenly in their logarithm.
fn capacities() -> impl Iterator<Item = (u64, f64)> {
    (1..=300).map(|seed| (seed, Device::new(0.0, seed).random())).map(|(seed, at)| (seed, 1_100.0 * 850.0_f64.powf(at)))
}

#[test]
fn rates_are_classified_as_the_library_of_the_authors_does() {
    // Exceed ratio, duration sum, seconds of good and of bad trials; both estimates of MLRsearch 1.2.1 from PyPI
    // (TargetStat.estimates): false, false is an upper bound, true, true a lower one.
    let known = [
        (0.0, 5, 1, 3, Class::Upper),
        (0.0, 21, 1, 2, Class::Upper),
        (0.0, 1, 0, 0, Class::Undecided),
        (0.0, 5, 3, 0, Class::Undecided),
        (0.0, 21, 20, 18, Class::Upper),
        (0.25, 1, 1, 0, Class::Lower),
        (0.25, 5, 3, 1, Class::Undecided),
        (0.25, 21, 3, 18, Class::Upper),
        (0.25, 5, 4, 5, Class::Upper),
        (0.25, 5, 0, 4, Class::Upper),
        (0.5, 21, 17, 13, Class::Lower),
        (0.5, 5, 3, 4, Class::Upper),
        (0.5, 5, 2, 2, Class::Undecided),
        (0.5, 1, 1, 1, Class::Lower),
        (0.5, 5, 4, 0, Class::Lower),
        (0.5, 5, 1, 3, Class::Upper),
        (0.75, 5, 0, 5, Class::Upper),
        (0.75, 21, 11, 19, Class::Lower),
        (0.75, 5, 4, 3, Class::Lower),
        (0.75, 5, 2, 5, Class::Lower),
    ];
    for (exceed_ratio, needed, good, bad, class) in known {
        assert_eq!(Sums { good, bad }.class(needed, exceed_ratio), class, "{exceed_ratio} {needed} {good} {bad}");
    }
}

#[test]
fn intervals_meet_those_of_the_authors_library() {
    // The same device and goals, 1 kpps to 1 Mpps: NDR and PDR of MLRsearch 1.2.1, which took 35 to 39 trials.
    let known = [
        (3_333.0, [(3_327.5, 3_344.2), (3_344.2, 3_361.0)]),
        (123_456.0, [(123_209.8, 123_828.6), (123_828.6, 124_450.4)]),
        (777_777.0, [(774_551.0, 778_440.7), (778_440.7, 782_349.9)]),
        (987_654.0, [(985_084.6, 990_031.5), (990_031.5, 995_003.3)]),
        (250_000.5, [(249_683.3, 250_937.1), (250_937.1, 252_197.3)]),
    ];
    for (capacity, intervals) in known {
        let outcome = by_mlr(&mut Device::new(capacity, 1));
        for (found, (lower, upper)) in outcome.found.iter().zip(intervals) {
            let ours = close(found);
            assert!((ours.0 as f64) < upper && ours.1 as f64 > lower, "{capacity}: {found:?}");
        }
        assert!(outcome.trials.len() <= 60, "{capacity}: {} trials", outcome.trials.len());
    }
}

#[test]
fn bounds_contain_what_a_quiet_device_carries() {
    for (seed, capacity) in capacities() {
        for outcome in [by_mlr(&mut Device::new(capacity, seed)), by_halves(&mut Device::new(capacity, seed))] {
            for (found, truth) in outcome.found.iter().zip([capacity, capacity / 0.995]) {
                let (lower, upper) = close(found);
                // A whole frame may be lost to rounding at the very edge.
                assert!(lower as f64 <= truth + 1.0 && upper as f64 >= truth - 1.0, "{truth}: {found:?}");
            }
            assert!(outcome.trials.len() <= 75, "{capacity}: {} trials", outcome.trials.len());
        }
    }
}

#[test]
fn bounds_contain_the_truth_though_a_fifth_of_all_trials_is_disturbed() {
    let (mut kept, mut halved) = (0, 0);
    for (seed, capacity) in capacities() {
        let noisy = || Device { noise: 0.2, ..Device::new(capacity, seed) };
        let holds = |found: &Found| {
            let (lower, upper) = (found.lower_pps.unwrap_or(0), found.upper_pps.unwrap_or(u64::MAX));
            let truth = capacity / (1.0 - found.goal.loss_ratio);
            lower as f64 <= truth + 1.0 && upper as f64 >= truth - 1.0
        };
        let outcome = by_mlr(&mut noisy());
        outcome.found.iter().for_each(|found| assert_eq!(found.ended, Ended::Narrow, "{found:?}"));
        kept += outcome.found.iter().filter(|found| holds(found)).count();
        assert!(outcome.trials.len() <= 400, "{capacity}: {} trials", outcome.trials.len());
        halved += by_halves(&mut noisy()).found.iter().filter(|found| holds(found)).count();
    }
    // 11 of 21 trials disturbed by chance at one of some three rates: once in 1,000 goals. One trial each has no such shield.
    assert!(kept >= 597, "{kept} of 600");
    assert!(halved < 400, "{halved} of 600");
}

#[test]
fn a_span_of_rates_with_losses_bounds_from_above_where_it_was_met() {
    for (seed, capacity) in capacities() {
        let (from, to) = ((capacity * 0.6) as u64, (capacity * 0.9) as u64);
        let mut device = Device { lossy: Some((from, to, 0.05)), ..Device::new(capacity, seed) };
        let outcome = by_mlr(&mut device);
        let bad = |goal: &Goal| {
            let lost = outcome.trials.iter().filter(|(trial, _)| trial.loss_ratio() > goal.loss_ratio);
            lost.map(|(trial, _)| trial.intended_pps).min()
        };
        for found in &outcome.found {
            // It loses less than the goal at the lower bound and more at the upper one, and no rate below lost more: what RFC
            // 9971 promises. Which of the two crossings that is depends on the rates that were tried.
            let (lower, upper) = close(found);
            assert!(device.loss(lower) <= found.goal.loss_ratio + 1.0 / lower as f64, "{found:?}");
            assert!(device.loss(upper) >= found.goal.loss_ratio - 1.0 / upper as f64, "{found:?}");
            assert_eq!(bad(&found.goal), Some(upper), "{found:?}");
        }
    }
    // A span that begins below everything is always met.
    let mut device = Device { lossy: Some((0, 500_000, 0.05)), ..Device::new(600_000.0, 1) };
    let Ok(outcome) = mlr(&BOTH, &Range::new(1_000, 400_000, 2_000), |pps| Ok::<_, Infallible>(device.trial(pps)));
    assert!(outcome.found.iter().all(|found| found.ended == Ended::CarriesLess && found.upper_pps == Some(1_000)));
}

#[test]
fn a_device_faster_than_the_range_has_no_upper_bound_and_one_that_is_dead_no_lower_one() {
    for search in [by_mlr, by_halves] {
        for found in search(&mut Device::new(2_000_000.0, 1)).found {
            assert_eq!((found.lower_pps, found.upper_pps, found.ended), (Some(1_000_000), None, Ended::CarriesAll));
        }
        for found in search(&mut Device::new(0.0, 1)).found {
            assert_eq!((found.lower_pps, found.upper_pps, found.ended), (None, Some(1_000), Ended::CarriesLess));
        }
    }
}

#[test]
fn a_sender_that_misses_its_rate_bounds_nothing_from_above() {
    for search in [by_mlr, by_halves] {
        let outcome = search(&mut Device { sender_pps: 300_000.0, ..Device::new(600_000.0, 1) });
        for found in &outcome.found {
            let (lower, Ended::SenderMissed { pps }) = (found.lower_pps.unwrap(), found.ended) else {
                panic!("{found:?}");
            };
            assert!((298_000..=300_300).contains(&lower) && found.upper_pps.is_none(), "{found:?}");
            assert!(lower < pps && pps < 302_000, "{found:?}");
        }
        assert!(outcome.trials.iter().any(|(_, discarded)| *discarded == Some(Discarded::RateMissed)));
        // One that holds no rate at all leaves nothing but the rate that arrives.
        for found in search(&mut Device { sender_pps: 500.0, ..Device::new(600_000.0, 1) }).found {
            assert_eq!((found.lower_pps, found.upper_pps), (None, None));
            assert_eq!(found.ended, Ended::SenderMissed { pps: 1_000 });
        }
        // A device slower than the sender is not concerned.
        let slow = search(&mut Device { sender_pps: 300_000.0, ..Device::new(100_000.0, 1) });
        slow.found.iter().for_each(|found| assert!((99_000..=100_503).contains(&close(found).0), "{found:?}"));
    }
}

#[test]
fn trials_with_stolen_time_do_not_count() {
    for (seed, capacity) in capacities().step_by(10) {
        let outcome = by_mlr(&mut Device { steal: 0.3, ..Device::new(capacity, seed) });
        for found in &outcome.found {
            let truth = capacity / (1.0 - found.goal.loss_ratio);
            let (lower, upper) = close(found);
            assert!(lower as f64 <= truth + 1.0 && upper as f64 >= truth - 1.0, "{truth}: {found:?}");
        }
    }
    for search in [by_mlr, by_halves] {
        let outcome = search(&mut Device { steal: 1.0, ..Device::new(5_000.0, 1) });
        assert_eq!(outcome.found[1].ended, Ended::Stolen);
        assert!(outcome.trials.len() <= 20, "{}", outcome.trials.len());
    }
}

#[test]
fn a_search_ends_when_its_trials_are_used_up() {
    for most_trials in [0, 1, 5, 30] {
        let (mut device, mut asked) = (Device { noise: 0.5, ..Device::new(50_000.0, 1) }, 0);
        let range = Range { most_trials, ..RANGE };
        let Ok(outcome) = mlr(&BOTH, &range, |pps| {
            asked += 1;
            Ok::<_, Infallible>(device.trial(pps))
        });
        assert_eq!((asked, outcome.trials.len()), (most_trials, most_trials as usize));
        assert!(outcome.found.iter().all(|found| found.ended == Ended::Trials), "{outcome:?}");
    }
    assert_eq!(mlr(&BOTH, &RANGE, |_| Err("asked to stop")), Err("asked to stop"));
    assert_eq!(binary(&BOTH, &RANGE, |_| Err("asked to stop")), Err("asked to stop"));
}

#[test]
fn a_trial_is_discarded_by_the_limits_of_the_method() {
    let trial =
        Trial { intended_pps: 100_000, sent: 100_000, received: 99_500, took_ns: 1_000_000_000, steal_share: 0.02 };
    assert_eq!((trial.discarded(), trial.loss_ratio()), (None, 0.005));
    assert_eq!(Trial { took_ns: 1_000_900_000, ..trial }.discarded(), None);
    assert_eq!(Trial { took_ns: 1_001_200_000, ..trial }.discarded(), Some(Discarded::RateMissed));
    assert_eq!(Trial { took_ns: 998_000_000, ..trial }.discarded(), Some(Discarded::RateMissed));
    assert_eq!(Trial { steal_share: 0.021, ..trial }.discarded(), Some(Discarded::Steal));
    assert_eq!(Trial { received: 200_000, ..trial }.loss_ratio(), 0.0);
    assert_eq!(Trial { sent: 0, received: 0, took_ns: 0, ..trial }.discarded(), Some(Discarded::RateMissed));
}

#[test]
fn no_goal_ends_below_a_stricter_one_however_noisy_the_device_is() {
    for (seed, capacity) in capacities().step_by(3) {
        let mut device = Device { noise: 0.4, ..Device::new(capacity, seed) };
        let [strict, loose] = by_halves(&mut device).found[..] else { panic!("two goals") };
        assert!(strict.lower_pps <= loose.lower_pps, "{seed}: {strict:?}, {loose:?}");
    }
}
