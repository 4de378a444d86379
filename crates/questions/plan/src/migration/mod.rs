//! Does a live migration end, how long does it take, and how long is the guest dark?
//!
//! In: what the user states of a guest and of its way; no trace. Out: one Section with an interval for each answer, what a model
//! without a working set says beside, and, where passes never end, what would end them.
//! ```text
//! Asked --model/: courses with dirty bits cleared at sync, on send, and naive--> Prediction --tables, rules, figures--> Section
//!                \--ways_out--> the least limit, bandwidth or throttle
//! ```
//! docs/read/migration.md has the formulae and where each constant comes from.

pub mod blocked;
mod checks;
mod figures;
mod goals;
mod history;
pub mod measured;
pub mod memory;
mod methods;
pub mod model;
mod predict;
mod published;
pub mod rules;
mod section;
mod tables;
mod to_file;

pub use goals::breaks;
pub use history::History;
pub use memory::{Looked, Survey};
pub use predict::{Asked, Order, Prediction};
pub use published::validation;
pub use section::{QUESTION, answer};
pub use tables::TABLES;
