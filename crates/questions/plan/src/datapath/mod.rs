//! How many packets does a datapath carry, what binds it, and what does it cost?
//!
//! In: a [`Plan`], what a host has and what is to be carried, given by the user; no trace. Out: one Section with a rate for each
//! design, size and length, what binds it, cores, and the points that others published next to it.
//! ```text
//! Plan --model/: capacity of each resource / how often a packet uses it--> stages --least binds--> rates
//!                                                                             '--where two designs cross--> break-even
//! facts/published --the same model--> published: fitted | validated | bound | fails --> bands, docs/formats/validation.md
//! ```
//! What was measured is the question of [`measured`], whose rates stand in the same table.
//! docs/read/plan.md has the formulae and where each constant comes from.

mod band;
mod break_even;
mod calibrate;
mod compared;
mod controls;
mod figures;
mod latency;
pub mod measured;
mod memory;
mod model;
mod of_host;
pub mod options;
mod plan;
mod polling;
mod predict;
mod published;
pub mod quantity;
mod read;
mod rules;
mod search;
mod section;
mod sensitivity;
mod sheet;
mod stated;
mod tables;

pub use calibrate::{Calibration, RingCost, calibration};
pub use facts::ring::{ChannelCost, ChannelUse};
pub use model::demands::Demands;
pub use model::design::{Datapath, Design};
pub use model::frames::Frames;
pub use model::nic::{NICS, Nic};
pub use model::pcie::{Detours, Link};
pub use model::switch::HopCost;
pub use of_host::of_host;
pub use plan::{Assumption, Card, Chain, Plan};
pub use polling::{carried, polling_cpus};
pub use published::validation;
pub use read::{Open, SCHEMA, read, read_with};
pub use rules::words;
pub use section::{QUESTION, answer, misses_target};
pub use sheet::read_sheet;
pub use stated::{Known, Stated, StatedCard, StatedChain};
pub use tables::TABLES;
