//! How many frames does a path between two machines carry, what does each step cost, and who disturbed the run?
//!
//! In: the results of `kvmscope bench channel` ([`base::channel::Run`]), one for each launch and setup, and what was recorded beside. Out: rates, what a frame costs, gaps,
//! and what a window that nobody has here would change.
//! ```text
//! <machine>/bench/channel.json --> launches of one setup --measured-->  medians, ranges      --> table `rates` (measured)
//!                                  batches of one series --model-->     index, copy, residual --> table `rates`, figures
//!                                                           | its window swapped for one of --windows--> rows `modelled`
//!                                  gaps that each side saw --culprits, by a trace beside--> table `gaps`
//!                                  parts of setting it up  --> table `setups`
//!                                  --rules, checks--> findings
//! ```
//! What was measured, modelled and published is never mixed: rows say which they are, and figures draw each in its own way.

mod checks;
mod costs;
mod culprits;
mod dpdk;
mod figures;
mod machines;
mod measured;
mod model;
mod rules;
mod section;
mod setups;
mod tables;
mod windows;

pub use rules::words;
pub use section::{QUESTION, answer};
pub use tables::TABLES;

/// Id of its Section.
pub const ID: &str = "channel";

#[cfg(test)]
pub(crate) mod tests;
