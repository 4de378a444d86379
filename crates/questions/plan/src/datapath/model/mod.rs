//! From what a host has to packets a second: each resource that a packet passes has a capacity, and the least binds.

pub(crate) mod breakeven;
pub(crate) mod demands;
pub(crate) mod design;
pub(crate) mod frames;
pub(crate) mod hops;
pub(crate) mod nic;
pub(crate) mod pcie;
pub(crate) mod stages;
pub(crate) mod switch;
mod uses;
pub(crate) mod wire;
