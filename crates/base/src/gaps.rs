//! When did a loop not run that does nothing but read the time-stamp counter? A part of a recording, of kind `samples`.
//!
//! `kvmscope bench timer` writes it, with a trace of the host beside it.

use crate::json_line;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::Path;

/// The schema this version reads and writes.
pub const SCHEMA: &str = "kvmscope-gaps/1";

/// What its thread is called, by which it is found in the trace.
pub const THREAD: &str = "gaps";

/// What the loop found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gaps {
    /// [`SCHEMA`].
    pub schema: String,
    /// The thread that ran the loop, in a guest or by itself.
    pub tid: i32,
    /// The CPU that it was bound to.
    pub cpu: u32,
    /// Gaps that are shorter were not noted.
    pub threshold_ns: u64,
    /// When it looked, by CLOCK_MONOTONIC: from, to. It stops for a moment each second.
    pub looked: Vec<(u64, u64)>,
    /// When each gap ended, by CLOCK_MONOTONIC, and how long it was; in order.
    pub gaps: Vec<(u64, u64)>,
}

/// 196,608 gaps, which is what the loop has room for, take 8 MB.
const MOST_BYTES: u64 = 64 << 20;

impl Gaps {
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
