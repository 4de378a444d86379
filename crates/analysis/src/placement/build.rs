//! Snapshots and notes of a recording become machines with placements.
//!
//! A machine of which files were read is taken from them; pasted notes count where there are no files.

use super::model::{Model, Wishes};
use super::proposal::Proposal;
use base::recording::{PartKind, Recording};
use base::{Level, Problem};
use host::{Machine, Snapshot, paste};

/// The machines of a recording about which anything was told, and what could not be read.
pub fn build(recording: &Recording, wishes: &Wishes) -> (Vec<Model>, Vec<Problem>) {
    let (mut models, mut problems) = (Vec::new(), Vec::new());
    for machine in &recording.machines {
        let parts = |kind| recording.parts.iter().filter(move |part| part.kind == kind && part.machine == machine.id);
        let mut failed = |part: &base::recording::Part, error: String| {
            problems.push(Problem::at(part.path.display().to_string(), None, "facts of a machine", "none", 0, error));
        };
        let mut samples = Vec::new();
        for part in parts(PartKind::Host) {
            match Snapshot::open(&recording.root.join(&part.path)) {
                Ok(snapshot) => samples.push(snapshot),
                Err(error) => failed(part, error.to_string()),
            }
        }
        let mut notes: Vec<(String, String)> = Vec::new();
        // One byte more than is read of all notes of a machine, so that what is left out is noted.
        let mut bytes_left = host::budget::TEXT_BYTES as u64 + 1;
        for part in parts(PartKind::Notes) {
            match note(&recording.root.join(&part.path), bytes_left) {
                Ok(text) => {
                    bytes_left = bytes_left.saturating_sub(text.len() as u64);
                    let name = part.path.file_name().unwrap_or(part.path.as_os_str());
                    notes.push((name.to_string_lossy().into_owned(), text));
                }
                Err(error) => failed(part, error.to_string()),
            }
        }
        let pasted = samples.is_empty();
        let facts = match (&samples[..], notes.is_empty()) {
            ([], true) => continue,
            ([], false) => paste::read(&notes),
            (samples, _) => Machine::of_snapshots(samples),
        };
        models.push(model(Level::At(machine.level), &machine.id, facts, pasted, wishes));
    }
    models.retain(|model| !model.machine.is_empty());
    (models, problems)
}

/// One machine, with its placements.
pub fn model(level: Level, id: &str, machine: Machine, pasted: bool, wishes: &Wishes) -> Model {
    let proposal = Proposal::of(&machine, wishes);
    Model { id: id.to_owned(), level, machine, proposal, pasted }
}

fn note(path: &std::path::Path, most_bytes: u64) -> std::io::Result<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
