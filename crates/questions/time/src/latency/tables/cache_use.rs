//! How caches and memory were used while something was measured.

use super::U64;
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};
use facts::Case;

/// Use of caches and memory, by groups of CPUs.
pub const CACHE_USE: TableSpec = TableSpec {
    section: "latency",
    name: "cache_use",
    version: 1,
    row: "How one group of CPUs used caches and memory, as pqos saw it: the mean of instructions per cycle, all misses, the most of the rest.",
    columns: &[
        Column::key("machine"),
        Column::key("cpus"),
        Column::value("readings", "", U64),
        Column::value("ipc", "", ColumnType::F64),
        Column::value("llc_misses", "", ColumnType::F64),
        Column::value("llc_bytes", "bytes", ColumnType::F64),
        Column::value("local_bytes_per_s", "bytes/s", ColumnType::F64),
        Column::value("remote_bytes_per_s", "bytes/s", ColumnType::F64),
        Column::key("file"),
    ],
    shown: Some(Shown::of(
        "How caches and memory were used (pqos)",
        &[
            ("machine", "machine"),
            ("cpus", "CPUs"),
            ("ipc", "IPC"),
            ("llc_misses", "LLC misses"),
            ("llc_bytes", "most of the LLC"),
            ("local_bytes_per_s", "most from local memory"),
            ("remote_bytes_per_s", "from remote memory"),
        ],
        16,
    )),
};

pub(super) fn cache_use(case: &Case) -> Table {
    let mut table = Table::new(&CACHE_USE);
    for file in &case.results().list {
        for one in &file.cache_use {
            let number = |number: Option<f64>| number.map_or(Cell::Missing, Cell::F64);
            table.push(vec![
                file.machine.as_str().into(),
                one.cpus.as_str().into(),
                one.rows.into(),
                number(one.ipc),
                number(one.llc_misses),
                number(one.llc_bytes),
                number(one.local_bytes_per_s),
                number(one.remote_bytes_per_s),
                file.path.as_str().into(),
            ]);
        }
    }
    table
}
