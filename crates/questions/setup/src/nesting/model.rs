//! What the nesting question works on: machines of different levels, and what each says of each feature.

use base::Level;
use host::Virtualization;

/// All machines with a snapshot.
#[derive(Debug)]
pub struct Model {
    /// Outermost first.
    pub machines: Vec<Machine>,
}

#[derive(Debug)]
pub struct Machine {
    pub level: Level,
    /// Its id in the recording.
    pub id: String,
    pub facts: Virtualization,
    pub features: Vec<Row>,
}

/// What can be said of a feature. Unknown is an answer: it is never read as off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    On,
    /// It could be used and is not.
    Off,
    /// This level is not offered it: hardware, kernel or the level below lack it.
    Absent,
    Unknown,
}

/// What one machine says of one feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub feature: &'static str,
    pub state: State,
    /// The file and its value, or the bit.
    pub evidence: String,
}

/// State and evidence, before they have a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub state: State,
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

    pub fn of(on: bool) -> Self {
        if on { State::On } else { State::Off }
    }
}

impl Seen {
    pub fn new(state: State, evidence: impl Into<String>) -> Self {
        Self { state, evidence: evidence.into() }
    }
}

impl Machine {
    /// What this machine says of a feature; unknown where it was not asked.
    pub fn state(&self, feature: &str) -> State {
        self.row(feature).map_or(State::Unknown, |row| row.state)
    }

    pub fn row(&self, feature: &str) -> Option<&Row> {
        self.features.iter().find(|row| row.feature == feature)
    }

    /// The level of whoever runs this machine.
    pub(crate) fn level_below(&self) -> Level {
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
