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
pub mod aligned;
pub mod asked;
pub mod begin;
pub mod build;
pub mod bursts;
mod duplicates;
pub(crate) mod extra;
pub(crate) mod identity;
pub mod levels;
mod life;
pub mod line;
pub mod live;
pub mod measure;
pub mod model;
mod profile;
#[cfg(any(test, feature = "testing"))]
pub mod quiet;
pub(crate) mod stacks;
mod tally;
pub mod witness;
