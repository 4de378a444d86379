//! What single events mean: their roles, exit codes, details, and the interrupts that they name.

pub mod details;
pub mod interrupts;
pub mod reasons;
pub mod roles;
pub mod vendor;

pub use reasons::{Isa, Reason};
pub use roles::Role;
