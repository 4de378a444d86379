//! What became of frames while the flow table changed under full load?

use serde::{Deserialize, Serialize};

/// Machines that send to each other by a flow table that a vSwitch changes. The lags are the distribution of the result that this stands
/// beside, in ns: one for each change and machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowRun {
    /// Machines, the vSwitch not counted.
    pub vms: u32,
    /// Changes that were asked for, per second.
    pub asked_per_s: u64,
    /// How long the table changed.
    pub ns: u64,
    /// Changes that were made, and how many of them took a rule away.
    pub changes: u64,
    /// See there.
    pub revocations: u64,
    /// Epochs that a frame may be late by.
    pub grace: u64,
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that were sent by an epoch older than the current one, though their rule was gone.
    pub stale_sent: u64,
    /// Frames that were delivered, and those that the receiver's table did not let through.
    pub delivered: u64,
    /// See there.
    pub dropped: u64,
    /// Frames that were delivered though the log of all changes forbids it.
    pub misdelivered: u64,
    /// 99th percentile of the lag of each machine.
    pub lag_p99_ns: Vec<u64>,
    /// Changes that a machine never acknowledged before the run ended, over all machines.
    pub unacknowledged: u64,
    /// Machines that acknowledged an epoch that has not begun, or an earlier one than before.
    pub acknowledgement_faults: u64,
    /// Whether machines had to share CPUs.
    pub shared_cpus: bool,
}
