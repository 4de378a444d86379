//! Where did the time of every vCPU go, by level, and why?
//!
//! In: kernel traces of one or several levels, as the [ledger](facts::ledger) adds them up. Out: one Section with
//! the states, exits, chains and findings. [`answer`] is the entry.

pub(crate) mod advise;
pub(crate) mod checks;
pub(crate) mod figures;
mod halts;
mod head;
mod held;
pub mod live;
mod nested_summary;
mod rates;
mod reasons;
pub mod rules;
pub mod section;
mod summary;
pub mod tables;
mod unknowns;

pub use section::{QUESTION, answer};
