//! What did a hostile peer do by script, what did the honest side see of it, and was it still there afterwards?

use serde::{Deserialize, Serialize};

/// The rules, by their number less 1.
pub const RULES: [&str; 12] = [
    "an index is accepted only if it fits ours",
    "our own index is private",
    "a descriptor is read once",
    "no more is copied than a slot holds",
    "no pointer, offset or size of the peer's is followed",
    "frames are private copies",
    "every wait has a bound",
    "a connection has a generation",
    "nothing is left over in slots",
    "kicks are hints",
    "a window is closed on every way out",
    "no reference points into shared memory",
];

/// All rules in one launch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Faults {
    /// By rule.
    pub rules: Vec<Fault>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Its number, from 1.
    pub rule: u8,
    /// What was done, in words.
    pub what: String,
    /// How often it was done.
    pub injected: u64,
    /// How often the honest side counted it; `None` where there is nothing to count.
    pub seen: Option<u64>,
    /// Whether the honest side neither crashed nor hung nor handed out a wrong frame; `None` where nothing was done to it.
    pub survived: Option<bool>,
    /// What went wrong, or why nothing is counted.
    pub why: String,
}
