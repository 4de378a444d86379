//! Tables about the traces themselves: what they hold, and what is missing.

use base::{Shown, Table, TableSpec, columns, headings};
use facts::ledger::measure::Measures;

/// What was lost or damaged.
pub(super) const LOSSES: TableSpec = TableSpec {
    section: "flow",
    name: "losses",
    version: 2,
    row: "Events of one part that were lost or damaged in one way on one CPU.",
    columns: columns![key machine, key part, key_u64("") cpu, key kind, count count, u64("bytes") bytes],
    shown: Some(Shown::of("Lost and damaged events", headings![part, cpu: "CPU", kind: "what", count, bytes], 12)),
};

/// How many events of each kind there are.
pub(super) const EVENTS: TableSpec = TableSpec {
    section: "flow",
    name: "events",
    version: 2,
    row: "How many events of one name one part holds.",
    columns: columns![key machine, key part, key event, count count],
    shown: Some(Shown::of("Events in the trace", headings![part, event, count: "events"], 30)),
};

pub(super) fn losses(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&LOSSES);
    for part in measures.iter().map(|measure| measure.part) {
        for loss in &part.losses {
            table.push(vec![
                part.machine.as_str().into(),
                part.path.as_str().into(),
                loss.cpu.map(u64::from).into(),
                loss.kind.as_str().into(),
                loss.count.into(),
                loss.bytes.into(),
            ]);
        }
    }
    table
}

/// For people only where there is nothing better to show.
pub(super) fn events(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&EVENTS);
    for part in measures.iter().map(|measure| measure.part) {
        for (name, count) in &part.tally {
            let names = [part.machine.as_str(), part.path.as_str(), name.as_str()];
            table.push(names.into_iter().map(Into::into).chain([(*count).into()]).collect());
        }
    }
    if measures.iter().any(|measure| !measure.vcpus.is_empty()) {
        table.shown = None;
    }
    table
}
