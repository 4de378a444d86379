//! What exits cost by CPU model and kernel, out of merged distributions.

use super::model::{Costs, Exits, Fleet};

/// The exits of one class, level and reason.
pub(super) struct Cost<'f> {
    pub exits: &'f Exits,
    pub costs: &'f Costs,
    /// At 50, 90 and 99 %.
    pub(crate) quantiles_ns: Option<[u64; 3]>,
}

/// All of them, in the order of classes, levels and reasons.
pub(super) fn costs(fleet: &Fleet) -> Vec<Cost<'_>> {
    let of = |(exits, costs)| {
        let costs: &Costs = costs;
        Cost { exits, costs, quantiles_ns: costs.cost_ns.quantiles([0.5, 0.9, 0.99]) }
    };
    fleet.costs.iter().map(of).collect()
}
