//! Interrupts from outside a guest: what was measured, and what others published.

use base::{Cell, Table, TableSpec, shown, table};
use facts::Case;
use facts::published::{self, InterruptLatency};
use facts::samples::SampleFile;

/// Interrupts, measured and published.
pub(crate) const INTERRUPTS: TableSpec = table! {
    latency.interrupts version 1:
    "How long interrupts took from their edge outside a guest to the guest's handler: one run of `bench irq`, or a published result. kind is measured, emulated or published. Edges were answered (count), merged with an older one, unanswered or lost; what was not published is missing.";
    key machine, key kind, key origin, text guest, ns period_ns, count edges, count merged, count unanswered,
    count lost, count extra, count count, ns min_ns, f64("ns") mean_ns, ns max_ns, ns error_ns;
    shown![
        "From an interrupt's edge outside a guest to its handler", 16;
        kind, origin: "from", count: "answered", merged, min_ns: "min", mean_ns: "mean", max_ns: "max",
        error_ns: "+-",
    ]
};

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
        add_published(&mut table);
    }
    table
}

/// Adds what others measured of the same.
fn add_published(table: &mut Table) {
    let InterruptLatency { name, min_ns, mean_ns, max_ns, .. } = published::interrupt();
    table.push_named([
        ("kind", "published".into()),
        ("origin", name.as_str().into()),
        ("min_ns", (*min_ns).into()),
        ("mean_ns", Cell::F64(*mean_ns as f64)),
        ("max_ns", (*max_ns).into()),
    ]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_has_three_numbers_and_no_machine() {
        let mut table = Table::new(&INTERRUPTS);
        add_published(&mut table);
        let row = &table.rows[0];
        let at = |name: &str| row[INTERRUPTS.columns.iter().position(|column| column.name == name).unwrap()].clone();
        assert_eq!(["kind", "origin"].map(at), ["published".into(), "KVM4NFV 2015".into()]);
        assert_eq!(["min_ns", "mean_ns", "max_ns"].map(at), [3_980_u64.into(), Cell::F64(4_420.0), 9_100_u64.into()]);
        assert_eq!(row.iter().filter(|cell| **cell == Cell::Missing).count(), row.len() - 5);
    }
}
