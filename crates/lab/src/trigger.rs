//! How does a program in a guest, a test or a person tell a recorder that now is the moment?
//!
//! ```text
//! echo "cyclictest: 137 us" > DIR/trigger --> named pipe, ours alone --> the line
//! ```
//! The pipe is in the journal before it is made, and is gone with the recorder.

use crate::Error;
use crate::journal::{Entry, Journal, Step};
use base::shell::printable;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Its name in the directory of the recording.
pub(crate) const TRIGGER: &str = "trigger";

/// Most bytes of a line that are kept; a pipe takes so many at once without mixing in those of others (PIPE_BUF is 4096,
/// include/uapi/linux/limits.h, Linux 6.12).
const MOST_BYTES: usize = 200;

/// A named pipe that waits for a line.
#[derive(Debug)]
pub struct TriggerPipe {
    pipe: File,
    path: PathBuf,
    line: Vec<u8>,
    proc: PathBuf,
    entry: Option<Entry>,
}

impl TriggerPipe {
    /// Makes the pipe in `directory`, for its owner alone.
    ///
    /// # Errors
    /// If something lies there, if the file system has no pipes, or if the journal cannot be written.
    pub fn make(directory: &Path, journal: &Journal) -> Result<Self, Error> {
        let path = std::path::absolute(directory).map_err(|error| Error::io(directory, error))?.join(TRIGGER);
        if path.symlink_metadata().is_ok() {
            return Err(Error::io(&path, ErrorKind::AlreadyExists.into()));
        }
        let proc = journal.proc().to_owned();
        let mut entry = journal.begin("record")?;
        let pipe = entry.intend(Step::TriggerPipe { path: path.clone() }).and_then(|()| open(&path));
        match pipe {
            Ok(pipe) => Ok(Self { pipe, path, line: Vec::new(), proc, entry: Some(entry) }),
            Err(error) => {
                entry.put_back(&proc)?;
                Err(error)
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first line that was written, once one was: its beginning, with control characters written out.
    pub fn pulled(&mut self) -> Option<String> {
        let mut bytes = [0; MOST_BYTES];
        while self.line.len() < MOST_BYTES && !self.line.contains(&b'\n') {
            match self.pipe.read(&mut bytes) {
                Ok(read @ 1..) => self.line.extend_from_slice(&bytes[..read]),
                _ => return None,
            }
        }
        let line = self.line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(&line[..line.len().min(MOST_BYTES)]).into_owned();
        Some(printable(line.trim()).into())
    }
}

/// The lines that are written, one by one, for whoever goes on after one.
impl Iterator for TriggerPipe {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let line = self.pulled()?;
        self.line.clear();
        Some(line)
    }
}

impl Drop for TriggerPipe {
    /// What cannot be removed stays in the journal.
    fn drop(&mut self) {
        self.entry.take().map(|entry| entry.finish(&self.proc));
    }
}

/// Both ends are ours, so that it never ends when a writer has gone.
fn open(path: &Path) -> Result<File, Error> {
    let io = |error| Error::io(path, error);
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(|error| io(error.into()))?;
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32;
    File::options().read(true).write(true).custom_flags(flags).open(path).map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};

    #[test]
    fn a_line_pulls_and_the_pipe_is_gone_with_its_reader() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::new(place.path().join("journal"), "/proc");
        let mut trigger = TriggerPipe::make(place.path(), &journal).unwrap();
        let path = place.path().join(TRIGGER);
        let about = path.symlink_metadata().unwrap();
        assert!(about.file_type().is_fifo() && about.permissions().mode() & 0o777 == 0o600);
        assert!(TriggerPipe::make(place.path(), &journal).is_err(), "it is there");
        assert!(path.exists(), "and belongs to who made it");
        let write = |text: &[u8]| File::options().write(true).open(&path).unwrap().write_all(text).unwrap();
        assert_eq!(trigger.pulled(), None);
        write(b"137");
        assert_eq!(trigger.pulled(), None, "no line yet");
        write(b" us\x1b[2J \n and more\n");
        assert_eq!(trigger.pulled().unwrap(), printable("137 us\u{1b}[2J"));
        assert!(trigger.pulled().is_some(), "it stays pulled");
        assert_eq!((trigger.next().unwrap(), trigger.next()), (printable("137 us\u{1b}[2J").into_owned(), None));
        drop(trigger);
        assert!(!path.exists() && journal.is_empty().unwrap());
        let mut trigger = TriggerPipe::make(place.path(), &journal).unwrap();
        write(&[b'x'; 4_000]);
        assert_eq!(trigger.pulled().unwrap().len(), MOST_BYTES, "a line without an end is one");
    }
}
