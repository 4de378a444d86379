//! Tables about the traces themselves: what they hold, and what is missing.

use base::{Table, TableSpec, shown, table};
use facts::ledger::measure::Measures;

/// What was lost or damaged.
pub(super) const LOSSES: TableSpec = table! {
    flow.losses version 2: "Events of one part that were lost or damaged in one way on one CPU.";
    key machine, key part, key_u64("") cpu, key kind, count count, u64("bytes") bytes;
    shown!["Lost and damaged events", 12; part, cpu: "CPU", kind: "what", count, bytes]
};

/// How many events of each kind there are.
pub(super) const EVENTS: TableSpec = table! {
    flow.events version 2: "How many events of one name one part holds.";
    key machine, key part, key event, count count;
    shown!["Events in the trace", 30; part, event, count: "events"]
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
