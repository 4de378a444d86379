//! The tables of the netns loop's answer.

use crate::compare;
use base::{Cell, Table, TableSpec, shown, table};
use facts::shares::demand;
use facts::starvation::FLOOR;
use host::sched::Load;

/// All tables, in reading order.
pub const TABLES: &[&TableSpec] = &[&THREADS, &CHANGE];

/// Who ran and who waited.
pub const THREADS: TableSpec = table! {
    contention.threads version 1:
    "One thread that wants a CPU: what share of the time between two samples it ran and waited.";
    key thread, key_u64("") tid, text cpus, u64("") cpu, share run_share, share wait_share;
    shown![
        "Threads that want a CPU before the move", 30;
        thread, tid, cpus, cpu, run_share: "run share", wait_share: "wait share",
    ]
};

/// What the move changed.
pub const CHANGE: TableSpec = TableSpec { section: super::ID, ..compare::CHANGE };

/// Table [`THREADS`]: by CPU, the busiest first.
pub fn threads(loads: &[Load]) -> Table {
    let mut table = Table::new(&THREADS);
    let wanted = |load: &Load| demand(load.run, load.wait);
    let mut busy: Vec<&Load> = loads.iter().filter(|load| wanted(load) > FLOOR).collect();
    busy.sort_by(|a, b| a.cpu.cmp(&b.cpu).then(wanted(b).total_cmp(&wanted(a))));
    for load in busy {
        let cells: [Cell; 6] = [
            load.name.clone().into(),
            u64::from(load.id.tid).into(),
            load.allowed.to_string().into(),
            (load.cpu as u64).into(),
            load.run.into(),
            load.wait.into(),
        ];
        table.push(cells.into());
    }
    table
}
