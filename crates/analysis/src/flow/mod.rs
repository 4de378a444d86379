//! Where did the time of every vCPU go, by level, and why?
//!
//! In:  kernel traces of one or several levels. Out: one Section with the ledger, exits, chains and findings.
//! ```text
//!                 L2 exit                                                       L2 runs again
//! L2  ─────────────┐                                                            ┌────────
//! L1               │        ┌── VMREAD ──┐  ┌── VMWRITE ──┐  ┌── VMRESUME ──┐   │
//! L0               └─inject─┘            └──┘             └──┘              └───┘
//!                  |<------------------------ one chain ----------------------->|
//! ```
//! [`answer`] is the entry. The walk over the events, which other questions share, lies in [`crate::shared`].

pub mod advise;
mod affinity;
pub mod aligned;
pub mod asked;
pub mod build;
pub mod bursts;
pub mod checks;
pub mod figure;
mod head;
pub mod identity;
mod line;
pub mod live;
pub mod measure;
pub mod model;
pub mod profile;
#[cfg(test)]
mod quiet;
pub mod ranking;
pub mod rules;
pub mod section;
pub mod stacks;
mod states;
mod summary;
pub mod tables;
pub mod timeline;
mod twins;
mod unknowns;

pub use section::{QUESTION, answer};
