//! The worst moments, with the causes of each.

use super::super::measure::Measured;
use super::{I64, U64, cause, keys};
use base::table::{Shown, TableSpec};
use base::{Column, Table};
use std::cmp::Reverse;

/// The worst windows of one length.
pub const MOMENTS: TableSpec = TableSpec {
    section: "latency",
    name: "moments",
    version: 1,
    row: "What one cause took from one vCPU in one of its worst windows, none of which overlap.",
    columns: &[
        Column::key("machine"),
        Column::key("vm"),
        Column::key_of("vcpu", U64),
        Column { key: true, ..Column::ns("at_ns") },
        Column::ns("length_ns"),
        Column::ns("loss_ns"),
        Column::key("state"),
        Column::key("by"),
        Column::key_of("by_tid", I64),
    ],
    shown: Some(Shown::of(
        "The worst moments, and who took the time",
        &[
            ("vm", "vm"),
            ("vcpu", "vcpu"),
            ("at_ns", "at"),
            ("length_ns", "window"),
            ("loss_ns", "lost"),
            ("state", "state"),
            ("by", "by"),
            ("by_tid", "tid"),
        ],
        4,
    )),
};

pub(super) fn moments(measured: &[Measured<'_>]) -> Table {
    let mut table = Table::new(&MOMENTS);
    let mut all: Vec<_> = measured.iter().flat_map(|one| one.moments.iter().map(move |moment| (one, moment))).collect();
    all.sort_by_key(|(_, moment)| Reverse(moment.loss_ns));
    for (one, moment) in all {
        for (named, loss_ns) in &moment.causes {
            let mut row = keys(one);
            row.extend([moment.at_ns, moment.length_ns, *loss_ns].map(Into::into));
            row.extend(cause(named));
            table.push(row);
        }
    }
    table
}
