//! What single events mean: their roles, exit codes, details, and the host's interrupts that they name.

pub mod details;
pub mod exit_reason;
pub mod host_interrupts;
mod names;
pub mod reasons;
pub mod roles;
pub mod vendor;

pub use reasons::{Isa, Reason};
pub use roles::Role;
