//! What each of several machines says of each of many things: on, off, absent, or that nothing tells.
//!
//! ```text
//!                     L0  L1
//! vmcs_shadowing      ■   □
//! hyperv_evmcs        -   ?
//! ```

/// Things by machines.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// The machines.
    pub columns: Vec<String>,
    /// The things, those that call for a change first.
    pub rows: Vec<MatrixRow>,
}

/// One thing.
#[derive(Debug, Clone, PartialEq)]
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

/// What can be said of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// In use.
    On,
    /// It could be used and is not.
    Off,
    /// It cannot be used there.
    Absent,
    /// Nothing tells.
    Unknown,
}

impl Standing {
    /// All, in the order of a legend.
    pub const ALL: [Self; 4] = [Self::On, Self::Off, Self::Absent, Self::Unknown];

    /// Its name in every output.
    pub fn name(self) -> &'static str {
        match self {
            Standing::On => "on",
            Standing::Off => "off",
            Standing::Absent => "absent",
            Standing::Unknown => "unknown",
        }
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
