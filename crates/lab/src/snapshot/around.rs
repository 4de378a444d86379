//! Two samples of a machine, one when a recording begins and one when it ends: `host/0` and `host/1`.
//!
//! Rates between them are those of the recording itself. The first is taken before events are recorded and the second
//! after, so that reading thousands of files is not what the trace shows.

use super::{More, monotonic_ns, take_more};
use crate::{Error, Recorder};
use base::recording::{Part, PartKind, PartState};
use std::path::{Path, PathBuf};

/// The first sample, and what the second needs.
pub struct Around {
    host: PathBuf,
    more: More,
    root: PathBuf,
    machine: String,
}

impl Around {
    /// Takes the first sample of the machine at `host` into `root/machine/host/0`.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn begin(host: &Path, more: More, root: &Path, machine: &str) -> Result<Self, Error> {
        let around = Self { host: host.to_owned(), more, root: root.to_owned(), machine: machine.to_owned() };
        for directory in [root.join(machine), root.join(machine).join("host")] {
            match std::fs::create_dir(&directory) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(Error::io(directory, error));
                }
                _ => {}
            }
        }
        around.sample(0)?;
        Ok(around)
    }

    /// The sample that is whole from the beginning.
    pub fn first(&self) -> Part {
        self.part(0)
    }

    fn sample(&self, number: u32) -> Result<(), Error> {
        take_more(&self.host, &self.root.join(self.part(number).path), &self.more, &monotonic_ns).map(drop)
    }

    fn part(&self, number: u32) -> Part {
        Part {
            path: Path::new(&self.machine).join("host").join(number.to_string()),
            machine: self.machine.clone(),
            kind: PartKind::Host,
            clock: Some("monotonic".to_owned()),
            state: PartState::Complete,
        }
    }
}

impl Recorder for Around {
    fn name(&self) -> &str {
        "snapshot"
    }

    fn stop(self: Box<Self>) -> Result<Vec<Part>, Error> {
        self.sample(1)?;
        Ok(vec![self.part(0), self.part(1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_second_sample_is_of_the_end() {
        let (host, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(host.path().join("proc")).unwrap();
        fs::write(host.path().join("proc/stat"), "early").unwrap();
        let around = Around::begin(host.path(), More::default(), root.path(), "L1-web").unwrap();
        fs::write(host.path().join("proc/stat"), "late").unwrap();
        let parts = Box::new(around).stop().unwrap();
        let texts: Vec<_> = parts
            .iter()
            .map(|part| fs::read_to_string(root.path().join(&part.path).join("proc/stat")).unwrap())
            .collect();
        assert_eq!(texts, ["early", "late"]);
        assert_eq!(parts[1].path, Path::new("L1-web/host/1"));
    }
}
