//! Questions about time: where that of vCPUs went, what took it, and what programs counted.
//!
//! A module for each; they are functions of a [`facts::Case`], and none knows another crate of questions.

pub mod counts;
pub mod flow;
pub mod latency;
