//! The machines of a recording, as their snapshots have them.

use base::recording::{PartKind, Recording};
use base::{Level, Problem};
use host::Snapshot;

/// The machines of a recording that have snapshots.
#[derive(Debug, Default)]
pub struct Machines {
    /// In the order of the manifest.
    pub list: Vec<HostSnapshots>,
    /// Snapshots that could not be opened.
    pub unopened: u64,
}

/// The snapshots of one machine, opened.
#[derive(Debug)]
pub struct HostSnapshots {
    /// The machine's id in the recording: `L0`.
    pub machine: String,
    pub level: Level,
    /// In the order in which they were taken, at least one.
    pub snapshots: Vec<Snapshot>,
}

impl HostSnapshots {
    /// What held when the recording ended.
    pub fn last(&self) -> Option<&Snapshot> {
        self.snapshots.last()
    }
}

impl Machines {
    /// Opens the snapshots of `recording`; what cannot be opened becomes a problem.
    pub fn of(recording: &Recording) -> (Self, Vec<Problem>) {
        let mut machines = Self::default();
        let mut problems = Vec::new();
        for part in recording.parts.iter().filter(|part| part.kind == PartKind::Host) {
            match Snapshot::open(&recording.root.join(&part.path)) {
                Ok(snapshot) => match machines.list.iter_mut().find(|known| known.machine == part.machine) {
                    Some(known) => known.snapshots.push(snapshot),
                    None => machines.list.push(HostSnapshots {
                        machine: part.machine.clone(),
                        level: recording.level_of(&part.machine),
                        snapshots: vec![snapshot],
                    }),
                },
                Err(error) => {
                    machines.unopened += 1;
                    let file = part.path.display().to_string();
                    problems.push(Problem::at(file, None, "a snapshot", "none", 0, error.to_string()));
                }
            }
        }
        (machines, problems)
    }

    pub fn of_machine(&self, machine: &str) -> Option<&HostSnapshots> {
        self.list.iter().find(|known| known.machine == machine)
    }
}
