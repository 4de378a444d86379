//! Questions about what changed: between two recordings, in a series, by a trial, between hosts.
//!
//! A module for each; they are functions of a [`facts::Case`], and none knows another crate of questions.

pub mod ablation;
pub mod compare;
pub mod contention;
pub mod fleet;
