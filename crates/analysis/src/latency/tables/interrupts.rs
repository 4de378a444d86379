//! Interrupts from outside a guest: what was measured, and what others published.

use crate::Case;
use crate::facts::samples::SampleFile;
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};

/// Interrupts, measured and published.
pub const INTERRUPTS: TableSpec = TableSpec {
    section: "latency",
    name: "interrupts",
    version: 1,
    row: "How long interrupts took from their edge outside a guest to the guest's handler: one run of `bench irq`, or a published result. kind is measured, emulated or published. Edges were answered (count), merged with an older one, unanswered or lost; what was not published is missing.",
    columns: &[
        Column::key("machine"),
        Column::key("kind"),
        Column::key("origin"),
        Column::text("guest"),
        Column::ns("period_ns"),
        Column::count("edges"),
        Column::count("merged"),
        Column::count("unanswered"),
        Column::count("lost"),
        Column::count("extra"),
        Column::count("count"),
        Column::ns("min_ns"),
        Column::value("mean_ns", "ns", ColumnType::F64),
        Column::ns("max_ns"),
        Column::ns("error_ns"),
    ],
    shown: Some(Shown::of(
        "From an interrupt's edge outside a guest to its handler",
        &[
            ("kind", "kind"),
            ("origin", "from"),
            ("count", "answered"),
            ("merged", "merged"),
            ("min_ns", "min"),
            ("mean_ns", "mean"),
            ("max_ns", "max"),
            ("error_ns", "+-"),
        ],
        16,
    )),
};

/// What KVM4NFV published of a periodic interrupt from outside: J. Nakajima, "KVM Enhancements for OPNFV", 2015-11-12. The number of
/// samples is not stated.
pub(crate) const PUBLISHED: Published =
    Published { origin: "KVM4NFV 2015", min_ns: 3_980, mean_ns: 4_420, max_ns: 9_100 };

/// A result of others.
pub(crate) struct Published {
    pub origin: &'static str,
    pub min_ns: u64,
    pub mean_ns: u64,
    pub max_ns: u64,
}

/// What a number of this recording is called.
pub(crate) fn kind(case: &Case) -> &'static str {
    if case.input().recording.emulated.is_some() { "emulated" } else { "measured" }
}

pub(super) fn interrupts(case: &Case) -> Table {
    let mut table = Table::new(&INTERRUPTS);
    for file in case.results().list.iter().filter(|file| file.edges.is_some()) {
        measured(file, case, &mut table);
    }
    if !table.rows.is_empty() {
        table.push_named([
            ("kind", "published".into()),
            ("origin", PUBLISHED.origin.into()),
            ("min_ns", PUBLISHED.min_ns.into()),
            ("mean_ns", Cell::F64(PUBLISHED.mean_ns as f64)),
            ("max_ns", PUBLISHED.max_ns.into()),
        ]);
    }
    table
}

fn measured(file: &SampleFile, case: &Case, table: &mut Table) {
    let Some(edges) = file.edges else { return };
    for samples in &file.samples {
        let (min_ns, max_ns) = samples.extremes_ns();
        table.push(vec![
            file.machine.as_str().into(),
            kind(case).into(),
            file.path.as_str().into(),
            if edges.halts { "halts" } else { "spins" }.into(),
            edges.period_ns.into(),
            edges.count.into(),
            edges.merged.into(),
            edges.unanswered.into(),
            edges.lost.into(),
            edges.extra.into(),
            samples.count.into(),
            Cell::from(min_ns),
            samples.mean_ns.map_or(Cell::Missing, Cell::F64),
            Cell::from(max_ns),
            samples.error_ns.into(),
        ]);
    }
}
