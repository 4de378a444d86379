//! Snapshots of a recording become facts of machines.
//!
//! Of each machine the last sample counts: it is what held when the recording ended.

use super::features;
use super::model::{Machine, Model};
use base::recording::{PartKind, Recording};
use base::{Level, Problem};
use host::{Snapshot, Virtualization};

/// The machines of a recording that have a snapshot, outermost first; what could not be opened becomes a problem.
pub fn build(recording: &Recording) -> (Model, Vec<Problem>) {
    let mut machines: Vec<Machine> = Vec::new();
    let mut problems = Vec::new();
    for part in recording.parts.iter().filter(|part| part.kind == PartKind::Host) {
        match Snapshot::open(&recording.root.join(&part.path)) {
            Ok(snapshot) => {
                let machine = machine(recording.level_of(&part.machine), &part.machine, snapshot);
                match machines.iter_mut().find(|known| known.id == machine.id) {
                    Some(earlier) => *earlier = machine,
                    None => machines.push(machine),
                }
            }
            Err(error) => {
                let file = part.path.display().to_string();
                problems.push(Problem::at(file, None, "a snapshot", "none", 0, error.to_string()));
            }
        }
    }
    machines.sort_by(|a, b| (a.level, &a.id).cmp(&(b.level, &b.id)));
    (Model { machines }, problems)
}

/// One machine out of its snapshot.
pub fn machine(level: Level, id: &str, snapshot: Snapshot) -> Machine {
    let facts = Virtualization::of(snapshot);
    let features = features::of(&facts);
    Machine { level, id: id.to_owned(), facts, features }
}
