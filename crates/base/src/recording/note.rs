//! Small files of JSON that a recorder leaves beside a trace: `<machine>/tsc.json`, `<machine>/processes.json`.
//!
//! Parts of kind `notes`, one of each kind per machine. A file longer than its kind can be is refused before it is read.

use super::{Error, PartKind, Recording};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

pub(super) trait Note: Serialize + DeserializeOwned {
    /// The name of its file.
    const FILE: &str;
    /// What it holds, in words.
    const WHAT: &str;
    /// A file longer than this is something else.
    const MOST_BYTES: u64;
}

/// Makes a note of a type, and gives it how it is read and written.
macro_rules! read_and_write {
    ($kind:ident, $file:expr, $what:literal, most_bytes: $most_bytes:expr) => {
        impl $crate::recording::note::Note for $kind {
            const FILE: &str = $file;
            const WHAT: &str = $what;
            const MOST_BYTES: u64 = $most_bytes;
        }

        impl $kind {
            /// Reads the file.
            ///
            /// # Errors
            /// If it cannot be read, or holds something else.
            pub fn read(path: &std::path::Path) -> Result<Self, $crate::recording::Error> {
                $crate::recording::note::read(path)
            }

            /// Writes the file.
            ///
            /// # Errors
            /// If the operating system refuses.
            pub fn write(&self, path: &std::path::Path) -> Result<(), $crate::recording::Error> {
                $crate::recording::note::write(self, path)
            }
        }
    };
}
pub(super) use read_and_write;

/// Reads a note.
///
/// # Errors
/// If it cannot be read, is too long, or is none.
pub(super) fn read<N: Note>(path: &Path) -> Result<N, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let refuse = |reason: String| Error::Manifest { path: path.to_owned(), reason };
    let text = crate::files::read(path, N::MOST_BYTES).map_err(io)?;
    serde_json::from_slice(&text).map_err(|error| refuse(format!("no {}: {error}", N::WHAT)))
}

/// Writes a note.
///
/// # Errors
/// If the operating system refuses.
pub(super) fn write<N: Note>(note: &N, path: &Path) -> Result<(), Error> {
    let io = |source: std::io::Error| Error::Io { path: path.to_owned(), source };
    let text = serde_json::to_vec_pretty(note).map_err(|error| io(error.into()))?;
    std::fs::write(path, text).map_err(io)
}

/// The note of this kind on `machine`; `None` if the recording has none.
pub(super) fn of_machine<N: Note>(recording: &Recording, machine: &str) -> Option<Result<N, Error>> {
    let is_it = |path: &Path| path.file_name().is_some_and(|name| name == N::FILE);
    let mut notes = recording.parts.iter().filter(|part| part.kind == PartKind::Notes && is_it(&part.path));
    let part = notes.find(|part| part.machine == machine)?;
    Some(read(&recording.root.join(&part.path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Numbers(Vec<u8>);

    impl Note for Numbers {
        const FILE: &str = "numbers.json";
        const WHAT: &str = "numbers";
        const MOST_BYTES: u64 = 30;
    }

    #[test]
    fn a_note_is_read_as_it_was_written_and_never_beyond_its_bound() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(Numbers::FILE);
        write(&Numbers(vec![1, 2]), &path).unwrap();
        assert_eq!(read::<Numbers>(&path).unwrap(), Numbers(vec![1, 2]));
        for (text, words) in [("{}", "no numbers: "), (&format!("[{}1]", " ".repeat(28)), "more than 30 bytes")] {
            std::fs::write(&path, text).unwrap();
            let error = read::<Numbers>(&path).unwrap_err().to_string();
            assert!(error.contains("numbers.json") && error.contains(words), "{error}");
        }
        assert!(matches!(read::<Numbers>(Path::new("/nonexistent")), Err(Error::Io { .. })));
    }
}
