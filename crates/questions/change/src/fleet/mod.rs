//! Over many recordings of many hosts: which kernel costs more, which hosts stand out, what would help most hosts, what drifts?
//!
//! ```text
//! Case, Sections --stored--> tables of one recording: what the data set has of it     (dataset)
//! tables of one recording --Fleet::add--> Fleet --merge--> Fleet of all                (model; in any order, on any machine)
//! Fleet --answer--> Section: costs, ranked findings, kernels, outliers, breaches, drift
//! ```
//! In: what a data set of recordings has in its own tables. Out: a Section. Whoever merges, one process or the workers of a cluster, has
//! the same [`Fleet`] in the end: sums and distributions are whole numbers, and everything else is kept by host and recording.
//! [docs/use/compare.md](../../../../docs/use/compare.md) has the layout of the data set and the rules of each answer.

mod breaches;
mod classes;
mod costs;
mod dataset;
mod drift;
mod figure;
mod kernels;
mod model;
mod outliers;
mod ranked;
mod rules;
mod section;
mod stored;
mod tables;
mod wire;

pub use dataset::{FAILURES, NUMBERS, RECORDINGS, STORED};
pub use model::{Fleet, Id, Unread};
pub use rules::words;
pub use section::{QUESTION, answer};
pub use stored::{Stored, host, stored};
pub use tables::TABLES;

/// Id of the Section.
pub const ID: &str = "fleet";
