//! Steal as the guest saw it, beside what the host did.

use base::{Cell, Table, TableSpec, shown, table};
use facts::Case;
use facts::steal;

/// One row for each CPU of a guest of which both is known.
pub(super) const STEAL: TableSpec = table! {
    latency.steal version 1:
    "One CPU of a guest: the steal that its /proc/stat counted between two snapshots, and what the host's trace shows of \
          its vCPU's waiting for a CPU; the difference after both were brought to the time between the snapshots.";
    key machine, key vm, key_u64("") vcpu, key_u64("") cpu, f64("ns") guest_ns, ns guest_span_ns, ns host_ns,
    ns host_span_ns, f64("ns") difference_ns;
    shown![
        "Steal: what the guest saw, and what the host took", 8;
        machine: "guest", vcpu, guest_ns: "guest saw", guest_span_ns: "of", host_ns: "host took", host_span_ns: "of",
        difference_ns: "difference",
    ]
};

pub(super) fn steal(case: &Case) -> Table {
    let mut table = Table::new(&STEAL);
    for steal in steal::of(case.input(), case.ledger()) {
        let mut row: Vec<Cell> = vec![steal.machine.into(), steal.vcpu.vm.as_str().into()];
        row.extend([u64::from(steal.vcpu.vcpu).into(), u64::from(steal.cpu).into(), steal.guest_ns.into()]);
        row.extend([steal.guest_span_ns, steal.host_ns, steal.host_span_ns].map(Cell::from));
        row.push(steal.difference_ns().into());
        table.push(row);
    }
    table
}
