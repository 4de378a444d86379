//! Questions about how machines are set up: placement, real time, signs.
//!
//! A module for each; they are functions of a [`facts::Case`], and none knows another crate of questions.

mod page;
pub mod placement;
pub mod placements;
pub mod realtime;
pub mod signs;
