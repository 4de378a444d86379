//! Does a metric differ by more than runs of the same configuration differ from each other?
//!
//! ```text
//! one recording a side    its windows are the values        what differs between these two runs; nothing about other runs
//! several                 each recording is one value       Welch's t over recordings, corrected for the number of metrics
//! several of one side     its spread stands for the other's, which is then a baseline
//! ```
//! Windows of one run share whatever made that run fast or slow, so they say how steady it was and nothing of the next run. With
//! several recordings all metrics are tested together ([`holm`]).

use super::Changed;
use super::metrics::{Metric, Metrics};
use super::ratio::{Ratio, Verdict};
use facts::WINDOWS;
use facts::statistics::holm;
use std::collections::BTreeSet;

/// The metrics that both sides have, or that one of them has and the other would have shown; each side is a list of recordings.
pub(super) fn changed(before: &[Metrics], after: &[Metrics]) -> Vec<Changed> {
    let names = |side: &[Metrics]| side.iter().flat_map(|one| one.keys().cloned()).collect::<BTreeSet<Metric>>();
    let (one, two) = (names(before), names(after));
    let has = |side: &BTreeSet<Metric>, metric: &Metric| {
        side.contains(metric) || metric.is_zero_unseen() && side.iter().any(|other| other.is_alike(metric))
    };
    let both = one.union(&two).filter(|metric| has(&one, metric) && has(&two, metric));
    if let ([one], [two]) = (before, after) {
        let of_windows = |metric: &Metric| {
            let [one, two] = [one, two].map(|metrics| windows(metrics, metric));
            let ratio = Ratio::of(&one, &two).or_else(|| Ratio::with_none(&one, &two))?;
            Some(Changed::of(metric.clone(), ratio))
        };
        return both.filter_map(of_windows).collect();
    }
    let of_runs = |metric: &Metric| {
        let [one, two] = [before, after].map(|side| of_each(side, metric));
        let ratio = Ratio::of_runs(&one, &two).or_else(|| Ratio::with_none(&one, &two))?;
        Some(Changed::of(metric.clone(), ratio))
    };
    let mut all: Vec<Changed> = both.filter_map(of_runs).collect();
    holds_for_all(all.iter_mut().filter_map(|one| Some((&mut one.verdict, one.ratio.chance?))).collect());
    all
}

/// A metric's values in a recording's windows; 0 in each where it never saw it.
fn windows(metrics: &Metrics, metric: &Metric) -> Vec<f64> {
    metrics.get(metric).cloned().unwrap_or_else(|| vec![0.0; WINDOWS])
}

/// A metric's value in each recording: the mean over its windows. What a recording never saw happened 0 times there, unless it
/// is a median or has a unit of its own.
fn of_each(side: &[Metrics], metric: &Metric) -> Vec<f64> {
    let value = |one: &Metrics| match one.get(metric) {
        Some(values) if !values.is_empty() => Some(values.iter().sum::<f64>() / values.len() as f64),
        _ => metric.is_zero_unseen().then_some(0.0),
    };
    side.iter().filter_map(value).collect()
}

