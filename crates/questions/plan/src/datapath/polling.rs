//! How many polling threads does a plan take? For whoever places them beside vCPUs.
//!
//! In: a plan, as far as it is stated. Out: the polling CPUs of its best designs, the most of all chains and sizes; none where no best
//! design has a switch that polls.

use super::predict::{Predicted, predict};
use super::rules::{allowed, asked};
use super::{Stated, read};
use facts::chain_plan::ChainPlan;
use facts::fields::Error;
use std::any::Any;

impl ChainPlan for Stated {
    fn polling_cpus(&self) -> Option<u32> {
        polling_cpus(self)
    }
}

/// The plan that a recording carries in a part of this name and text.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn carried(file: &str, text: &str) -> Result<Box<dyn ChainPlan>, Error> {
    read(file, text).map(|stated| Box::new(stated) as Box<dyn ChainPlan>)
}

pub(super) fn stated_of(carried: &dyn ChainPlan) -> Option<&Stated> {
    (carried as &dyn Any).downcast_ref()
}

/// Polling CPUs of the best designs of a plan, as far as it is stated.
pub fn polling_cpus(stated: &Stated) -> Option<u32> {
    of_rates(&predict(&stated.plan().ok()?))
}

pub(super) fn of_rates(rates: &[Predicted<'_>]) -> Option<u32> {
    let best = |one: &Predicted<'_>| allowed(rates, one).first().and_then(|best| best.pmd_cores);
    asked(rates).filter_map(best).max().filter(|threads| *threads > 0)
}
