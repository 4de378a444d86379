//! What a budget's verdicts mean, and what made samples late: rules as data.

use super::checks::{LATE_NS, LATE_SHARE, broken, late, unsure};
use super::goals::Verdicts;
use base::FactKind;
use base::rule::{Words, limit};
use facts::Case;
use facts::rule::Hit;

/// A rule about the verdicts on all goals of a budget.
type Rule = facts::rule::Rule<fn(&[Verdicts<'_>]) -> Vec<Hit>>;

/// All rules, in the order in which equal findings are shown.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "LAT-GOAL",
        per: "goal",
        looks_at: "Goals of the budget that the recording breaks for certain: unknown time counts as not lost, and samples in the \
            bucket that has the limit count as below it.",
        why: "A goal is broken if one vCPU or one sample breaks it once. What is named took the time when it was worst; other \
              moments may have other causes: tables moments and culprits list those of vCPUs, attributed those of samples.",
        source: "docs/read/latency.md, \"Verdicts\"",
        ..Rule::checked_by(broken)
    },
    Rule {
        id: "LAT-EVIDENCE",
        per: "budget",
        looks_at: "Goals of the budget that neither pass nor fail: INCONCLUSIVE and NOT MEASURED.",
        why: "A PASS takes evidence: a trace of the length that the goal requires, without which rare losses are not seen, or as \
              many samples; nothing unknown that could break the goal; and clocks that are exact to a quarter of the limit.",
        source: "docs/read/latency.md, \"Verdicts\"; C. Clopper and E. Pearson, Biometrika 26 (1934)",
        ..Rule::checked_by(unsure)
    },
];

/// A rule about samples that a trace explains.
type OfSamples = facts::rule::Rule<fn(&Case) -> Vec<Hit>>;

/// The same of these.
pub(crate) const OF_SAMPLES: &[OfSamples] = &[OfSamples {
    id: "LAT-TASK",
    per: "task",
    looks_at: "Tasks that ran while the thread of a latency test was runnable, and took most of the time of its samples and of the \
        longest one. With a budget, LAT-GOAL says who broke it.",
    requires: &[FactKind::Switches],
    limits: &[
        limit("share of the samples' time, and of the longest", LATE_SHARE, "share"),
        limit("taken from one sample, else it is a remark", LATE_NS as f64, "ns"),
    ],
    why: "The thread that measures was ready, and the scheduler ran another task on its CPU. A vCPU on that CPU, or a real-time task \
          in the guest, waits as long.",
    source: "docs/read/latency.md, \"Who took the time of a sample\"; sched_switch (include/trace/events/sched.h, Linux 6.12)",
    ..OfSamples::checked_by(late)
}];

pub fn words() -> Vec<Words> {
    RULES.iter().map(Rule::words).chain(OF_SAMPLES.iter().map(OfSamples::words)).collect()
}
