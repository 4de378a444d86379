//! The losses of each vCPU by both definitions.

use super::super::measure::{ByDefinition, Measured};
use super::keys;
use base::{Cell, Table, TableSpec, table};

/// What was lost, by what counts as lost.
// The sentence above has the one, `culprits` the other; the rest is for who compares tools.
pub(super) const DEFINITIONS: TableSpec = table! {
    latency.definitions version 1:
    "What one vCPU lost by one definition: `involuntary` is what the host took without being asked (count: stretches), `exit-to-entry` all time between exits and entries (count: exits).";
    key machine, key vm, key_u64("") vcpu, key definition, count count, ns total_ns, ns max_ns, ns window_ns,
    ns max_loss_ns, ns at_ns;
};

pub(super) fn definitions(measured: &[Measured<'_>]) -> Table {
    let mut table = Table::new(&DEFINITIONS);
    for one in measured {
        for ByDefinition { definition, count, total_ns, longest_ns, worst } in &one.definitions {
            let mut row = keys(one);
            row.push(definition.name().into());
            row.extend([*count, *total_ns, *longest_ns].map(Cell::from));
            let worst = worst.as_ref().map(|worst| [worst.window_ns, worst.loss_ns, worst.at_ns]);
            row.extend(worst.map_or([const { Cell::Missing }; 3], |values| values.map(Cell::from)));
            table.push(row);
        }
    }
    table
}
