//! The plan of service chains that a recording may carry: what others than its own question need to know of it.

use std::any::Any;

pub trait ChainPlan: Any + Send + Sync {
    /// Polling CPUs of its best designs; `None` where no best design has a switch that polls.
    fn polling_cpus(&self) -> Option<u32>;
}

/// Reads the text of a part of this name.
///
/// # Errors
/// The first thing that is wrong with it.
pub(crate) type ReadPlan = fn(&str, &str) -> Result<Box<dyn ChainPlan>, crate::fields::Error>;

/// For recordings of tests, which carry none.
#[cfg(test)]
pub(crate) const NO_PLAN: ReadPlan = |file, _| panic!("{file} is a plan");
