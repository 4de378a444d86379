//! How long the threads that serve VMs waited for a CPU when they were woken.

use super::super::measure::Measured;
use super::parts;
use base::{Cell, Shown, Table, TableSpec, shown, table};

/// vhost workers, iothreads, emulator threads: what vCPUs are in `flow.wakeups`.
pub(super) const HELPER_WAKEUPS: TableSpec = table! {
    latency.helper_wakeups version 1:
    "The wake-ups of one thread that serves VMs and runs no vCPU: how long from runnable to running.";
    key machine, key kind, key thread, key_i64("") tid, count count, ns to_run_p50_ns, ns to_run_p99_ns,
    ns to_run_max_ns;
    Shown {
        largest_first: Some("to_run_max_ns"),
        ..shown![
            "Wake-ups of threads that serve VMs: time from runnable to running", 4;
            kind, thread, tid, count: "wake-ups", to_run_p50_ns: "p50", to_run_p99_ns: "p99", to_run_max_ns: "max",
        ]
    }
};

pub(super) fn helper_wakeups(measured: &[Measured<'_>]) -> Table {
    let mut table = Table::new(&HELPER_WAKEUPS);
    for part in parts(measured) {
        for helper in &part.helpers {
            let lengths = &helper.wake_to_run;
            let mut row: Vec<Cell> = vec![part.machine.as_str().into(), helper.kind.name().into()];
            row.extend([helper.comm.as_str().into(), Cell::I64(helper.tid.into()), lengths.count().into()]);
            row.extend([0.5, 0.99, 1.0].map(|share| lengths.quantile(share).map_or(Cell::Missing, Cell::from)));
            table.push(row);
        }
    }
    table
}
