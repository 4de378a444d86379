//! How sure a number is: the spread of launches and tests on them and on their ranks, and bounds on shares that were rarely seen.

mod beta;
pub(crate) mod change_points;
pub(crate) mod holm;
pub(crate) mod launches;
pub(crate) mod permutation;
pub(crate) mod proportion;
pub(crate) mod ranks;
pub(crate) mod spread;
pub(crate) mod student;
