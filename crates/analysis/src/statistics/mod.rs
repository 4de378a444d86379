//! How sure a difference between launches is: their spread, and tests on ranks.

pub mod launches;
pub mod ranks;
pub mod spread;
