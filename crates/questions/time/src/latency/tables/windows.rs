//! What was lost in the worst window of each length.

use super::super::measure::Measured;
use super::keys;
use base::{Table, TableSpec, table};

/// The curve of losses against windows.
// The figure shows the same numbers better.
pub(super) const WINDOWS: TableSpec = table! {
    latency.windows version 1:
    "What one vCPU lost in the worst window of one length: exact over all windows, the earliest of several; high if all that is unknown was lost.";
    key machine, key vm, key_u64("") vcpu, key_u64("ns") window_ns, ns max_loss_ns, ns high_ns, ns at_ns;
};

pub(super) fn windows(measured: &[Measured<'_>]) -> Table {
    let mut table = Table::new(&WINDOWS);
    for one in measured {
        for window in &one.windows {
            let mut row = keys(one);
            row.extend([window.window_ns, window.loss_ns, window.high_ns, window.at_ns].map(Into::into));
            table.push(row);
        }
    }
    table
}
