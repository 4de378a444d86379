//! Goals on samples, held against the results that KVM4NFV published.

use super::*;
use crate::budget::{Judged, Op, Verdict, built_in};
use crate::chain_plan::NO_PLAN;
use crate::samples::{Bucket, Source, Timed};
use crate::{Case, Given, Input};
use base::recording::Recording;
use proptest::prelude::*;
use std::path::Path;

const US: u64 = 1_000;

fn goal(id: &str) -> Goal {
    built_in("kvm4nfv-2015").unwrap().goals.into_iter().find(|goal| goal.id == id).unwrap()
}

/// Samples as cyclictest keeps them: a bucket for each us.
fn samples(buckets: &[(u64, u64)]) -> Samples {
    let interval = |us: u64| Span { from_ns: us * US, to_ns: (us + 1) * US };
    let met: Vec<&(u64, u64)> = buckets.iter().filter(|(_, count)| *count > 0).collect();
    let count: u64 = met.iter().map(|(_, count)| count).sum();
    let sum: u64 = met.iter().map(|(us, count)| us * US * count).sum();
    let bucket = |(us, count): &&(u64, u64)| Bucket { from_ns: us * US, to_ns: (us + 1) * US, count: *count };
    Samples {
        buckets: met.iter().map(bucket).collect(),
        count,
        min: met.first().map(|(us, _)| interval(*us)),
        max: met.last().map(|(us, _)| interval(*us)),
        mean_ns: (count > 0).then(|| sum as f64 / count as f64),
        ..Samples::new(Source::Cyclictest, "0")
    }
}

/// The run of 79,810,183 samples, read from its file: it breaks both timer goals, and the others are not measured.
#[test]
fn the_published_histogram_breaks_both_timer_goals() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/samples/kvm4nfv-after.txt");
    let given = Given { budget: built_in("kvm4nfv-2015"), ..Given::default() };
    let case = Case::new(Input::open(Recording::open(&path).unwrap(), NO_PLAN).unwrap(), given);
    let [mean, max, others @ ..] = case.judged() else { panic!("{:?}", case.judged()) };
    let bounds =
        |judged: &Judged| judged.judgement.bounds.map(|bounds| (bounds.low_ns, bounds.value_ns, bounds.high_ns));
    assert_eq!(mean.judgement.verdict, Verdict::Fail);
    assert_eq!(bounds(mean), Some((8_856, 8_857, Some(9_856))), "8.857 us, of floors");
    assert_eq!(max.judgement.verdict, Verdict::Fail);
    assert_eq!(bounds(max), Some((16_000, 16_000, Some(16_999))));
    let counts = max.judgement.counts.unwrap();
    assert_eq!((counts.samples, counts.over_low, counts.over_high), (Some(79_810_183), 5, Some(54)));
    assert_eq!(counts.bound(0.95), crate::statistics::proportion::upper_bound(54, 79_810_183, 0.95));
    assert_eq!(others.len(), 7);
    for absent in others {
        assert_eq!((absent.judgement.verdict, bounds(absent)), (Verdict::NotMeasured, None), "{absent:?}");
    }
    // Over 16 us are none for certain, and 5 at most: 16 us hold [16, 17).
    let at_16 = judge(&Goal { limit_ns: 16 * US, ..goal("timer-max") }, &case.results().list[0].samples[0], None, None);
    assert_eq!(
        (at_16.verdict, at_16.doubts),
        (Verdict::Inconclusive, vec![Doubt::InBucket { over_low: 0, over_high: 5 }])
    );
}

/// Minimum 6, average 6, maximum 11 us, and nobody says of how many samples: at least one.
#[test]
fn the_latest_run_misses_the_mean_and_is_no_proof_of_the_maximum() {
    let latest = Samples { mean_ns: Some(6_000.0), ..samples(&[(11, 1)]) };
    assert_eq!(judge(&goal("timer-mean"), &latest, None, None).verdict, Verdict::Fail);
    let max = judge(&goal("timer-max"), &latest, None, None);
    assert_eq!((max.verdict, max.bounds.unwrap().value_ns), (Verdict::Inconclusive, 11 * US));
    assert_eq!(max.doubts, [Doubt::FewSamples { samples: 1, least: 2_995_732 }]);
}

#[test]
fn a_maximum_passes_with_enough_samples_and_fails_with_one() {
    let verdict = |buckets: &[(u64, u64)]| judge(&goal("timer-max"), &samples(buckets), None, None).verdict;
    assert_eq!(verdict(&[(6, 2_995_732)]), Verdict::Pass);
    assert_eq!(verdict(&[(6, 2_995_731)]), Verdict::Inconclusive);
    assert_eq!(verdict(&[(16, 1)]), Verdict::Fail);
    assert_eq!(verdict(&[(6, 2_995_732), (15, 1)]), Verdict::Inconclusive, "the limit lies in bucket 15");
    assert_eq!(verdict(&[(6, 2_995_732), (14, 1)]), Verdict::Pass, "[14, 15) us are not over 15");
    assert_eq!(verdict(&[]), Verdict::NotMeasured);
    let below = Goal { op: Op::Below, ..goal("timer-max") };
    assert_eq!(
        judge(&below, &samples(&[(15, 3_000_000)]), None, None).verdict,
        Verdict::Fail,
        "15 us are not below 15"
    );
}

