//! Where the live side and an answer meet: `lab` records, `analysis` says what it was, and neither knows the other.

pub mod live;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod netns;
pub mod trial;
