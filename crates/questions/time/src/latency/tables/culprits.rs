//! Who took how much from whom.

use super::super::measure::Measured;
use super::{I64, U64, cause, keys};
use base::table::{Shown, TableSpec};
use base::{Column, Table};

/// Everything that was lost, by cause.
pub const CULPRITS: TableSpec = TableSpec {
    section: "latency",
    name: "culprits",
    version: 1,
    row: "What one cause took from one vCPU: how often it began, how long in all, and its longest piece. The totals of a vCPU are all that it lost.",
    columns: &[
        Column::key("machine"),
        Column::key("vm"),
        Column::key_of("vcpu", U64),
        Column::key("state"),
        Column::key("by"),
        Column::key_of("by_tid", I64),
        Column::count("count"),
        Column::ns("total_ns"),
        Column::ns("max_ns"),
    ],
    shown: Some(Shown {
        largest_first: Some("total_ns"),
        ..Shown::of(
            "Who took time from vCPUs",
            &[
                ("vm", "vm"),
                ("vcpu", "vcpu"),
                ("state", "state"),
                ("by", "by"),
                ("by_tid", "tid"),
                ("count", "times"),
                ("total_ns", "total"),
                ("max_ns", "longest"),
            ],
            4,
        )
    }),
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
