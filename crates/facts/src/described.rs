//! Machines of a recording as their snapshots describe them, or, where there are none, the notes that were pasted.

use crate::{Case, Input};
use base::recording::{Part, PartKind};
use base::{Level, Problem};
use host::{Machine, paste};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A machine about which anything was told.
#[derive(Debug)]
pub struct Described {
    /// Its name in the recording: `L0`.
    pub id: String,
    pub level: Level,
    pub machine: Arc<Machine>,
    /// True if it was pasted rather than read from files.
    pub pasted: bool,
}

/// The machines of a recording, and what could not be read of them.
pub type DescribedMachines = (Vec<Described>, Vec<Problem>);

/// Those of `case`, read once.
pub fn described(case: &Case) -> Arc<DescribedMachines> {
    case.memo(|case| read(case.input()))
}

/// A machine of which files were read is taken from them; pasted notes count where there are no files.
fn read(input: &Input) -> DescribedMachines {
    let recording = &input.recording;
    let (mut described, mut problems) = (Vec::new(), Vec::new());
    for machine in &recording.machines {
        let samples = input.machines.of_machine(&machine.id).map_or(&[][..], |known| &known.snapshots);
        let is_note = |part: &&Part| part.kind == PartKind::Notes && part.machine == machine.id;
        let notes = notes(&recording.root, recording.parts.iter().filter(is_note), &mut problems);
        let pasted = samples.is_empty();
        let facts = match (samples, notes.is_empty()) {
            ([], true) => continue,
            ([], false) => paste::read(&notes),
            (samples, _) => Machine::of_snapshots(samples),
        };
        if facts.is_empty() {
            continue;
        }
        let has_trace = recording.parts.iter().any(|part| part.kind.is_trace());
        let is_told = !pasted || has_trace || machine.level > 0 || recording.machines.len() > 1 || facts.runs_vms();
        let level = if is_told { recording.level_of(&machine.id) } else { Level::Unknown };
        described.push(Described { id: machine.id.clone(), level, machine: Arc::new(facts), pasted });
    }
    (described, problems)
}

/// Names and texts of `parts`, as much of them as is read of a machine, and a byte more, so that what is left out is noted.
fn notes<'p>(root: &Path, parts: impl Iterator<Item = &'p Part>, problems: &mut Vec<Problem>) -> Vec<(String, String)> {
    let mut bytes_left = host::budget::TEXT_BYTES as u64 + 1;
    let mut notes: Vec<(String, String)> = Vec::new();
    for part in parts {
        match note(&root.join(&part.path), bytes_left) {
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
    notes
}

fn note(path: &Path, most_bytes: u64) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    base::files::open(path)?.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
