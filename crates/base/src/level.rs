//! Which level of a nested stack does something belong to?
//!
//! ```text
//! L3   a guest of L2
//! L2   a guest of L1        "the nested guest"
//! L1   a guest of L0        "the guest hypervisor", where it runs guests of its own
//! L0   the machine that was recorded, or that a command looks at
//! ```
//! Levels count from that machine, also where it is a guest itself: a guest cannot see how many levels are below it. Where the
//! user knows better, `--as L1` and `--root L1=DIR` give its level.

use serde::{Serialize, Serializer};
use std::fmt;

/// A level, or the honest answer that the trace does not tell.
///
/// The order is that of the stack, from below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Whoever runs L0, where L0 is a guest itself: printed `below L0`.
    Below,
    /// L0, L1, L2, ...
    At(u8),
    /// A guest ran, and nothing in the trace says at which level: printed `L?`.
    Unknown,
}

impl Level {
    /// The recorded machine: the level of every machine whose user names no other.
    pub const L0: Level = Level::At(0);
    /// Its guests.
    pub const L1: Level = Level::At(1);
    /// Guests of its guests.
    pub const L2: Level = Level::At(2);

    /// Where a command is to be run: `at L0`, `below L0`.
    pub fn place(self) -> String {
        if self == Level::Below { self.to_string() } else { format!("at {self}") }
    }

    /// What stands before commands that are to be run there: `at L0, run`; `run` where nobody knows the level.
    pub fn run(self) -> String {
        if self == Level::Unknown { "run".to_owned() } else { format!("{}, run", self.place()) }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Below => f.write_str("below L0"),
            Level::At(depth) => write!(f, "L{depth}"),
            Level::Unknown => f.write_str("L?"),
        }
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl std::str::FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(['L', 'l']).unwrap_or(text);
        match digits {
            "?" => Ok(Level::Unknown),
            _ => {
                digits.parse().map(Level::At).map_err(|_| format!("`{text}` is no level; write L0, L1, L2, ... or L?"))
            }
        }
    }
}
