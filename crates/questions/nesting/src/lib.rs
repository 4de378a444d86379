//! What does an exit cost at every level, and what would make it cheaper?
//!
//! In:  snapshots of machines and benches. Out: one Section with the features of every level, findings, and costs.
//! ```text
//! snapshot --host--> facts --features/--> on | off | absent | unknown --rules, checks/--> findings
//!                          --known------> what each parameter of KVM's modules means
//! benches --measured/--> what exits and clock reads cost
//! ```
//! [`answer`] is the entry. What only another level can tell is listed as such (`untold`), never guessed.

pub(crate) mod advise;
pub mod build;
pub(crate) mod checks;
pub mod features;
pub(crate) mod flags;
pub(crate) mod inferred;
pub mod kernels;
pub mod known;
mod matrix;
pub mod measured;
pub(crate) mod measured_cost;
pub mod model;
pub mod plan;
pub(crate) mod ratio;
pub mod rules;
pub mod section;
pub mod tables;
pub(crate) mod untold;

pub use section::{QUESTION, answer};
