//! How many polling threads does a plan take? For whoever places them beside vCPUs.
//!
//! In: a plan, as far as it is stated. Out: the polling CPUs of its best designs, the most of all chains and sizes; none where no best
//! design has a switch that polls.

use super::Stated;
use super::predict::{Predicted, predict};
use super::rules::{allowed, asked};

/// Polling CPUs of the best designs of a plan, as far as it is stated.
pub fn polling_cpus(stated: &Stated) -> Option<u32> {
    of_rates(&predict(&stated.plan().ok()?))
}

/// The same of what is predicted.
pub(super) fn of_rates(rates: &[Predicted<'_>]) -> Option<u32> {
    let best = |one: &Predicted<'_>| allowed(rates, one).first().and_then(|best| best.pmd_cores);
    asked(rates).filter_map(best).max().filter(|threads| *threads > 0)
}
