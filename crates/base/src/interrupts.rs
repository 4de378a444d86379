//! How long did interrupts take from their edge outside a guest to the guest's handler? A part of a recording, of kind `samples`.
//!
//! `kvmscope bench irq` writes it, with a trace of the host beside it.

use crate::json_line;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::Path;

/// The schema this version reads and writes.
pub const SCHEMA: &str = "kvmscope-irq/1";

/// What the thread of the guest's vCPU is called where it is one of ours.
pub const THREAD: &str = "irq";

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interrupts {
    /// [`SCHEMA`].
    pub schema: String,
    /// The threads that an interrupt goes through, in order: the one that rings first, that of the vCPU last.
    pub tids: Vec<i32>,
    /// The CPU that the vCPU was bound to.
    pub cpu: u32,
    /// Between two edges.
    pub period_ns: u64,
    /// The guest slept between interrupts; else it spun.
    pub halts: bool,
    /// Edges. Each was answered, merged, lost or not answered.
    pub edges: u64,
    /// Edges that came before the handler had run for an older one: a device's interrupt then comes once.
    pub merged: u64,
    /// Edges that no handler answered before the end.
    pub unanswered: u64,
    /// Edges of which nobody knows whether they were answered.
    pub lost: u64,
    /// Runs of the handler without an edge.
    pub extra: u64,
    /// By how much each length may be off: how well the guest's counter is known on the host.
    pub error_ns: u64,
    /// When each handler began, by CLOCK_MONOTONIC, and how long after the edge; in order.
    pub answered: Vec<(u64, u64)>,
}

/// 4,194,304 interrupts, which is the most that a run takes, take 110 MB.
const MOST_BYTES: u64 = 256 << 20;

impl Interrupts {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or holds something else.
    pub fn read(input: impl Read) -> std::io::Result<Self> {
        json_line::read(input, MOST_BYTES)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        json_line::write(self, path)
    }
}
