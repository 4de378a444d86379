//! How much time did the host take from each vCPU, when, and who took it?
//!
//! In: what every vCPU lost ([`losses`](facts::losses)), which the ledger's walk collects. Out: one Section with the worst
//! moments and their causes, what any window of time lost, and who took most. [`answer`] is the entry.
//!
//! ```text
//! losses of a vCPU --> Stretches --+-- worst window of each length      table windows
//!                                  +-- worst windows of one length ---- table moments: causes within each
//!                  --> sums by cause                                    table culprits
//! exits to entries --> Stretches ----- the same by the other definition table definitions
//! stages of interrupts and timers ---- paths: a picture, what is unknown   tables irq_stages, timer_stages
//! steal in a guest's /proc/stat ------ beside what the host took         table steal
//! goals of a budget --> judged ------- verdicts, rules                  table goals
//! ```

pub(crate) mod checks;
mod figures;
mod goals;
mod lacking;
pub(crate) mod measure;
mod paths;
mod results;
pub mod rules;
mod section;
mod summary;
pub mod tables;
mod truth;

pub use section::{QUESTION, answer};
