//! Why did a flight recorder stop?

use serde::{Deserialize, Serialize};

/// What ended a recorder that keeps the last stretch alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What it was.
    pub by: EndedBy,
    /// The same in a sentence, with what a breach or a trigger said.
    pub text: String,
}

/// What can end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndedBy {
    /// A goal of a budget was broken.
    Breach,
    /// Somebody pulled its trigger.
    Trigger,
    /// Ctrl-C, or another signal that ends programs.
    Signal,
    /// The time that it was to record is over.
    Time,
    /// The command that it recorded has ended.
    Command,
}
