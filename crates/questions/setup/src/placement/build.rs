//! Snapshots and notes of a recording become machines with placements.
//!
//! A machine of which files were read is taken from them; pasted notes count where there are no files.

use super::below;
use super::culprits::Verdicts;
use super::model::{Model, Wishes};
use super::proposal::Proposal;
use base::recording::PartKind;
use base::{Level, Problem};
use facts::Input;
use host::{Machine, paste};

/// The machines of a recording about which anything was told, and what could not be read.
pub fn build(input: &Input, wishes: &Wishes) -> (Vec<Model>, Vec<Problem>) {
    let recording = &input.recording;
    let (mut models, mut problems) = (Vec::new(), Vec::new());
    for machine in &recording.machines {
        let samples = input.machines.of_machine(&machine.id).map_or(&[][..], |known| &known.snapshots);
        let is_note = |part: &&base::recording::Part| part.kind == PartKind::Notes && part.machine == machine.id;
        let mut notes: Vec<(String, String)> = Vec::new();
        // One byte more than is read of all notes of a machine, so that what is left out is noted.
        let mut bytes_left = host::budget::TEXT_BYTES as u64 + 1;
        for part in recording.parts.iter().filter(is_note) {
            match note(&recording.root.join(&part.path), bytes_left) {
                Ok(text) => {
                    bytes_left = bytes_left.saturating_sub(text.len() as u64);
                    let name = part.path.file_name().unwrap_or(part.path.as_os_str());
                    notes.push((name.to_string_lossy().into_owned(), text));
                }
                Err(error) => {
                    let (file, text) = (part.path.display().to_string(), error.to_string());
                    problems.push(Problem::at(file, None, "facts of a machine", "none", 0, text));
                }
            }
        }
        let pasted = samples.is_empty();
        let facts = match (samples, notes.is_empty()) {
            ([], true) => continue,
            ([], false) => paste::read(&notes),
            (samples, _) => Machine::of_snapshots(samples),
        };
        let has_trace = recording.parts.iter().any(|part| part.kind.is_trace());
        let is_told = !pasted || has_trace || machine.level > 0 || recording.machines.len() > 1 || facts.runs_vms();
        let level = if is_told { recording.level_of(&machine.id) } else { Level::Unknown };
        models.push(model(level, &machine.id, facts, pasted, wishes));
    }
    models.retain(|model| !model.machine.is_empty());
    below::note(&mut models);
    (models, problems)
}

pub fn model(level: Level, id: &str, machine: Machine, pasted: bool, wishes: &Wishes) -> Model {
    // Who asks for polling threads means the host itself.
    let of_host = matches!(level, Level::L0 | Level::Unknown).then(|| wishes.polling.clone()).flatten();
    let proposal = Proposal::of(&machine, &Wishes { polling: of_host, ..wishes.clone() });
    let verdicts = Verdicts::of(&machine);
    Model { id: id.to_owned(), level, machine, proposal, verdicts, pasted, caps_below: Vec::new() }
}

fn note(path: &std::path::Path, most_bytes: u64) -> std::io::Result<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    base::files::open(path)?.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
