//! How the costs of exits are spread: what a picture beside each row of table `exits` draws.

use super::{U64, by_name, each_vcpu, keys, merged};
use base::table::TableSpec;
use base::{Cell, Column, Table};
use facts::ledger::measure::Measures;

/// The costs of each row of `exits` in bins, two for each doubling. Bins without an exit are left out; exits whose next
/// entry was not seen have no cost.
pub const EXIT_BINS: TableSpec = TableSpec {
    section: "flow",
    name: "exit_bins",
    version: 2,
    row: "The exits of one row of flow.exits whose cost lies between two limits.",
    columns: &[
        Column::key("machine"),
        Column::key("vm"),
        Column::key_of("vcpu", U64),
        Column::key("level"),
        Column::key("reason"),
        Column { key: true, ..Column::ns("from_ns") },
        Column { key: true, ..Column::ns("to_ns") },
        Column::count("count"),
    ],
    shown: None,
};

pub fn exit_bins(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&EXIT_BINS);
    for (measure, vcpu) in each_vcpu(measures) {
        for ((level, reason), sums) in by_name(measure, vcpu) {
            for bin in merged(sums.iter().map(|sums| &sums.cost_ns)).bins() {
                let mut row = keys(measure, vcpu);
                row.extend([level.to_string().into(), reason.as_str().into()]);
                row.extend([bin.from, bin.to, bin.count].map(Cell::from));
                table.push(row);
            }
        }
    }
    table
}
