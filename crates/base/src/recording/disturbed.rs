//! What a lab did to a guest on purpose, and when: `<machine>/truth.json`.
//!
//! `lab rt` writes it, with more in it. What a trace shows can be held against it.

use super::Recording;
use super::note;
use serde::{Deserialize, Serialize};

/// Name of the file in a machine's directory.
pub const TRUTH_FILE: &str = "truth.json";

/// Disturbances of one vCPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbed {
    /// The thread of the vCPU.
    pub vcpu_tid: i32,
    /// The name of the thread that did it, if anything was done.
    pub by: Option<String>,
    /// What was done: `hog`, `fifo`, `quota`, `stop`, `none`.
    pub disturbance: String,
    /// When, in time order.
    pub bursts: Vec<Burst>,
}

/// One disturbance, in ticks of the machine's time-stamp counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// When it began.
    pub from_tsc: u64,
    /// When it was over.
    pub to_tsc: u64,
}

// Ten bursts a second for an hour are 3 MB.
note::read_and_write!(Disturbed, TRUTH_FILE, "disturbances of a lab", most_bytes: 64 << 20);

impl Recording {
    /// What a lab did to guests of `machine`; `None` if the recording has nothing of it, or another lab's truth.
    pub fn disturbed(&self, machine: &str) -> Option<Disturbed> {
        note::of_machine(self, machine)?.ok()
    }
}
