//! The budget that a recording carries: a part of kind `budget`.

use super::Budget;
use super::read::MOST_BYTES;
use base::Problem;
use base::recording::{PartKind, Recording};
use std::fs::File;
use std::io::Read;

/// A recording's own budget.
#[derive(Debug)]
pub struct RecordedBudget {
    /// The budget.
    pub budget: Budget,
    /// The part's path, as people know it.
    pub path: String,
}

impl RecordedBudget {
    /// The first one that `recording` carries and that can be read, and what was wrong with others.
    pub fn of(recording: &Recording) -> (Option<Self>, Vec<Problem>) {
        let (mut found, mut problems): (Option<Self>, Vec<Problem>) = (None, Vec::new());
        for part in recording.parts.iter().filter(|part| part.kind == PartKind::Budget) {
            let path = recording.as_named(&part.path.display().to_string()).into_owned();
            let problem = |text: String| Problem::at(&path, None, "one latency budget", "none", 0, text);
            if let Some(first) = &found {
                problems.push(problem(format!(
                    "the recording is judged by {} already; this budget is not used",
                    first.path
                )));
                continue;
            }
            let mut text = String::new();
            // One byte more than is read, so that a longer file is refused and not cut.
            let file = File::open(recording.root.join(&part.path));
            let read = file.and_then(|file| file.take(MOST_BYTES as u64 + 1).read_to_string(&mut text));
            match read.map_err(|error| error.to_string()) {
                Ok(_) => match Budget::read(&path, &text) {
                    Ok(budget) => found = Some(Self { budget, path }),
                    Err(error) => problems.push(problem(error.to_string())),
                },
                Err(error) => problems.push(problem(error)),
            }
        }
        (found, problems)
    }
}
