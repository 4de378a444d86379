//! Did something get worse, by more than is accepted?
//!
//! Judged is what has a better and a worse: time (shares of states in which a vCPU does not get on, latencies, tests), exits of a chain, rates
//! of datapaths. Exits a second and what tasks ran are not: whoever does more work has more of both.

use super::metrics::Metric;
use super::ratio::Verdict;
use super::{Changed, benches};
use base::number::{many, percent, plain};
use base::rule::Words;
use base::{Evidence, Finding, Level, Severity};
use facts::rule::{Hit, Rule};

/// Id of the finding.
pub const REGRESSION: &str = "CMP-REGRESSION";

/// What the finding says besides.
const RULE: Rule<()> = Rule {
    id: REGRESSION,
    per: "comparison",
    looks_at: "Whether a time, a cost or a rate is worse after the change by more than `--fail-on-regression` accepts, and by more than noise.",
    why: "Something takes longer, or carries less, than before the change; runs of one configuration differ by less.",
    fix: &["take the change back, or look at what differs: tables `configuration` and `causes`"],
    source: "docs/use/compare.md, \"Did it get worse?\"",
    ..Rule::checked_by(())
};

/// Numbers that are told as evidence; the tables have all.
const MOST_TOLD: usize = 20;

/// States of a vCPU in which it waits or is worked for, by their columns' names.
const COSTS: &[&str] = &["handling_", "userspace", "irq", "softirq", "nmi", "preempted", "wake_delay", "halt_poll"];

/// One number that has a better and a worse.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judged {
    pub what: String,
    /// After to before; infinite where there was none before.
    pub ratio: f64,
    pub words: String,
    pub verdict: Verdict,
    pub(crate) is_worse_if: Verdict,
    pub table: &'static str,
}

pub(super) fn words() -> Words {
    RULE.words()
}

/// Metrics of traces, which only several recordings of a side can judge.
pub(super) fn of_traces(changed: &[Changed]) -> impl Iterator<Item = Judged> {
    changed.iter().filter_map(|one| {
        Some(Judged {
            what: one.metric.to_string(),
            ratio: one.ratio.ratio,
            words: one.ratio.words(),
            verdict: one.verdict,
            is_worse_if: worse(&one.metric)?,
            table: "compare.change",
        })
    })
}

/// Tests of benches: launches are their repeats.
pub(super) fn of_benches(tests: &[benches::Changed]) -> impl Iterator<Item = Judged> {
    tests.iter().filter_map(|test| {
        Some(Judged {
            what: test.key.to_string(),
            ratio: test.ratio()?,
            words: format!("x{}", plain(test.ratio()?)),
            verdict: test.verdict(),
            is_worse_if: by_unit(&test.key.unit)?,
            table: "compare.bench",
        })
    })
}

/// When it is worse, if that can be said.
fn worse(metric: &Metric) -> Option<Verdict> {
    match metric {
        Metric::State(state) => COSTS.iter().any(|cost| state.starts_with(cost)).then_some(Verdict::Higher),
        Metric::ChainExits(_) | Metric::TaskWaits(_) => Some(Verdict::Higher),
        Metric::ExitRate(..) | Metric::TaskRuns(_) => None,
        Metric::Named(name) => by_unit(name.rsplit_once(", ")?.1),
    }
}

fn by_unit(unit: &str) -> Option<Verdict> {
    match unit {
        "ns" | "us" | "ms" | "s" | "cycles" | "ticks" => Some(Verdict::Higher),
        unit if unit.ends_with("/s") || unit.ends_with("bps") || unit.ends_with("pps") => Some(Verdict::Lower),
        _ => None,
    }
}

/// What is worse by more than `accepted`, a share; `None` if nothing is.
pub(super) fn finding(judged: &[Judged], accepted: f64) -> Option<Finding> {
    let beyond = |one: &&Judged| {
        let is_beyond = match one.is_worse_if {
            Verdict::Higher => one.ratio > 1.0 + accepted,
            _ => one.ratio < 1.0 / (1.0 + accepted),
        };
        one.verdict == one.is_worse_if && is_beyond
    };
    let mut worse: Vec<&Judged> = judged.iter().filter(beyond).collect();
    worse.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let title = format!("{} got worse by more than {}", many(worse.len() as u64, "number"), percent(accepted));
    let mut hit = Hit::new("recordings", Severity::High, title);
    let said = |one: &&Judged| Evidence::in_table(format!("{}: {}", one.what, one.words), one.table);
    hit.evidence = worse.iter().take(MOST_TOLD).map(said).collect();
    (!worse.is_empty()).then(|| RULE.finding(hit, Level::Unknown))
}

/// How many of them can be told from noise at all.
pub(super) fn told(judged: &[Judged]) -> usize {
    judged.iter().filter(|one| !matches!(one.verdict, Verdict::Unknown | Verdict::Void)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ratio: f64, verdict: Verdict, is_worse_if: Verdict) -> Judged {
        Judged { what: "one".into(), ratio, words: String::new(), verdict, is_worse_if, table: "compare.change" }
    }

    #[test]
    fn worse_is_more_time_or_a_lower_rate_beyond_what_is_accepted_and_noise() {
        let fires = |one: Judged| finding(&[one], 0.05).is_some();
        assert!(fires(judged(1.06, Verdict::Higher, Verdict::Higher)));
        assert!(!fires(judged(1.04, Verdict::Higher, Verdict::Higher)), "accepted");
        assert!(!fires(judged(1.5, Verdict::NoChange, Verdict::Higher)), "noise");
        assert!(!fires(judged(0.5, Verdict::Lower, Verdict::Higher)), "better");
        assert!(fires(judged(f64::INFINITY, Verdict::Higher, Verdict::Higher)), "none before");
        assert!(fires(judged(0.0, Verdict::Lower, Verdict::Lower)), "nothing is carried any more");
        assert!(fires(judged(0.94, Verdict::Lower, Verdict::Lower)), "a rate");
        assert_eq!(told(&[judged(2.0, Verdict::Unknown, Verdict::Higher)]), 0);
    }

    #[test]
    fn what_has_no_better_is_not_judged() {
        assert_eq!(worse(&Metric::State("guest_l1".into())), None);
        assert_eq!(worse(&Metric::State("handling_l2".into())), Some(Verdict::Higher));
        assert_eq!(worse(&Metric::ExitRate(Level::At(1), "CPUID".into())), None);
        assert_eq!(worse(&Metric::Named("iperf3, bits/s".into())), Some(Verdict::Lower));
        assert_eq!(worse(&Metric::Named("cyclictest p99, ns".into())), Some(Verdict::Higher));
    }
}
