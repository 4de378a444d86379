//! How many packets did a datapath carry when it was measured, where did the others go, and what did each cost?
//!
//! In: trials of a datapath ([`base::datapath`]), and what Open vSwitch and testpmd printed. Out: one Section: rates over the
//! trials of each kind with their spread, the books of each trial, cycles of each packet, who disturbed the threads that poll.
//! ```text
//! trials --of one kind--> Kind --median, least, most--> rates      (kind: measured)
//!    '--each--> trials, books, pollers --by size and ports--> cycles: what the planner is calibrated with
//!    '--with a trace of the same machine--> gaps: who had the CPUs of threads that poll
//! text --> pmds, queues, flows, ports
//! ```

mod beside;
pub mod dials;
mod figure;
mod foretold;
mod gaps;
pub(super) mod judged;
mod kinds;
mod printed;
pub(super) mod rules;
mod section;
mod tables;
mod unseen;

pub use section::{QUESTION, answer};
pub use tables::TABLES;
