//! The directory in which the recording half and the reading half meet.
//!
//! `recording.json` (CONTRACTS: schema `kvmscope-recording/1`) names the machines, their levels, and the parts: traces,
//! host snapshots, bench results. Bare files are taken too: [`Recording::of_file`] builds the manifest on the spot.

use crate::Level;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A recording: its manifest and where it lies.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The directory; part paths are relative to it.
    pub root: PathBuf,
    /// When it was made, as the recorder wrote it.
    pub created: Option<String>,
    /// What made it.
    pub tool: Option<String>,
    /// The mark of a recording whose structure is true and whose nanoseconds are not.
    pub emulated: Option<Emulator>,
    /// The machines, outermost first.
    pub machines: Vec<Machine>,
    /// The files.
    pub parts: Vec<Part>,
}

/// What emulated the hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Emulator {
    /// QEMU's TCG.
    Tcg,
    /// Bochs.
    Bochs,
}

/// One machine of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Unique in the recording: `L0`, `L1`.
    pub id: String,
    /// 0 for the outermost recorded machine.
    pub level: u8,
    /// The machine it is a guest of.
    pub parent: Option<String>,
    /// Its name, where known.
    #[serde(default)]
    pub name: Option<String>,
}

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
    /// A QMP event stream.
    #[serde(rename = "qmp")]
    Qmp,
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
    /// True for kernel traces.
    pub fn is_trace(self) -> bool {
        matches!(self, PartKind::TraceDat | PartKind::Ctf | PartKind::PerfData | PartKind::Text)
    }
}

impl Recording {
    /// Level of the machine called `id`; unknown if the manifest does not name it.
    pub fn level_of(&self, id: &str) -> Level {
        self.machines.iter().find(|machine| machine.id == id).map_or(Level::Unknown, |machine| Level::At(machine.level))
    }
}

/// Why a recording could not be read, as a sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The refusal.
        source: std::io::Error,
    },
    /// The manifest is not what it should be.
    #[error("{}: {reason}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}
