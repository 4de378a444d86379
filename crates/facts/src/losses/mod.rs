//! How much time does the host take from each vCPU, when, and who takes it?
//!
//! In:  the ledger's walk, which this takes part in. Out: for every vCPU thread the pieces of time that were lost, each with the
//! state it was in and its cause; where that is not known; and the time from each exit to the next entry.
//!
//! ```text
//! guest  ######               ####              ########             ####
//! exit         | EXTERNAL_IRQ |   | EXTERNAL_IRQ         | HLT       |
//! lost         [handling][irq]    [handling][preempted]        [wake delay]       involuntary: definition B
//! exits        [-------------]    [--------------------]                          exit to entry: definition A
//! ```
//! [`stretches`] answers what windows of any length lost. Memory: 16 bytes for each piece, 4 for most exits. What counts as lost is
//! said in docs/read/latency.md.

mod causes;
mod collect;
mod collected;
mod holders;
mod host_initiated;
mod model;
mod packed;
mod shares;
mod stretches;

pub use collect::Collector;
pub use model::{By, Cause, Definition, Lost, LostIn, PartLosses, Pieces, VcpuLosses};
pub use stretches::{InAll, Limit, Over, Stretches, Worst};
