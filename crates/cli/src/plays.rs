//! Where the live side and an answer meet: `lab` records, `analysis` says what it was, and neither knows the other.

pub mod live;
