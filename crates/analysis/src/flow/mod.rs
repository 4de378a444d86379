//! Where did the time of every vCPU go, by level, and why?
//!
//! In: kernel traces of one or several levels, as the [ledger](crate::facts::ledger) adds them up. Out: one Section with
//! the states, exits, chains and findings. [`answer`] is the entry.

pub mod advise;
pub mod checks;
pub mod figure;
mod head;
pub mod ranking;
pub mod rules;
pub mod section;
mod summary;
pub mod tables;
mod unknowns;

pub use section::{QUESTION, answer};
