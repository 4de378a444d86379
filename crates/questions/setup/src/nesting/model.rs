//! What the nesting question works on: machines of different levels, and what each says of each feature.

use base::Level;
use host::Virtualization;

/// All machines with a snapshot.
#[derive(Debug)]
pub struct Model {
    /// Outermost first.
    pub machines: Vec<Machine>,
}

/// One machine.
#[derive(Debug)]
pub struct Machine {
    /// Its level.
    pub level: Level,
    /// Its id in the recording.
    pub id: String,
    /// Its facts.
    pub facts: Virtualization,
    /// What each feature is there.
    pub features: Vec<Row>,
}

/// What can be said of a feature. Unknown is an answer: it is never read as off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// In use.
    On,
    /// It could be used and is not.
    Off,
    /// This level is not offered it: hardware, kernel or the level below lack it.
    Absent,
    /// Nothing tells.
    Unknown,
}

/// What one machine says of one feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Stable name.
    pub feature: &'static str,
    /// Its state.
    pub state: State,
    /// The file and its value, or the bit.
    pub evidence: String,
}

/// State and evidence, before they have a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The state.
    pub state: State,
    /// What shows it.
    pub evidence: String,
}

impl State {
    /// As it is written in every output.
    pub fn name(self) -> &'static str {
        match self {
            State::On => "on",
            State::Off => "off",
            State::Absent => "absent",
            State::Unknown => "unknown",
        }
    }

    /// On or off.
    pub fn of(on: bool) -> Self {
        if on { State::On } else { State::Off }
    }
}

impl Seen {
    /// A state with what shows it.
    pub fn new(state: State, evidence: impl Into<String>) -> Self {
        Self { state, evidence: evidence.into() }
    }
}

impl Machine {
    /// What this machine says of a feature; unknown where it was not asked.
    pub fn state(&self, feature: &str) -> State {
        self.row(feature).map_or(State::Unknown, |row| row.state)
    }

    /// The row of a feature.
    pub fn row(&self, feature: &str) -> Option<&Row> {
        self.features.iter().find(|row| row.feature == feature)
    }

    /// The level of whoever runs this machine.
    pub fn level_below(&self) -> Level {
        match self.level {
            Level::At(depth) => depth.checked_sub(1).map_or(Level::Below, Level::At),
            unnumbered => unnumbered,
        }
    }

    /// True if another level runs this machine.
    pub fn is_guest(&self) -> bool {
        self.facts.below.present == Some(true)
    }
}
