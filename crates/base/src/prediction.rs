//! What a model said before a run, kept beside what the run then was: `<machine>/prediction.json`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema this version reads and writes.
pub const SCHEMA: &str = "kvmscope-prediction/1";

/// It is some 2 KB.
const MOST_BYTES: u64 = 1 << 20;

/// All that was said before one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// [`SCHEMA`].
    pub schema: String,
    /// What it is about: `migration`.
    pub about: String,
    /// What the model was given, by name, in words.
    pub given: BTreeMap<String, String>,
    /// What it said.
    pub said: Vec<Said>,
}

/// What it said of one quantity. `None` is never.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// The quantity: `total`.
    pub what: String,
    /// At least.
    pub low: Option<f64>,
    /// Most likely.
    pub likely: Option<f64>,
    /// At most.
    pub high: Option<f64>,
    /// What a simpler model said.
    pub naive: Option<f64>,
    /// Of all of them.
    pub unit: String,
}

impl Said {
    /// Whether `actual` is what was said; what never ends has none.
    pub fn holds(&self, actual: Option<f64>) -> bool {
        match actual {
            Some(actual) => self.low.is_some_and(|low| low <= actual) && self.high.is_none_or(|high| actual <= high),
            None => self.high.is_none(),
        }
    }
}

crate::json_line::read_and_write!(Prediction);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_is_what_was_said_only_if_it_was() {
        let said = |low, high| Said { what: "total".into(), low, likely: low, high, naive: None, unit: "ns".into() };
        let held = |said: Said| [said.holds(Some(1.0)), said.holds(Some(5.0)), said.holds(Some(9.0)), said.holds(None)];
        assert_eq!(held(said(Some(2.0), Some(6.0))), [false, true, false, false]);
        assert_eq!(held(said(Some(2.0), None)), [false, true, true, true], "at best 2, at worst never");
        assert_eq!(held(said(None, None)), [false, false, false, true], "never");
    }
}
