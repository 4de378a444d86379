//! A recording's timeline with every slice and every chain: what a server answers from and other viewers are given.

use super::{Chain, Columns, WakeUps, Waker};
use crate::Level;

/// All lanes of a recording.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// The machine whose vCPUs they are: the outermost one that was recorded.
    pub host: Level,
    /// A lane for each vCPU, in the order of VM and vCPU; then those of other kinds.
    pub timeline: Columns,
    /// All chains, by lane and time.
    pub chains: Vec<Chain>,
    /// When threads were woken, by number of their lane and of the waker.
    pub wakes: WakeUps,
    /// Who woke them.
    pub wakers: Vec<Waker>,
    /// The vCPUs of the first lanes, by lane.
    pub vcpus: Vec<VcpuLane>,
    /// What is not drawn and why, and how far guests' lanes may be off, in sentences.
    pub notes: Vec<String>,
    /// Where drawing ended before the recording did, if it did.
    pub cut: Option<Cut>,
}

/// Where drawing ended, because no more was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Lanes are whole up to here.
    pub at_ns: u64,
    /// Slices of vCPUs that begin later.
    pub left_out: u64,
}

/// Which vCPU a lane shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VcpuLane {
    /// VM.
    pub vm: String,
    /// Its vCPU.
    pub vcpu: u32,
    /// Thread.
    pub tid: i32,
}
