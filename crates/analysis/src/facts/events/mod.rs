//! What single events mean: their roles, exit codes, details, and the host's interrupts that they name.

pub(crate) mod details;
pub(crate) mod exit_reason;
pub mod host_interrupts;
pub mod reasons;
pub mod roles;
pub(crate) mod vendor;

pub use reasons::{Isa, Reason};
pub use roles::Role;
