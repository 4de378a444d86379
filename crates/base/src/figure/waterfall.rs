//! A whole that is used up step by step, and what would be left of each step.
//!
//! ```text
//! L1 guest           10.8 %  ███
//! L0 working for L1  17.9 %     ▒▒██       FLW-VLS gives back 3.0 % (1.2 to 4.8 %)
//! preempted           7.1 %         ▒▒     FLW-PREEMPT gives back up to 7.1 %
//! ```

use super::With;
use serde::{Serialize, Serializer};
use serde_json::json;

/// One whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waterfall {
    /// What the whole is: `all vCPUs`, a VM, a vCPU.
    pub title: String,
    /// In order; shares of the whole, which sum up to 1.
    #[serde(serialize_with = "with_given_back")]
    pub steps: Vec<Step>,
}

fn with_given_back<S: Serializer>(steps: &[Step], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(steps.iter().map(|step| With {
        of: step,
        computed: json!({"given_back": step.given_back(), "note": step.note(), "removed": step.removed}),
    }))
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What takes it.
    pub label: String,
    /// Name of the state that decides its colour.
    pub hue: String,
    /// How much of the whole.
    pub share: f64,
    /// What of it could be given back, by the finding that says so, the most first.
    #[serde(skip)]
    pub removed: Vec<Removed>,
}

/// A part of a step that a change would give back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Removed {
    /// The id of the finding.
    pub finding: String,
    /// Its rule.
    pub rule: String,
    /// How much of the whole, most likely.
    pub share: f64,
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl Step {
    /// How much of the whole could come back, most likely.
    pub fn given_back(&self) -> f64 {
        self.removed.iter().fold(0.0, |sum, removed| sum + removed.share).min(self.share)
    }

    /// The same in words, or nothing: `FLW-VLS gives back 3.0 % (1.2 to 4.8 %)`.
    pub fn note(&self) -> String {
        let words = |one: &Removed| {
            let back = crate::finding::interval(one.share, (one.low, one.high));
            format!("{} gives back {back}", one.rule)
        };
        self.removed.iter().map(words).collect::<Vec<_>>().join(", ")
    }
}
