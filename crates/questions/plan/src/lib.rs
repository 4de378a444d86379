//! Questions about what would happen: what a datapath carries, whether a migration ends.
//!
//! A module for each; they are functions of a [`facts::Case`], and none knows another crate of questions.

pub mod datapath;
pub mod migration;
