//! How many frames does a path between two machines carry, what does each step cost, and who disturbed the run?
//!
//! In: the results of `kvmscope bench channel` ([`base::channel::Run`]), one for each launch and setup, and what was recorded beside. Out:
//! rates, what a frame costs, gaps, what a window that nobody has here would change, how long frames take, what machines deliver while
//! their flow table changes, and what becomes of an honest side whose peer is hostile.
//! ```text
//! <machine>/bench/channel.json --> launches of one setup --measured-->  medians, ranges      --> table `rates` (measured)
//!                                  batches of one series --model-->     index, copy, residual --> table `rates`, figures
//!                                                           | its window swapped for one of --windows--> rows `modelled`
//!                                  gaps that each side saw --culprits, by a trace beside--> table `gaps`
//!                                  parts of setting it up  --> table `setups`
//!                                  delays, flow tables, faults of each launch --> tables `delays`, `flows`, `faults`
//!                                  --rules, checks--> findings
//! ```
//! What was measured, modelled and published is never mixed: rows say which they are, and figures draw each in its own way.

mod calibration;
mod checks;
mod costs;
mod culprits;
mod delays;
mod dpdk;
mod faults;
mod figures;
mod flows;
mod machines;
mod measured;
mod rules;
mod section;
mod setups;
mod summary;
mod tables;
mod unknowns;
mod windows;

pub use calibration::ring_cost;
pub use rules::words;
pub use section::{QUESTION, answer};
pub use tables::TABLES;

/// Id of its Section.
pub const ID: &str = "channel";

#[cfg(test)]
mod tests;
