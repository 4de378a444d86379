//! What is measured of a datapath beside its trials: bounds that a search found, and streams of messages.

use serde::{Deserialize, Serialize};

/// Between which rates a datapath begins to lose more than a goal allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateBounds {
    /// What carried the packets.
    pub design: String,
    /// VNFs of the chain.
    pub vnfs: u32,
    /// Size of each frame, FCS counted.
    pub size_bytes: u32,
    /// `mlrsearch`, `rfc2544`.
    pub method: String,
    /// `ndr`, `pdr`.
    pub goal: String,
    /// The share of frames that the goal allows to be lost.
    pub loss_ratio: f64,
    /// The highest rate found that meets the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_pps: Option<u64>,
    /// The lowest rate found that does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper_pps: Option<u64>,
    /// Why the search ended there, as a sentence.
    pub ended: String,
    /// Trials of the search, for all of its goals together.
    pub trials: u32,
    /// Those of them that did not count, because the sender missed its rate or time was stolen.
    pub discarded: u32,
}

/// One run of a TCP stream whose program writes messages of one size. A message is no frame: the stack packs as it likes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamRun {
    /// What carried the stream.
    pub path: String,
    /// VNFs between the two ends.
    pub vnfs: u32,
    /// Bytes of each write.
    pub message_bytes: u32,
    /// Which run of its kind, from 0.
    pub repeat: u32,
    /// Gb/s that the receiving program read.
    pub gbps: f64,
    /// CPU seconds of the sending program for 10^9 bytes.
    pub sender_cpu_s_per_gb: f64,
    /// The same of the receiving program.
    pub receiver_cpu_s_per_gb: f64,
    /// Segments that TCP sent again.
    pub retransmits: u64,
}
