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
pub mod apart;
pub mod attribution;
pub mod avic;
pub mod benches;
pub mod breach;
pub mod budget;
pub mod carried;
mod case;
pub mod chain_plan;
pub mod chains;
pub mod counted;
pub mod counts;
pub mod datapaths;
pub mod described;
pub mod estimate;
pub mod fields;
mod given;
mod guest_stages;
mod input;
mod known;
pub mod ledger;
pub mod losses;
pub mod machines;
mod memo;
pub mod migrations;
pub mod names;
mod on_axis;
pub mod published;
mod queries;
mod question;
pub mod ranking;
pub mod ring;
pub mod rows;
pub mod rule;
pub mod samples;
pub mod shares;
pub mod starvation;
pub mod statistics;
pub mod steal;
pub mod timeline;
pub mod traced_exits;
pub mod validation;
pub mod windows;
pub mod workers;

pub use align;
pub use case::{Case, WINDOWS};
pub use given::{Given, Listing, LossOptions, TraceHints};
pub use input::{Input, MOST_PLAN_BYTES};
pub use known::Known;
pub use queries::Queries;
pub use question::{About, Answer, Error, Question};