#[test]
fn a_mean_is_known_to_a_unit() {
    let verdict = |us| judge(&goal("timer-mean"), &samples(&[(us, 1_000)]), None, None).verdict;
    assert_eq!((verdict(4), verdict(5), verdict(6)), (Verdict::Pass, Verdict::Inconclusive, Verdict::Fail));
}

#[test]
fn samples_with_times_have_episodes() {
    let mut timed = samples(&[(3, 3), (20, 3)]);
    let at = |ms: u64, us: u64| Timed { end_ns: ms * 1_000_000, length_ns: us * US };
    timed.timed = vec![at(0, 3), at(1, 20), at(2, 20), at(3, 3), at(50, 20), at(1_000, 3)];
    let episodes = judge(&goal("timer-max"), &timed, None, None).episodes.unwrap();
    assert_eq!((episodes.low, episodes.high, episodes.blocks), (2, 2, 100));
    timed.timed.pop();
    assert_eq!(judge(&goal("timer-max"), &timed, None, None).episodes, None, "not every sample has a time");
}

proptest! {
    #[test]
    fn fewer_samples_never_make_a_pass_of_a_maximum(
        counts in prop::collection::vec(0u64..2_000_000, 18), kept in prop::collection::vec(0.0..1.0f64, 18)
    ) {
        let all: Vec<(u64, u64)> = (0..).zip(counts).collect();
        let fewer: Vec<(u64, u64)> =
            all.iter().zip(&kept).map(|((us, count), part)| (*us, (*count as f64 * part) as u64)).collect();
        // The longest ones stay: losing them loses the evidence against, which no count can show.
        let longest = all.iter().rposition(|(_, count)| *count > 0).unwrap_or(0);
        let fewer: Vec<(u64, u64)> =
            fewer.iter().enumerate().map(|(at, (us, count))| (*us, if at == longest { all[at].1 } else { *count })).collect();
        let (first, second) = (judge(&goal("timer-max"), &samples(&all), None, None), judge(&goal("timer-max"), &samples(&fewer), None, None));
        prop_assert!(second.verdict != Verdict::Pass || first.verdict == Verdict::Pass);
    }
}

#[test]
fn clocks_that_are_off_by_more_than_a_quarter_of_the_limit_decide_nothing() {
    let broken = samples(&[(900, 10)]);
    let by = |ns| judge(&goal("timer-max"), &broken, Some(ClockError { low_ns: 0, high_ns: ns }), None);
    assert_eq!(by(3_750).verdict, Verdict::Fail, "a quarter of 15 us");
    let off = by(3_751);
    assert_eq!(off.verdict, Verdict::Inconclusive);
    assert_eq!(off.doubts.last(), Some(&Doubt::ClockError { error_ns: 3_751, most_ns: 3_750 }));
    assert_eq!(
        judge(&goal("timer-max"), &broken, None, None).verdict,
        Verdict::Fail,
        "a file alone needs no other clock"
    );
}

/// Interrupts of a length, each known up to an error.
fn interrupts(length_ns: u64, count: u64, error_ns: u64) -> Samples {
    let length = Span { from_ns: length_ns, to_ns: length_ns + 1 };
    Samples {
        buckets: vec![Bucket { from_ns: length.from_ns, to_ns: length.to_ns, count }],
        count,
        min: Some(length),
        max: Some(length),
        mean_ns: Some(length_ns as f64),
        unit_ns: 1,
        error_ns,
        ..Samples::new(Source::Irq, "7")
    }
}

#[test]
fn interrupts_pass_on_a_processor_alone_and_by_clocks_that_are_known_well() {
    const ENOUGH: u64 = 2_995_732;
    let by = |samples: &Samples, emulated| judge(&goal("irq-max"), samples, None, emulated);
    let real = |length_ns, error_ns| by(&interrupts(length_ns, ENOUGH, error_ns), None).verdict;
    assert_eq!((real(9_100, 100), real(21_000, 100)), (Verdict::Pass, Verdict::Fail));
    assert_eq!(
        (real(19_950, 100), real(20_050, 100)),
        (Verdict::Inconclusive, Verdict::Inconclusive),
        "20 us +- 100 ns"
    );
    assert_eq!((real(9_100, 5_000), real(9_100, 5_001)), (Verdict::Pass, Verdict::Inconclusive), "a quarter of 20 us");
    assert_eq!(by(&interrupts(9_100, ENOUGH - 1, 100), None).verdict, Verdict::Inconclusive);
    let emulated = by(&interrupts(9_100, ENOUGH, 100), Some(Emulator::Tcg));
    assert_eq!((emulated.verdict, emulated.doubts), (Verdict::Inconclusive, vec![Doubt::Emulated(Emulator::Tcg)]));
    let over = interrupts(19_950, ENOUGH, 100).over(20_000);
    assert_eq!((over, interrupts(20_101, 5, 100).over(20_000)), ((0, ENOUGH), (5, 5)));
}
