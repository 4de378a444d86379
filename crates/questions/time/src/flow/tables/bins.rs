//! How the costs of exits are spread: what a picture beside each row of table `exits` draws.

use super::{by_name, each_vcpu, keys, merged};
use base::{Cell, Table, TableSpec, table};
use facts::ledger::measure::Measures;

/// The costs of each row of `exits` in bins, two for each doubling. Bins without an exit are left out; exits whose next
/// entry was not seen have no cost.
pub(super) const EXIT_BINS: TableSpec = table! {
    flow.exit_bins version 2: "The exits of one row of flow.exits whose cost is between two limits.";
    key machine, key vm, key_u64("") vcpu, key level, key reason, key_u64("ns") from_ns, key_u64("ns") to_ns,
    count count;
};

pub(super) fn exit_bins(measures: &[Measures<'_>]) -> Table {
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
