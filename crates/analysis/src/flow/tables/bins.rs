//! How the costs of exits are spread: what a picture beside each row of table `exits` draws.

use super::{U64, by_name, each_vcpu, keys, merged};
use crate::facts::ledger::measure::Measures;
use base::{Cell, Column, Table};

/// The costs of each row of `exits` in bins, two for each doubling. Bins without an exit are left out; exits whose next
/// entry was not seen have no cost.
pub fn exit_bins(measures: &[Measures<'_>]) -> Table {
    let mut columns = keys();
    columns.extend([Column::key("level"), Column::key("reason")]);
    columns.extend(["from_ns", "to_ns"].map(|name| Column { unit: "ns", ..Column::key_of(name, U64) }));
    columns.push(Column::value("count", "count", U64));
    let mut table = Table::new("exit_bins", columns);
    for (measure, vcpu) in each_vcpu(measures) {
        for ((level, reason), sums) in by_name(measure, vcpu) {
            for bin in merged(sums.iter().map(|sums| &sums.cost_ns)).bins() {
                let mut row: Vec<Cell> = vec![vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into()];
                row.extend([level.to_string().into(), reason.as_str().into()]);
                row.extend([bin.from, bin.to, bin.count].map(Cell::from));
                table.push(row);
            }
        }
    }
    table
}
