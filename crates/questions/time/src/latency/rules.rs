//! What a budget's verdicts mean: rules as data.

use super::checks::{broken, unsure};
use super::goals::Verdicts;
use base::rule::Words;
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

pub fn words() -> Vec<Words> {
    RULES.iter().map(Rule::words).collect()
}
