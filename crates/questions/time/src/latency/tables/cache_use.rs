//! How caches and memory were used while something was measured.

use base::{Cell, Table, TableSpec, shown, table};
use facts::Case;

/// Use of caches and memory, by groups of CPUs.
pub(super) const CACHE_USE: TableSpec = table! {
    latency.cache_use version 1:
    "How one group of CPUs used caches and memory, as pqos saw it: the mean of instructions per cycle, all misses, the most of the rest.";
    key machine, key cpus, u64("") readings, f64("") ipc, f64("") llc_misses, f64("bytes") llc_bytes,
    f64("bytes/s") local_bytes_per_s, f64("bytes/s") remote_bytes_per_s, key file;
    shown![
        "How caches and memory were used (pqos)", 16;
        machine, cpus: "CPUs", ipc: "IPC", llc_misses: "LLC misses", llc_bytes: "most of the LLC",
        local_bytes_per_s: "most from local memory", remote_bytes_per_s: "from remote memory",
    ]
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
