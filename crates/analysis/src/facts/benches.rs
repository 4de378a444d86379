//! The results of benches in a recording.

use base::recording::{Emulator, PartKind, Recording};
use base::{Bench, Level, Problem};

/// The benches of a recording.
#[derive(Debug, Clone, Default)]
pub struct Benches {
    /// Each file.
    pub runs: Vec<BenchRun>,
    /// What emulated the machines.
    pub emulated: Option<Emulator>,
    /// Files that could not be read.
    pub unread: u64,
}

/// One bench on one machine.
#[derive(Debug, Clone)]
pub struct BenchRun {
    /// The machine's id.
    pub machine: String,
    /// Its level.
    pub level: Level,
    /// What was measured there.
    pub bench: Bench,
}

impl Benches {
    /// Reads the benches of `recording`; what cannot be read becomes a problem.
    pub fn of(recording: &Recording) -> (Self, Vec<Problem>) {
        let mut benches = Self { emulated: recording.emulated, ..Self::default() };
        let mut problems = Vec::new();
        for part in recording.parts.iter().filter(|part| part.kind == PartKind::Bench) {
            match Bench::read(&recording.root.join(&part.path)) {
                Ok(bench) => {
                    let level = recording.level_of(&part.machine);
                    benches.runs.push(BenchRun { machine: part.machine.clone(), level, bench });
                }
                Err(error) => {
                    benches.unread += 1;
                    let file = part.path.display().to_string();
                    problems.push(Problem::at(file, None, "the result of a bench", "none", 0, error.to_string()));
                }
            }
        }
        (benches, problems)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}
