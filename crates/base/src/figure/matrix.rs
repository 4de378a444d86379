//! What each of several machines says of each of many things: on, off, absent, or that nothing tells.
//!
//! ```text
//!                     L0  L1
//! vmcs_shadowing      ■   □
//! hyperv_evmcs        -   ?
//! ```

use serde::Serialize;

/// Things by machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matrix {
    /// The machines.
    pub columns: Vec<String>,
    /// The things, those that call for a change first.
    pub rows: Vec<MatrixRow>,
}

/// One thing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixRow {
    /// Its name.
    pub label: String,
    /// What it is, in words.
    pub about: String,
    /// What each machine says of it; `None` where it was not asked.
    pub cells: Vec<Option<Standing>>,
    /// Ids of findings about it.
    pub findings: Vec<String>,
}

crate::named! {
    /// What can be said of a thing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Standing {
        /// In use.
        On = "on",
        /// It could be used and is not.
        Off = "off",
        /// It cannot be used there.
        Absent = "absent",
        /// Nothing tells.
        Unknown = "unknown",
    }
}

impl Standing {
    /// Of what is on or off.
    pub fn of(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }

    /// A character for it.
    pub fn glyph(self) -> char {
        match self {
            Standing::On => '■',
            Standing::Off => '□',
            Standing::Absent => '-',
            Standing::Unknown => '?',
        }
    }
}

impl MatrixRow {
    /// The rules of its findings, each once, in words: `NST-SHADOW`.
    pub fn rules(&self) -> String {
        let mut rules: Vec<&str> = self.findings.iter().filter_map(|id| id.split('@').next()).collect();
        rules.dedup();
        rules.join(", ")
    }
}
