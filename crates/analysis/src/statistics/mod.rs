//! How sure a difference between launches is: their spread, and tests on ranks.

pub(crate) mod launches;
pub(crate) mod ranks;
pub(crate) mod spread;
pub(crate) mod student;
