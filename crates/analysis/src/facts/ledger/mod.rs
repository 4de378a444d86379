//! Where the time of every vCPU went: sums over the pieces, exits and chains that the walk reports, for each trace of a
//! recording, with the names of VMs and on one time line.
//!
//! ```text
//!                 L2 exit                                                       L2 runs again
//! L2  ─────────────┐                                                            ┌────────
//! L1               │        ┌── VMREAD ──┐  ┌── VMWRITE ──┐  ┌── VMRESUME ──┐   │
//! L0               └─inject─┘            └──┘             └──┘              └───┘
//!                  |<------------------------ one chain ----------------------->|
//! ```

mod affinity;
pub(crate) mod aligned;
pub mod asked;
pub mod begin;
pub mod build;
pub(crate) mod bursts;
mod duplicates;
pub(crate) mod identity;
pub(crate) mod levels;
pub mod line;
pub mod live;
pub(crate) mod measure;
pub mod model;
mod profile;
#[cfg(test)]
pub(crate) mod quiet;
pub(crate) mod stacks;
pub(crate) mod tally;
