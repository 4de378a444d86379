//! Which thread should run where? A placement for a whole host, and how good it is by one stated score.
//!
//! In: a [`Task`]: CPUs with what is taken of them, units that want CPU, a goal. Out: [`Plan`]s, best first, the one that
//! holds now among them.
//! ```text
//! Task --search--> starts: now, helpers apart, home nodes, empty cores --> moves while the score falls --> Plans
//!         score: shortfall, remote memory, siblings of strangers, threads moved  (a sum of prices, each in the answer)
//! ```
//! Deterministic: no clock, no chance; equal scores are decided by fewer moves and lower CPU numbers.

mod score;
mod search;
#[cfg(test)]
mod tests;

pub use score::{Load, Score, load};
pub use search::plans;

use base::CpuSet;

/// What two busy threads of one core do together, as one core's work: recalled from common practice, not measured here.
pub const SMT_YIELD: f64 = 1.25;

/// Distance to another node where no firmware told it: what Linux assumes is 20 (`REMOTE_DISTANCE`,
/// include/linux/topology.h, Linux 6.12).
pub const REMOTE_DISTANCE: u32 = 20;

/// What a placement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// As much work as possible.
    #[default]
    Throughput,
    /// A CPU of its own for every vCPU.
    Latency,
    /// As few cores as possible.
    Density,
    /// As few nodes as possible, so that packages can sleep.
    Power,
}

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Task {
    /// CPUs that may be used, in order.
    pub cpus: Vec<Room>,
    /// Threads, alone or together.
    pub units: Vec<Unit>,
    /// What it is for.
    pub goal: Goal,
    /// Distances between nodes, where told.
    pub distances: std::collections::BTreeMap<(u32, u32), u32>,
}

/// A CPU and what of it is gone before any unit runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// Its number.
    pub cpu: u32,
    /// Its core.
    pub core: u32,
    /// Its node.
    pub node: u32,
    /// Interrupts, softirqs, steal, other programs: share of the CPU.
    pub taken: f64,
}

/// Threads that are placed as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// Number of its VM.
    pub vm: usize,
    /// True for a vCPU, which gets one CPU; else the unit gets a set of them.
    pub single: bool,
    /// How many threads.
    pub threads: u32,
    /// CPUs that they want together.
    pub demand: f64,
    /// Where they may run now; `None`: not told.
    pub now: Option<CpuSet>,
    /// The node of their memory.
    pub home: Option<u32>,
    /// True if they stay where they are.
    pub kept: bool,
}

/// A placement.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What it does, in words.
    pub idea: &'static str,
    /// CPUs of each unit, in the task's order.
    pub places: Vec<CpuSet>,
    /// True for each unit that shares its CPUs with no other by intent.
    pub exclusive: Vec<bool>,
    /// How good it is.
    pub score: Score,
    /// What each unit gets, in CPUs.
    pub shares: Vec<f64>,
}

impl Task {
    /// All CPUs that may be used.
    pub fn all(&self) -> CpuSet {
        self.cpus.iter().map(|room| room.cpu).collect()
    }

    fn distance(&self, from: u32, to: u32) -> u32 {
        let far = if from == to { 10 } else { REMOTE_DISTANCE };
        self.distances.get(&(from, to)).copied().unwrap_or(far).max(10)
    }
}
