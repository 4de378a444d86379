//! Who took how much from whom.

use super::super::measure::Measured;
use super::{cause, keys};
use base::{Shown, Table, TableSpec, shown, table};

/// Everything that was lost, by cause.
pub(super) const CULPRITS: TableSpec = table! {
    latency.culprits version 1:
    "What one cause took from one vCPU: how often it began, how long in all, and its longest piece. The totals of a vCPU are all that it lost.";
    key machine, key vm, key_u64("") vcpu, key state, key by, key_i64("") by_tid, count count, ns total_ns, ns max_ns;
    Shown {
        largest_first: Some("total_ns"),
        grouped_by: Some("machine"),
        ..shown![
            "Who took time from vCPUs", 4;
            vm, vcpu, state, by, by_tid: "tid", count: "began", total_ns: "total", max_ns: "longest",
        ]
    }
};

pub(super) fn culprits(measured: &[Measured<'_>]) -> Table {
    let mut table = Table::new(&CULPRITS);
    for one in measured {
        for (named, sums) in &one.culprits {
            let mut row = keys(one);
            row.extend(cause(named));
            row.extend([sums.count, sums.total_ns, sums.max_ns].map(Into::into));
            table.push(row);
        }
    }
    table
}
