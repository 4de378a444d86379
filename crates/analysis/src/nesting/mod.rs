//! What does an exit cost at every level, and what would make it cheaper?
//!
//! In:  snapshots of machines and benches. Out: one Section with the features of every level, findings, and costs.
//! ```text
//! snapshot --host--> facts --features/--> on | off | absent | unknown --rules, checks/--> findings
//!                          --known------> what each parameter of KVM's modules means
//! benches --measured/--> what exits and clock reads cost
//! ```
//! [`answer`] is the entry. What only another level can tell is listed as such (`untold`), never guessed.

pub mod advise;
pub mod build;
pub mod checks;
pub mod features;
pub mod flags;
pub mod inferred;
pub mod kernels;
pub mod known;
pub mod measured;
pub mod measured_cost;
pub mod model;
pub mod plan;
pub mod published;
pub mod ratio;
pub mod rules;
pub mod section;
pub mod tables;
pub mod traced_exits;
pub mod untold;

pub use section::{QUESTION, answer};
