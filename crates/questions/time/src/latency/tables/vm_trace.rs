//! What another program would print.

use super::U64;
use base::table::{Shown, TableSpec};
use base::{Cell, Column, Table};
use facts::Case;

/// KVM4NFV's vm-trace.
pub const VM_TRACE: TableSpec = TableSpec {
    section: "latency",
    name: "vm_trace",
    version: 1,
    row: "What KVM4NFV's vm-trace would print of one CPU, with its arithmetic, for `report --compat vm-trace`: not exact; `windows` and `definitions` are.",
    columns: &[
        Column::key("machine"),
        Column::key_of("cpu", U64),
        Column::count("events"),
        Column::count("count"),
        Column::ns("mean_ns"),
        Column::ns("max_ns"),
        Column::ns("within_1ms_ns"),
    ],
    shown: Some(Shown::of(
        "What vm-trace would print: exit to entry of one CPU, halts included, sums of about 1 ms",
        &[
            ("machine", "machine"),
            ("cpu", "CPU"),
            ("events", "VM events"),
            ("mean_ns", "average"),
            ("max_ns", "maximum"),
            ("within_1ms_ns", "within 1 ms"),
        ],
        8,
    )),
};

pub(super) fn vm_trace(case: &Case) -> Table {
    let mut table = Table::new(&VM_TRACE);
    if !case.given().latency.vm_trace {
        return table;
    }
    let parts = case.ledger().parts.iter().zip(case.vm_trace()).filter(|(part, _)| part.twin_of.is_none());
    for (part, cpus) in parts {
        for (cpu, seen) in cpus {
            table.push(vec![
                part.machine.as_str().into(),
                u64::from(*cpu).into(),
                seen.events.into(),
                seen.pairs.into(),
                Cell::from(seen.mean_ns()),
                seen.max_ns.into(),
                seen.within_1ms_ns.into(),
            ]);
        }
    }
    table
}
