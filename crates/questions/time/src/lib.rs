//! Questions about time: where that of vCPUs went, and what took it.
//!
//! A module for each; they are functions of a [`facts::Case`], and none knows another crate of questions.

pub mod flow;
pub mod latency;
