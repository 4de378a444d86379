//! Snapshots of a recording become facts of machines.
//!
//! Of each machine the last sample counts: it is what held when the recording ended.

use super::features;
use super::model::{Machine, Model};
use base::Level;
use facts::machines::{HostSnapshots, Machines};
use host::{Snapshot, Virtualization};

/// The machines of a recording that have a snapshot, outermost first.
pub fn build(known: &Machines) -> Model {
    let last = |known: &HostSnapshots| Some(machine(known.level, &known.machine, known.last()?.clone()));
    let mut machines: Vec<Machine> = known.list.iter().filter_map(last).collect();
    machines.sort_by(|a, b| (a.level, &a.id).cmp(&(b.level, &b.id)));
    Model { machines, traced_nested: false }
}

pub fn machine(level: Level, id: &str, snapshot: Snapshot) -> Machine {
    let facts = Virtualization::of(snapshot);
    let features = features::of(&facts);
    Machine { level, id: id.to_owned(), facts, features, asks_for_nesting: Vec::new(), runs_guests: false }
}
