//! The way of one CPU's pages: from the kernel, through a pipe, to a file.
//!
//! ```text
//! trace_pipe_raw --splice--> pipe --splice--> cpuN.raw     full pages, as they fill
//!       |                                        ^
//!       '-------- read, once a second -----------'         the page that is being filled, so that a kill costs a second
//! ```
//! Splice gives full pages only, read gives what is there (`tracing_buffers_splice_read` and `tracing_buffers_read` in
//! kernel/trace/trace.c, Linux 6.12).

use super::drain::Meter;
use super::instance::Instance;
use super::ring::{Files, Ring};
use crate::Error;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace::tracedat::partial::raw_name;

/// Room of a pipe: what one splice moves. The kernel grants root more than the 64 KiB of a new pipe.
const PIPE_BYTES: usize = 1 << 20;
/// What is taken of one CPU before the next one has its turn: four of its buffers as they are by default.
const TURN_BYTES: u64 = 16 << 20;

/// How much of a CPU's buffer is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    Full,
    /// And the page that is being filled. Not more than that one: taking it may cause events of its own, which begin the
    /// next page, without end.
    Begun,
    /// All there is, tracing having been turned off.
    Rest,
}

/// The way from a buffer to a file; a thread's CPUs take turns, and each leaves it empty.
pub(super) struct Pipe {
    start: OwnedFd,
    end: OwnedFd,
}

/// One CPU's way to its file.
pub(super) struct Stream {
    raw: File,
    file: File,
    path: PathBuf,
    /// False once the kernel or the file system has refused to splice.
    splices: bool,
    turn_bytes: u64,
    /// Of a flight recorder.
    files: Option<Files>,
    /// False if the kernel refuses to wait for it: the CPU is offline. It is looked after all the same, now and then.
    polls: bool,
    page: Vec<u8>,
}

impl Pipe {
    /// A pipe that never makes anybody wait.
    pub(super) fn new() -> Result<Self, Errno> {
        let (start, end) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        // A smaller pipe only takes more calls.
        let _ = fcntl_setpipe_size(&end, PIPE_BYTES);
        Ok(Self { start, end })
    }
}

impl Stream {
    /// Opens the pages of `cpu` and a file for them in `directory`, or one after the other where a `ring` says what is kept.
    pub(super) fn open(
        instance: &Instance,
        cpu: u32,
        directory: &Path,
        page_bytes: usize,
        ring: Option<&Arc<Ring>>,
    ) -> Result<Self, Error> {
        let raw = instance.open_raw(cpu)?;
        let (path, file, files) = match ring {
            Some(ring) => {
                let (files, file) = Files::begin(ring, directory, cpu, page_bytes)?;
                (files.path().to_owned(), file, Some(files))
            }
            None => {
                let path = directory.join(raw_name(cpu));
                let file = File::create(&path).map_err(|error| Error::io(&path, error))?;
                (path, file, None)
            }
        };
        let turn_bytes = ring.map_or(TURN_BYTES, |ring| ring.most_in_file().min(TURN_BYTES));
        Ok(Self { raw, file, path, splices: true, turn_bytes, files, polls: true, page: vec![0; page_bytes] })
    }

    /// Lets a flight recorder drop what is too old, after so many bytes have been moved.
    pub(super) fn turn(&mut self, bytes: u64, meter: &Meter) -> Result<(), Error> {
        let Some(files) = &mut self.files else { return Ok(()) };
        if let Some(next) = files.grown(bytes, meter)? {
            self.file = next;
            self.path = files.path().to_owned();
        }
        Ok(())
    }

    /// What to wait for; `None` if the kernel does not let us wait.
    pub(super) fn waits(&self) -> Option<PollFd<'_>> {
        self.polls.then(|| PollFd::new(&self.raw, PollFlags::IN))
    }

    /// Notes that the kernel refused to wait.
    pub(crate) fn never_wait(&mut self) {
        self.polls = false;
    }

    /// Moves what is there, and returns the bytes.
    pub(super) fn take(&mut self, take: Take, pipe: &Pipe) -> Result<u64, Error> {
        let mut moved = 0;
        while self.splices && (moved < self.turn_bytes || take == Take::Rest) {
            match splice(&self.raw, None, &pipe.end, None, PIPE_BYTES, SpliceFlags::NONBLOCK | SpliceFlags::MOVE) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(bytes) => {
                    self.empty(pipe, bytes)?;
                    moved += bytes as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::INVAL) => self.splices = false,
                Err(error) => return Err(Error::io(&self.path, error.into())),
            }
        }
        let pages = match take {
            Take::Rest => u64::MAX,
            Take::Begun => 1,
            Take::Full => 0,
        };
        let unspliced = if self.splices { 0 } else { (self.turn_bytes / self.page.len() as u64).max(1) };
        for _ in 0..pages.max(unspliced) {
            match self.raw.read(&mut self.page) {
                Ok(0) => break,
                Ok(bytes) => {
                    self.page[bytes..].fill(0);
                    self.file.write_all(&self.page).map_err(|error| full(&self.path, error))?;
                    moved += self.page.len() as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(&self.path, error)),
            }
        }
        Ok(moved)
    }

    /// Moves `bytes` from the pipe into the file, by copying where the file system cannot splice.
    fn empty(&mut self, pipe: &Pipe, mut bytes: usize) -> Result<(), Error> {
        while bytes > 0 {
            match splice(&pipe.start, None, &self.file, None, bytes, SpliceFlags::MOVE) {
                Ok(0) => break,
                Ok(done) => bytes -= done,
                Err(Errno::INTR) => {}
                Err(Errno::INVAL) => {
                    self.splices = false;
                    let mut page = vec![0; bytes];
                    let read = rustix::io::read(&pipe.start, &mut page);
                    let read = read.map_err(|error| Error::io(&self.path, error.into()))?;
                    self.file.write_all(&page[..read]).map_err(|error| full(&self.path, error))?;
                    bytes -= read;
                }
                Err(error) => return Err(full(&self.path, error.into())),
            }
        }
        Ok(())
    }
}

/// A full disk is a cause of its own.
pub(super) fn full(path: &Path, error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::NoSpace { path: path.to_owned() },
        _ => Error::io(path, error),
    }
}
