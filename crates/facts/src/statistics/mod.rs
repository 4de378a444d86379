//! How sure a number is: the spread of launches and tests on them and on their ranks, and bounds on shares that were rarely seen.

mod beta;
pub mod change_points;
pub mod holm;
pub mod launches;
pub(crate) mod permutation;
pub mod proportion;
pub mod ranks;
pub mod spread;
pub mod student;
