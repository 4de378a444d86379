//! The losses of each vCPU by both definitions.

use super::super::measure::{ByDefinition, Measured};
use super::{U64, keys};
use base::table::TableSpec;
use base::{Cell, Column, Table};

/// What was lost, by what counts as lost.
pub const DEFINITIONS: TableSpec = TableSpec {
    section: "latency",
    name: "definitions",
    version: 1,
    row: "What one vCPU lost by one definition: `involuntary` is what the host took without being asked (count: stretches), `exit-to-entry` all time between exits and entries (count: exits).",
    columns: &[
        Column::key("machine"),
        Column::key("vm"),
        Column::key_of("vcpu", U64),
        Column::key("definition"),
        Column::count("count"),
        Column::ns("total_ns"),
        Column::ns("max_ns"),
        Column::ns("window_ns"),
        Column::ns("max_loss_ns"),
        Column::ns("at_ns"),
    ],
    // The sentence above has the one, `culprits` the other; the rest is for who compares tools.
    shown: None,
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
