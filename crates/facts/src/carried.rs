//! What a recording carries of what its user states: a part of TOML.

use base::Problem;
use base::recording::{PartKind, Recording};
use std::fmt::Display;
use std::io::Read;

#[derive(Debug)]
pub struct Carried<T> {
    pub value: T,
    pub path: String,
}

impl<T> Carried<T> {
    /// The first part of this kind that `read` understands, of its path and text, and what was wrong with others. `what` is what one of them is.
    pub fn of<E: Display>(
        recording: &Recording,
        (kind, what, most_bytes): (PartKind, &str, usize),
        read: impl Fn(&str, &str) -> Result<T, E>,
    ) -> (Option<Self>, Vec<Problem>) {
        let (mut found, mut problems): (Option<Self>, Vec<Problem>) = (None, Vec::new());
        for part in recording.parts.iter().filter(|part| part.kind == kind) {
            let path = recording.as_named(&part.path.display().to_string()).into_owned();
            let problem = |text: String| Problem::at(&path, None, format!("one {what}"), "none", 0, text);
            if let Some(first) = &found {
                problems.push(problem(format!(
                    "the recording has the {what} of {} already; this one is not used",
                    first.path
                )));
                continue;
            }
            let mut text = String::new();
            // One byte more than is read, so that a longer file is refused and not cut.
            let file = base::files::open(&recording.root.join(&part.path));
            let whole = file.and_then(|file| file.take(most_bytes as u64 + 1).read_to_string(&mut text));
            match whole
                .map_err(|error| error.to_string())
                .and_then(|_| read(&path, &text).map_err(|error| error.to_string()))
            {
                Ok(value) => found = Some(Self { value, path }),
                Err(text) => problems.push(problem(text)),
            }
        }
        (found, problems)
    }
}
