//! Where did the time of every vCPU go, by level, and why?

pub mod build;
pub mod identity;
pub mod model;
