//! Guests that were saved to files and woken from them: `<machine>/hibernation.json`.

use serde::{Deserialize, Serialize};

/// The schema this version reads and writes.
pub const SCHEMA: &str = "kvmscope-hibernation/1";

/// What a [prediction](crate::prediction::Prediction) of it is about.
pub const ABOUT: &str = "hibernation";

/// A guest takes some 400 bytes.
const MOST_BYTES: u64 = 1 << 20;

/// All guests of one hibernation: they were saved at once, and woken at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hibernation {
    /// [`SCHEMA`].
    pub schema: String,
    /// What QEMU was given: `mapped-ram` (a file with a place for each page), `file`, or `exec` (a program that writes one).
    pub how: String,
    /// What the file system does by itself.
    pub disk: Disk,
    /// In order.
    pub guests: Vec<Guest>,
}

/// How fast a file system writes and reads a file of data that cannot be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// What was written and read.
    pub bytes: u64,
    /// Until it was durable.
    pub write_ns: u64,
    /// Until it was read again.
    pub read_ns: u64,
    /// The slowest piece of it, as if all were like that.
    pub slowest_read_ns: u64,
    /// Past the page cache (O_DIRECT); else the cache was told to forget it before it was read.
    pub is_direct: bool,
}

/// One guest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Guest {
    /// Its memory.
    pub memory_bytes: u64,
    /// Pages of zeros, as QEMU counts them.
    pub zero_pages: Option<u64>,
    /// Other pages.
    pub normal_pages: Option<u64>,
    /// What its file takes on the disk.
    pub saved_bytes: Option<u64>,
    /// What it would take, compressed by zstd at level 1.
    pub compressed_bytes: Option<u64>,
    /// From `migrate` until the file was durable.
    pub save_ns: Option<u64>,
    /// From the start of a QEMU until the guest had counted on.
    pub wake_ns: Option<u64>,
    /// A sum over its memory when it was saved.
    pub sum_before: Option<String>,
    /// The same over what was loaded from the file.
    pub sum_after: Option<String>,
    /// Why it could not be saved or woken, as QEMU says.
    pub error: Option<String>,
    /// What was free then where the file was to be.
    pub free_bytes: Option<u64>,
    /// Where it could not be saved: whether the guest counts on.
    pub goes_on: Option<bool>,
}

impl Disk {
    /// Of reading.
    pub fn read_bytes_per_s(&self) -> f64 {
        self.bytes as f64 / (self.read_ns.max(1) as f64 / 1e9)
    }

    /// Of writing.
    pub fn write_bytes_per_s(&self) -> f64 {
        self.bytes as f64 / (self.write_ns.max(1) as f64 / 1e9)
    }
}

crate::json_line::read_and_write!(Hibernation);
