//! How does what a machine left on its disk become a part of a recording?
//!
//! ```text
//! disk: cpio { harvest.json, recording/L0/trace.dat, recording/L0/truth.json, .. } --> L0/trace.dat, L0/truth.json, ..
//! ```
//! The machine has recorded and packed its trace with the same recorder that `kvmscope record` uses.

use super::cpio;
use super::inside::{FILES, HARVEST, Harvest};
use base::recording::Draft;
use lab::Error;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::path::{Component, Path};

/// Unpacks a disk into a recording, and says what the files are and what the machine's clocks showed.
///
/// # Errors
/// If the disk holds no whole archive, or one of something else.
pub(crate) fn harvest(disk: &Path, draft: &Draft) -> Result<Harvest, Error> {
    let mut file = BufReader::new(File::open(disk).map_err(|error| Error::io(disk, error))?);
    let mut harvest: Option<Harvest> = None;
    let unpacked = cpio::unpack(&mut file, &mut |name, _, body| {
        if name == HARVEST {
            harvest = Some(serde_json::from_reader(body)?);
            return Ok(());
        }
        let path = name.strip_prefix(FILES).map(Path::new);
        let inside = |path: &&Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        let path = path.filter(inside).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, format!("`{name}`")))?;
        let to = draft.part(path).map_err(io::Error::other)?;
        io::copy(body, &mut File::create(to)?).map(drop)
    });
    let unable = |why: String| Error::Malformed(format!("the machine's disk has no complete recording: {why}"));
    unpacked.map_err(|error| unable(error.to_string()))?;
    harvest.ok_or_else(|| unable(format!("{HARVEST} is missing")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::cpio::Archive;

    fn harvested(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<usize, String>) {
        let directory = tempfile::tempdir().unwrap();
        let mut archive = Archive::new(Vec::new());
        files.iter().for_each(|(name, text)| archive.file(name, text.as_bytes()).unwrap());
        let disk = directory.path().join("disk");
        std::fs::write(&disk, [archive.finish().unwrap(), vec![0; 4096]].concat()).unwrap();
        let draft = Draft::new(&directory.path().join("recording")).unwrap();
        let parts = harvest(&disk, &draft).map(|harvest| harvest.parts.len()).map_err(|error| error.to_string());
        if parts.is_ok() {
            assert_eq!(std::fs::read_to_string(draft.part(Path::new("L0/trace.dat")).unwrap()).unwrap(), "events");
        }
        (directory, parts)
    }

    #[test]
    fn files_come_to_their_places_and_nowhere_else() {
        let parts = r#"{"parts":[{"path":"L0/trace.dat","machine":"L0","kind":"trace.dat","clock":"mono","state":"complete"}],
            "clock_pairs":[]}"#;
        let trace = ("recording/L0/trace.dat", "events");
        assert_eq!(harvested(&[("harvest.json", parts), trace]).1, Ok(1));
        for (files, words) in [
            (vec![trace], "harvest.json is missing"),
            (vec![("harvest.json", "{"), trace], "no complete recording"),
            (vec![("harvest.json", parts), ("recording/../x", "x")], "recording/../x"),
            (vec![("harvest.json", parts), ("etc/passwd", "x")], "etc/passwd"),
        ] {
            let (directory, result) = harvested(&files);
            let error = result.unwrap_err();
            assert!(error.contains(words), "{error}");
            assert!(!directory.path().join("x").exists());
        }
    }
}
