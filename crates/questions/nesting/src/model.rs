//! What the nesting question works on: machines of different levels, and what each says of each feature.

use base::Level;
use base::figure::Standing;
use host::Virtualization;

/// All machines with a snapshot.
#[derive(Debug)]
pub struct Model {
    /// Outermost first.
    pub machines: Vec<Machine>,
    /// Whether a trace has exits of nested guests.
    pub traced_nested: bool,
}

impl Model {
    /// Whether a guest of `machine` is known to run guests of its own: the machine is a guest itself, another one of the recording runs on it, or
    /// a trace shows it. That nesting is allowed tells nothing: since Linux 4.20 it is by default.
    pub fn is_nesting(&self, machine: &Machine) -> bool {
        let runs_on_it = |other: &Machine| other.level > machine.level;
        self.traced_nested || machine.is_guest() || self.machines.iter().any(runs_on_it)
    }
}

#[derive(Debug)]
pub struct Machine {
    pub level: Level,
    /// Its id in the recording.
    pub id: String,
    pub facts: Virtualization,
    pub features: Vec<Row>,
    /// VMs whose definitions ask for VMX or SVM, and where each does.
    pub asks_for_nesting: Vec<(String, String)>,
    /// Whether threads of KVM's vCPUs were seen there.
    pub runs_guests: bool,
}

/// What one machine says of one feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub feature: &'static str,
    pub state: Standing,
    /// The file and its value, or the bit.
    pub evidence: String,
}

/// State and evidence, before they have a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub state: Standing,
    pub evidence: String,
}

impl Seen {
    pub fn new(state: Standing, evidence: impl Into<String>) -> Self {
        Self { state, evidence: evidence.into() }
    }
}

impl Machine {
    /// What this machine says of a feature; unknown where it was not asked.
    pub fn state(&self, feature: &str) -> Standing {
        self.row(feature).map_or(Standing::Unknown, |row| row.state)
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
