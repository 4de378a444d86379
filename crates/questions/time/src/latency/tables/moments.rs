//! The worst moments, with the causes of each.

use super::super::measure::{Measured, worst_first};
use super::{cause, keys};
use base::{Table, TableSpec, shown, table};

/// The worst windows of one length.
pub(super) const MOMENTS: TableSpec = table! {
    latency.moments version 1: "What one cause took from one vCPU in one of its worst windows, none of which overlap.";
    key machine, key vm, key_u64("") vcpu, key_u64("ns") at_ns, ns length_ns, ns loss_ns, key state, key by,
    key_i64("") by_tid;
    shown![
        "The worst moments, and who took the time", 4;
        vm, vcpu, at_ns: "at", length_ns: "window", loss_ns: "lost", state, by, by_tid: "tid",
    ]
};

pub(super) fn moments(measured: &[Measured<'_>]) -> Table {
    let mut table = Table::new(&MOMENTS);
    for (one, moment) in worst_first(measured) {
        for (named, loss_ns) in &moment.causes {
            let mut row = keys(one);
            row.extend([moment.at_ns, moment.length_ns, *loss_ns].map(Into::into));
            row.extend(cause(named));
            table.push(row);
        }
    }
    table
}
