//! What a recording is made of: one file or directory each, of one kind, on one machine.

use super::{BUDGET_FILE, HIBERNATION_FILE, PLAN_FILE, PREDICTION_FILE};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One file or directory of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Relative to the recording's directory.
    pub path: PathBuf,
    /// Id of the machine it was made on.
    pub machine: String,
    /// What it is.
    pub kind: PartKind,
    /// Name of the clock it was recorded with, where known.
    #[serde(default)]
    pub clock: Option<String>,
    /// Whole, or what a killed recorder left.
    pub state: PartState,
}

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartKind {
    /// trace-cmd's file.
    #[serde(rename = "trace.dat")]
    TraceDat,
    /// A CTF trace directory.
    #[serde(rename = "ctf")]
    Ctf,
    /// perf's file.
    #[serde(rename = "perf.data")]
    PerfData,
    /// Text of trace-cmd, ftrace or perf script.
    #[serde(rename = "text")]
    Text,
    /// A host snapshot.
    #[serde(rename = "host")]
    Host,
    /// A bench result.
    #[serde(rename = "bench")]
    Bench,
    /// What a program that measures latencies wrote: one of [`ResultFile`](super::ResultFile).
    #[serde(rename = "samples")]
    Samples,
    /// A QMP event stream.
    #[serde(rename = "qmp")]
    Qmp,
    /// What Open vSwitch and testpmd print of the packets they forward.
    #[serde(rename = "pmd")]
    Pmd,
    /// What a datapath carried, measured: a file of [`DatapathRuns`](crate::datapath::DatapathRuns).
    #[serde(rename = "datapath")]
    Datapath,
    /// The latency budget that the recording is judged by: TOML.
    #[serde(rename = "budget")]
    Budget,
    /// What a model said before a run: a [`Prediction`](crate::prediction::Prediction).
    #[serde(rename = "prediction")]
    Prediction,
    /// What was seen of the heartbeat of a guest that was moved: a [`Heartbeat`](crate::heartbeat::Heartbeat).
    #[serde(rename = "heartbeat")]
    Heartbeat,
    /// What packets saw of a guest that was moved: a [`Network`](crate::network::Network).
    #[serde(rename = "network")]
    Network,
    /// What the operating system told of the QEMUs that a guest was moved between: a [`Processes`](crate::processes::Processes).
    #[serde(rename = "processes")]
    Processes,
    /// Whether the memory of a guest that was moved is what it was: a [`MovedMemory`](crate::moved_memory::MovedMemory).
    #[serde(rename = "moved-memory")]
    MovedMemory,
    /// Guests that were saved to files and woken from them: a [`Hibernation`](crate::hibernation::Hibernation).
    #[serde(rename = "hibernation")]
    Hibernation,
    /// What is asked of the planner of datapaths: TOML.
    #[serde(rename = "plan")]
    Plan,
    /// What programs counted, without the events: `perf kvm stat`, `kvm_stat`, `perf stat`.
    #[serde(rename = "counts")]
    Counts,
    /// Free text.
    #[serde(rename = "notes")]
    Notes,
}

/// Whole or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartState {
    /// The recorder finished it.
    Complete,
    /// The recorder was still writing it.
    Partial,
}

impl PartKind {
    /// Its name in a manifest.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// True for kernel traces.
    pub fn is_trace(self) -> bool {
        matches!(self, PartKind::TraceDat | PartKind::Ctf | PartKind::PerfData | PartKind::Text)
    }
}

impl Part {
    /// Where a part goes that has no place in a recording yet: below its machine, by the default name of its kind.
    pub fn default_place(&self) -> PathBuf {
        let own = Path::new(self.path.file_name().unwrap_or("part".as_ref()));
        let name = match self.kind {
            PartKind::TraceDat => Path::new("trace.dat"),
            PartKind::Ctf => Path::new("ctf"),
            PartKind::PerfData => Path::new("perf.data"),
            PartKind::Text => Path::new("trace.txt"),
            PartKind::Budget => Path::new(BUDGET_FILE),
            PartKind::Plan => Path::new(PLAN_FILE),
            PartKind::Prediction => Path::new(PREDICTION_FILE),
            PartKind::Hibernation => Path::new(HIBERNATION_FILE),
            PartKind::Samples => return Path::new(&self.machine).join("samples").join(own),
            PartKind::Pmd => return Path::new(&self.machine).join("pmd").join(own),
            PartKind::Datapath => return Path::new(&self.machine).join("datapath").join(own),
            PartKind::Heartbeat => return Path::new(&self.machine).join("heartbeat").join(own),
            PartKind::Network => return Path::new(&self.machine).join("network").join(own),
            PartKind::MovedMemory => return Path::new(&self.machine).join("memory").join(own),
            PartKind::Processes => return Path::new(&self.machine).join("processes").join(own),
            PartKind::Qmp => return Path::new(&self.machine).join("qmp").join(own),
            PartKind::Counts => return Path::new(&self.machine).join("counts").join(own),
            PartKind::Host | PartKind::Bench | PartKind::Notes => own,
        };
        Path::new(&self.machine).join(name)
    }
}
