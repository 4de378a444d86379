//! What programs measured.

use super::U64;
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};
use facts::Case;
use facts::samples::{SampleFile, Samples};
use facts::statistics::proportion::upper_bound;

/// Samples of programs that measure latencies.
pub const SAMPLES: TableSpec = TableSpec {
    section: "latency",
    name: "samples",
    version: 1,
    row: "The samples of one thread or CPU of one result, and how many exceed one limit of the budget: at least and at most, because programs round.",
    columns: &[
        Column::key("machine"),
        Column::key("source"),
        Column::key("thread"),
        Column::key_of("cpu", U64),
        Column { key: true, ..Column::ns("limit_ns") },
        Column::count("count"),
        Column::ns("min_ns"),
        Column::value("mean_ns", "ns", ColumnType::F64),
        Column::ns("p99_ns"),
        Column::ns("p999_ns"),
        Column::ns("max_ns"),
        Column::count("overflow"),
        Column::count("over_low"),
        Column::count("over_high"),
        Column::value("bound_p95", "share", ColumnType::F64),
        Column::key("file"),
    ],
    shown: Some(Shown::of(
        "What programs measured; over: samples over the limit, at least and at most",
        &[
            ("machine", "machine"),
            ("source", "program"),
            ("thread", "thread"),
            ("cpu", "CPU"),
            ("count", "samples"),
            ("min_ns", "min"),
            ("mean_ns", "mean"),
            ("p99_ns", "p99"),
            ("p999_ns", "p99.9"),
            ("max_ns", "max"),
            ("overflow", "overflow"),
            ("limit_ns", "limit"),
            ("over_low", "over"),
            ("over_high", "at most"),
        ],
        16,
    )),
};

pub(super) fn samples(case: &Case) -> Table {
    let mut table = Table::new(&SAMPLES);
    for (file, samples) in case.results().each() {
        let limits = case.budget().map(|budget| budget.limits_ns(samples.measures())).unwrap_or_default();
        if limits.is_empty() {
            table.push(row(file, samples, None));
        }
        limits.iter().for_each(|limit_ns| table.push(row(file, samples, Some(*limit_ns))));
    }
    table
}

/// How sure the bound of the table is.
const SURE: f64 = 0.95;

fn row(file: &SampleFile, samples: &Samples, limit_ns: Option<u64>) -> Vec<Cell> {
    let over = limit_ns.map(|limit_ns| samples.over(limit_ns));
    let (min_ns, max_ns) = samples.extremes_ns();
    vec![
        file.machine.as_str().into(),
        samples.source.name().into(),
        samples.thread.as_str().into(),
        Cell::from(samples.cpu.map(u64::from)),
        limit_ns.into(),
        samples.count.into(),
        Cell::from(min_ns),
        samples.mean_ns.map_or(Cell::Missing, Cell::F64),
        Cell::from(samples.quantile_ns(0.99)),
        Cell::from(samples.quantile_ns(0.999)),
        Cell::from(max_ns),
        samples.overflow.into(),
        over.map(|(low, _)| low).into(),
        over.map(|(_, high)| high).into(),
        over.and_then(|(_, high)| upper_bound(high, samples.count, SURE)).into(),
        file.path.as_str().into(),
    ]
}
