//! What went wrong with guests.

use base::{Cell, Table, TableSpec, shown, table};
use facts::ledger::measure::Measures;

/// Faults of each vCPU.
pub(super) const FAULTS: TableSpec = table! {
    flow.faults version 1: "What went wrong with the guest of one vCPU in one way: how often, and where first.";
    key machine, key vm, key_u64("") vcpu, key_i64("") tid, key fault, count count, ns first_ns, text reason, text rip, text address,
    text instruction;
    shown!["What went wrong with guests", 16; vm, vcpu: "vCPU", fault: "what", count, reason, rip, address, instruction]
};

/// A row for each kind of fault of each vCPU.
pub(super) fn faults(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&FAULTS);
    let hex = |number: Option<u64>| number.map_or(Cell::Missing, |number| Cell::Text(format!("{number:#x}")));
    for measure in measures {
        for (tid, fault, seen) in &measure.part.faults {
            let Some(vcpu) = measure.vcpus.iter().find(|vcpu| vcpu.tid == *tid) else { continue };
            let mut row = super::keys(measure, vcpu);
            row.extend([Cell::I64((*tid).into()), fault.name().into(), seen.count.into()]);
            row.push(seen.first_ns.saturating_sub(measure.part.span.from_ns).into());
            row.push(seen.reason.map_or(Cell::Missing, |reason| reason.name().into()));
            row.extend([hex(seen.rip), hex(seen.address)]);
            row.push(if seen.bytes.is_empty() { Cell::Missing } else { seen.bytes.as_str().into() });
            table.push(row);
        }
    }
    table
}
