//! Who took the time of samples.

use crate::Case;
use crate::facts::attribution::Part;
use base::table::{Shown, TableSpec};
use base::{Cell, Column, Table};

/// Causes of samples.
pub const ATTRIBUTED: TableSpec = TableSpec {
    section: "latency",
    name: "attributed",
    version: 1,
    row: "What one cause took from the samples of one result: from how many, how long in all, and the most from one sample. The totals of a file are the lengths of its samples over the limit; cause `unexplained` is what the trace shows no cause of.",
    columns: &[
        Column::key("machine"),
        Column::key("source"),
        Column::key("cause"),
        Column::count("count"),
        Column::ns("total_ns"),
        Column::ns("max_ns"),
        Column::ns("max_without_ns"),
        Column::ns("clock_error_ns"),
        Column::key("file"),
    ],
    shown: Some(Shown::of(
        "Who took the time of samples; without it: the longest sample if this cause had taken nothing",
        &[
            ("machine", "machine"),
            ("source", "program"),
            ("cause", "cause"),
            ("count", "samples"),
            ("total_ns", "total"),
            ("max_ns", "most"),
            ("max_without_ns", "max without it"),
        ],
        12,
    )),
};

/// The cause of what nothing explains.
const UNEXPLAINED: &str = "unexplained";

pub(super) fn attributed(case: &Case) -> Table {
    let mut table = Table::new(&ATTRIBUTED);
    for one in case.attributed() {
        let row = |cause: &str, taken: Part, without_ns: u64| {
            vec![
                one.machine.as_str().into(),
                one.source.name().into(),
                cause.into(),
                taken.count.into(),
                taken.total_ns.into(),
                taken.max_ns.into(),
                without_ns.into(),
                Cell::from(one.by.error_ns()),
                one.path.as_str().into(),
            ]
        };
        for (name, taken) in one.sums.most_first() {
            table.push(row(name, taken, one.sums.max_without_ns(name)));
        }
        table.push(row(UNEXPLAINED, one.sums.unexplained, one.sums.max_ns()));
    }
    table
}
