//! Is the memory of a guest that was moved what it was? `<machine>/memory/<name>.json`.
//!
//! Both QEMUs were asked once all was over, with the guest stopped on the target.

use serde::{Deserialize, Serialize};

/// The schema this version reads and writes.
pub const SCHEMA: &str = "kvmscope-moved-memory/1";

/// It is some 500 bytes.
const MOST_BYTES: u64 = 1 << 16;

/// So many addresses are named.
pub const MOST_NAMED: usize = 16;

/// One move. Pages are of 4 KiB.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedMemory {
    /// [`SCHEMA`].
    pub schema: String,
    /// Before it was moved, CLOCK_REALTIME.
    pub from_ns: u64,
    /// When its memory was looked at.
    pub to_ns: u64,
    /// Pages that nobody wrote to since the source stopped the guest: they were held against the source's.
    pub compared: u64,
    /// Pages that the guest goes on writing to: they were held against what its program has written by then.
    pub foretold: u64,
    /// Pages that it writes to in a way that nobody can foretell.
    pub left_out: u64,
    /// Pages that are not what they should be.
    pub differing: u64,
    /// Where the first of these lie, in the guest's memory.
    pub first_differing: Vec<u64>,
}

crate::json_line::read_and_write!(MovedMemory);

impl MovedMemory {
    /// Counts a page that is not what it should be, at `address`.
    pub fn differs(&mut self, address: u64) {
        self.differing += 1;
        if self.first_differing.len() < MOST_NAMED {
            self.first_differing.push(address);
        }
    }
}
