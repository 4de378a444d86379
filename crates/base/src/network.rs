//! What a paced train of numbered packets saw of a guest that was moved: `<machine>/network/<name>.json`.

use serde::{Deserialize, Serialize};
use std::io::{Error, Result};
use std::path::Path;

/// The schema this version reads and writes.
pub const SCHEMA: &str = "kvmscope-network/1";

/// A packet and its reply take some 90 bytes; [`MOST_PACKETS`] of them fit.
const MOST_BYTES: u64 = 1 << 26;

/// A train ends after so many.
pub const MOST_PACKETS: usize = 400_000;

/// One move. Times are CLOCK_REALTIME of the one machine that both sides, and our end, are on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// [`SCHEMA`].
    pub schema: String,
    /// When the train began: the times of packets count from here.
    pub from_ns: u64,
    /// When it had ended, and what came afterwards was waited for.
    pub to_ns: u64,
    /// Between two packets, as it was meant.
    pub interval_ns: u64,
    /// When each was sent, by its number.
    pub sent_ns: Vec<u64>,
    /// What the guest sent back, in the order in which it came.
    pub replies: Vec<Reply>,
    /// When reverse ARP first came from the target, which tells switches where the guest is; CLOCK_REALTIME.
    pub announced_ns: Option<u64>,
    /// What went over the link between both sides.
    pub link: Option<Link>,
    /// When that link was down, looked at every few milliseconds.
    pub downs: Vec<Down>,
}

/// For how long a link was down; CLOCK_REALTIME.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Down {
    /// From this look on.
    pub from_ns: u64,
    /// Until this one, or the last one.
    pub to_ns: u64,
}

/// The guest's reply to one packet, as it came to our end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// When.
    pub at_ns: u64,
    /// The number of the packet.
    pub number: u32,
    /// How many packets the guest had received by then, modulo 2^32.
    pub count: u32,
    /// By whose port it came to the switch.
    pub from: Place,
}

/// One of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Where the guest was.
    Source,
    /// Where it went.
    Target,
}

/// What the kernel counted of the stream that carries the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Bytes that the source sent, without headers of Ethernet, IP and TCP.
    pub bytes: u64,
    /// Segments that were sent again, and are counted again.
    pub retransmitted: u64,
}

impl Network {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or is none.
    pub fn read(path: &Path) -> Result<Self> {
        let read = crate::json_line::read_as(path, MOST_BYTES, SCHEMA, |read: &Self| &read.schema)?;
        let most = [read.sent_ns.len(), read.replies.len() / 2, read.downs.len()].into_iter().max().unwrap_or_default();
        if most > MOST_PACKETS {
            return Err(Error::other(format!("{most} packets, of {MOST_PACKETS} at most")));
        }
        Ok(read)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn write(&self, path: &Path) -> Result<()> {
        crate::json_line::write(self, path)
    }
}