/// Leaves those verdicts that hold for all that was tested together; each comes with its own chance.
pub(super) fn holds_for_all(tested: Vec<(&mut Verdict, f64)>) {
    let (verdicts, chances): (Vec<&mut Verdict>, Vec<f64>) = tested.into_iter().unzip();
    for (verdict, _) in verdicts.into_iter().zip(holm::hold(&chances)).filter(|(_, holds)| !holds) {
        *verdict = Verdict::NoChange;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::summary;

    /// SplitMix64, and normal numbers as sums of twelve.
    struct Random(u64);

    impl Random {
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
        }
    }

    /// Metrics of a comparison.
    const METRICS: usize = 40;

    /// A recording: every metric is off by 5 % as a whole, and its windows by 2 %, neighbours correlated by 0.6.
    fn recording(random: &mut Random, factor: f64) -> Metrics {
        let metric = |number: usize| Metric::Named(format!("metric {number}"));
        let one = |number: usize| {
            let run = factor * (1.0 + 0.05 * random.normal());
            let mut wave = random.normal();
            let windows = (0..WINDOWS).map(|_| {
                wave = 0.6 * wave + 0.8 * random.normal();
                100.0 * run * (1.0 + 0.02 * wave)
            });
            (metric(number), windows.collect())
        };
        (0..METRICS).map(one).collect()
    }

    fn certain(changed: &[Changed]) -> usize {
        changed.iter().filter(|one| matches!(one.verdict, Verdict::Higher | Verdict::Lower)).count()
    }

    #[test]
    fn the_same_configuration_is_not_said_to_have_changed() {
        const TRIALS: usize = 200;
        let mut random = Random(1);
        let (mut single, mut paired) = (0, 0);
        let mut claims = 0;
        for _ in 0..TRIALS {
            let runs: Vec<Metrics> = (0..8).map(|_| recording(&mut random, 1.0)).collect();
            let pair = changed(&runs[..1], &runs[4..5]);
            single += certain(&pair);
            paired += pair.len();
            let said = summary(&pair, [1, 1]);
            assert!(said.contains("these two runs") && !said.contains("changed by more than noise"), "{said}");
            let several = changed(&runs[..4], &runs[4..]);
            assert_eq!(several.len(), METRICS);
            claims += usize::from(certain(&several) > 0);
        }
        // What windows of one run claim is why they are not believed: far more than one in twenty.
        assert!(single as f64 / paired as f64 > 0.5, "{single} of {paired}");
        // One comparison in twenty may claim something; 3.3 deviations more are 10.1 %.
        assert!(claims as f64 / TRIALS as f64 <= 0.101, "{claims} of {TRIALS} comparisons of equals claim a change");
    }

    #[test]
    fn a_change_beyond_what_runs_differ_is_found_also_against_a_baseline() {
        let mut random = Random(7);
        let before: Vec<Metrics> = (0..5).map(|_| recording(&mut random, 1.0)).collect();
        let after: Vec<Metrics> = (0..5).map(|_| recording(&mut random, 2.0)).collect();
        let several = changed(&before, &after);
        assert_eq!(certain(&several), METRICS);
        let said = summary(&several, [5, 5]);
        assert!(
            said.starts_with("Of 40 metrics, 40 changed by more than noise between runs (5 recordings before"),
            "{said}"
        );
        let baseline = changed(&before, &after[..1]);
        assert!(certain(&baseline) > METRICS / 2, "{}", certain(&baseline));
    }

    #[test]
    fn what_is_gone_is_said_where_it_would_have_been_seen() {
        let reason = |name: &str| Metric::ExitRate(base::Level::At(1), name.into());
        let run = |metrics: &[(Metric, f64)]| -> Metrics {
            metrics.iter().map(|(metric, value)| (metric.clone(), vec![*value; WINDOWS])).collect()
        };
        let with = |vmread: f64| run(&[(reason("VMREAD"), vmread), (reason("CPUID"), 10.0)]);
        let without = run(&[(reason("CPUID"), 10.0)]);
        let seen = |before: &[Metrics], after: &[Metrics]| {
            let all = changed(before, after);
            let vmread = all.iter().find(|one| one.metric == reason("VMREAD"));
            vmread.map(|one| (one.ratio.words(), one.verdict))
        };
        let gone = Some(("1,850 before, none after".to_owned(), Verdict::Lower));
        assert_eq!(seen(&[with(1_850.0)], std::slice::from_ref(&without)), gone);
        let before = [with(1_800.0), with(1_850.0), with(1_900.0)];
        assert_eq!(seen(&before, &[without.clone(), without.clone(), without]), gone);
        // A trace without exits shows none, whatever happened.
        assert_eq!(seen(&before, &[run(&[(Metric::TaskRuns("vhost".into()), 0.5)]), Metrics::new()]), None);
    }

    #[test]
    fn what_one_recording_never_saw_is_none_there_and_a_median_is_unknown() {
        let with = |metric: Metric, value: f64| Metrics::from([(metric, vec![value; 2])]);
        let tasks = [with(Metric::TaskRuns("a".into()), 0.4), Metrics::new(), with(Metric::TaskRuns("a".into()), 0.5)];
        assert_eq!(of_each(&tasks, &Metric::TaskRuns("a".into())), [0.4, 0.0, 0.5]);
        let chains = [with(Metric::ChainExits("CPUID".into()), 15.0), Metrics::new()];
        assert_eq!(of_each(&chains, &Metric::ChainExits("CPUID".into())), [15.0]);
    }
}
