//! Which threads compete for which CPU, and what should change?
//!
//! In: snapshots of machines, one sample or two, or text that people pasted. Out: one Section with who runs where, what
//! contradicts itself, rules that fired, rival explanations with what decides between them, and placements to choose from.
//! ```text
//! host::Machine --build--> Model --solver--> placements, scored
//!                            |----culprits/-------> verdicts        who kept each starved thread from running
//!                            |----rules, checks/--> findings        what the evidence carries, and no more
//!                            |----hypotheses------> rival explanations, and the command that decides
//! ```
//! Waiting is measured or unknown: a small share of CPU may mean "wanted more" or "had nothing to do".

pub(crate) mod advise;
pub(crate) mod asked;
mod below;
pub mod build;
pub(crate) mod checks;
pub(crate) mod culprits;
mod expected;
pub(crate) mod figure;
mod held;
mod host;
pub mod hypotheses;
mod judged;
pub mod model;
mod preemptors;
pub mod proposal;
mod rivals;
pub mod rules;
pub mod section;
pub mod solver;
pub mod tables;
mod unknowns;

pub use model::{AskedPolling, Wishes};
pub use section::{QUESTION, answer, definitions};
