//! What happened, typed: the ground that every question stands on.
//!
//! ```text
//! trace events --events--> walk (who is on which CPU) --> thread (one state machine each) --> Sink
//!                                                                                              |
//!                     ledger (sums by vCPU, level, reason)  <---------------------------------+---> timeline (pieces to draw)
//!                        ^
//!                     align (a guest's clock on that of the machine below)
//!
//! results of latency tests --> samples (of one shape), attributed to what the walk saw meanwhile
//!
//! losses (what the host took from each vCPU, and what any window of time lost): summed up on the ledger's walk
//! threads of a machine: what they ran and waited --> starvation (who is starved), shares (who would get how much CPU)
//! ```

pub mod ablation;
pub mod align;
pub(crate) mod apart;
pub mod attribution;
pub(crate) mod avic;
pub(crate) mod benches;
pub mod breach;
pub mod budget;
pub mod carried;
pub(crate) mod chains;
pub mod counted;
pub(crate) mod datapaths;
pub mod events;
pub(crate) mod kernel_threads;
pub(crate) mod keyed;
pub mod ledger;
pub mod losses;
pub(crate) mod machines;
pub mod migrations;
pub(crate) mod on_axis;
pub mod published;
pub mod samples;
pub mod shares;
pub mod stages;
pub mod starvation;
pub mod state;
pub(crate) mod steal;
pub mod thread;
pub mod timeline;
pub mod validation;
pub mod walk;
pub(crate) mod windows;
pub(crate) mod workers;

pub use events::{Isa, Reason, Role};
pub use state::{State, TracedLevel};
pub use walk::{Preemptor, Sink, Walk};
