//! The pages of every CPU, from the kernel to a file each, without a copy through this program where that can be.
//!
//! ```text
//! trace_pipe_raw --splice--> pipe --splice--> cpuN.raw     whole pages, as they fill
//!       |                                        ^
//!       '-------- read, once a second -----------'         pages that fill slowly, so that a kill costs a second at most
//! ```
//! A thread serves up to [`CPUS_A_THREAD`] CPUs. It sleeps in poll(2) until a buffer has filled by `buffer_percent`. Splice
//! gives full pages only, read gives what is there (`tracing_buffers_splice_read` and `tracing_buffers_read` in
//! kernel/trace/trace.c, Linux 6.12).

use super::instance::Instance;
use crate::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// CPUs that one thread serves.
const CPUS_A_THREAD: usize = 8;
/// Room of a pipe: what one splice moves. The kernel grants root more than the 64 KiB of a new pipe.
const PIPE_BYTES: usize = 1 << 20;
/// How often pages are taken that are not full.
const SWEEP: Duration = Duration::from_secs(1);
/// How long a thread waits for a buffer before it looks for the end of the recording.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// What is taken of one CPU before the next one has its turn: four of its buffers as they are by default.
const TURN_BYTES: u64 = 16 << 20;
/// Pause after a poll that promised a page and had none.
const BREATH: Duration = Duration::from_millis(5);

/// What has been moved so far; read while it grows.
#[derive(Debug, Default)]
pub struct Meter {
    bytes: AtomicU64,
    lost: AtomicU64,
    stop: AtomicBool,
}

impl Meter {
    /// Bytes of pages on disk.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Events that the kernel dropped because a buffer was full, by its own counters, when last read.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Notes what the kernel's counters say.
    pub(super) fn note_lost(&self, events: u64) {
        self.lost.store(events, Ordering::Relaxed);
    }
}

/// The threads that move pages.
pub struct Drain {
    meter: Arc<Meter>,
    threads: Vec<JoinHandle<Result<(), Error>>>,
}

/// How much of a CPU's buffer is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Take {
    /// Full pages.
    Full,
    /// And the page that is being filled. Not more than that one: taking it may cause events of its own, which begin the
    /// next page, without end.
    Begun,
    /// All there is, tracing having been turned off.
    Rest,
}

/// One CPU's way to its file.
struct Stream {
    raw: File,
    file: File,
    path: PathBuf,
    pipe: (OwnedFd, OwnedFd),
    /// False once the kernel or the file system has refused to splice.
    splices: bool,
    /// False if the kernel refuses to wait for it: the CPU is offline. It is looked after all the same, now and then.
    polls: bool,
    page: Vec<u8>,
}

impl Drain {
    /// Begins to move the pages of all CPUs into `directory`.
    ///
    /// # Errors
    /// If a pipe or a file cannot be opened.
    pub fn start(instance: &Instance, cpus: &[u32], directory: &Path, page_bytes: usize) -> Result<Self, Error> {
        let mut streams = Vec::new();
        for cpu in cpus {
            streams.push(Stream::open(instance, *cpu, directory, page_bytes)?);
        }
        let mut drain = Self { meter: Arc::default(), threads: Vec::new() };
        while !streams.is_empty() {
            let mut some: Vec<Stream> = streams.drain(..CPUS_A_THREAD.min(streams.len())).collect();
            let meter = Arc::clone(&drain.meter);
            let work = move || work(&mut some, &meter);
            let thread = std::thread::Builder::new().name("kvmscope-drain".into()).spawn(work);
            drain.threads.push(thread.map_err(|error| Error::io(directory, error))?);
        }
        Ok(drain)
    }

    /// What has been moved.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// # Errors
    /// If a thread had to give up: the disk is full, most of the time.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.threads.iter().position(JoinHandle::is_finished) {
            Some(ended) => joined(self.threads.swap_remove(ended)),
            None => Ok(()),
        }
    }

    /// Takes what the buffers still hold, tracing having been turned off, and ends.
    ///
    /// # Errors
    /// As [`Drain::check`].
    pub fn finish(mut self) -> Result<(), Error> {
        self.meter.stop.store(true, Ordering::Release);
        let outcomes: Vec<_> = self.threads.drain(..).map(joined).collect();
        outcomes.into_iter().collect()
    }
}

impl Drop for Drain {
    /// The threads end by themselves, so that the instance they read from can be removed.
    fn drop(&mut self) {
        self.meter.stop.store(true, Ordering::Release);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn joined(thread: JoinHandle<Result<(), Error>>) -> Result<(), Error> {
    thread.join().unwrap_or_else(|_| Err(Error::Unable("the thread that moves trace pages has failed".to_owned())))
}

fn work(streams: &mut [Stream], meter: &Meter) -> Result<(), Error> {
    let mut swept = Instant::now();
    loop {
        let last = meter.stop.load(Ordering::Acquire);
        let take = match swept.elapsed() >= SWEEP {
            _ if last => Take::Rest,
            true => Take::Begun,
            false => Take::Full,
        };
        if take == Take::Begun {
            swept = Instant::now();
        }
        let mut moved = 0;
        for stream in streams.iter_mut() {
            let bytes = stream.take(take)?;
            meter.bytes.fetch_add(bytes, Ordering::Relaxed);
            moved += bytes;
        }
        if last {
            return Ok(());
        }
        if moved == 0 && wait(streams) {
            std::thread::sleep(BREATH);
        }
    }
}

/// Waits for a buffer to fill; true if one says it has.
fn wait(streams: &mut [Stream]) -> bool {
    let (mut waiting, mut places) = (Vec::new(), Vec::new());
    for (place, stream) in streams.iter().enumerate().filter(|(_, stream)| stream.polls) {
        waiting.push(PollFd::new(&stream.raw, PollFlags::IN));
        places.push(place);
    }
    let ready = poll(&mut waiting, Some(&WAIT)).is_ok_and(|ready| ready > 0);
    let refused: Vec<bool> = waiting.iter().map(|waiting| waiting.revents().contains(PollFlags::ERR)).collect();
    for (place, refused) in places.into_iter().zip(refused) {
        streams[place].polls = !refused;
    }
    ready
}

impl Stream {
    fn open(instance: &Instance, cpu: u32, directory: &Path, page_bytes: usize) -> Result<Self, Error> {
        let path = directory.join(trace::tracedat::partial::raw_name(cpu));
        let io = |error: Errno| Error::io(&path, error.into());
        let file = File::create(&path).map_err(|error| Error::io(&path, error))?;
        let pipe = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).map_err(io)?;
        // A smaller pipe only takes more calls.
        let _ = fcntl_setpipe_size(&pipe.1, PIPE_BYTES);
        Ok(Self {
            raw: instance.open_raw(cpu)?,
            file,
            pipe,
            splices: true,
            polls: true,
            page: vec![0; page_bytes],
            path,
        })
    }

    /// Moves what is there, and returns the bytes.
    fn take(&mut self, take: Take) -> Result<u64, Error> {
        let mut moved = 0;
        while self.splices && (moved < TURN_BYTES || take == Take::Rest) {
            match splice(&self.raw, None, &self.pipe.1, None, PIPE_BYTES, SpliceFlags::NONBLOCK | SpliceFlags::MOVE) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(bytes) => {
                    self.empty_pipe(bytes)?;
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
        let unspliced = if self.splices { 0 } else { TURN_BYTES / self.page.len() as u64 };
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
    fn empty_pipe(&mut self, mut bytes: usize) -> Result<(), Error> {
        while bytes > 0 {
            match splice(&self.pipe.0, None, &self.file, None, bytes, SpliceFlags::MOVE) {
                Ok(0) => break,
                Ok(done) => bytes -= done,
                Err(Errno::INTR) => {}
                Err(Errno::INVAL) => {
                    self.splices = false;
                    let mut page = vec![0; bytes];
                    let read = rustix::io::read(&self.pipe.0, &mut page);
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

/// A full disk deserves a sentence of its own.
pub fn full(path: &Path, error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::Unable(format!(
            "{}: no space is left on the disk; what was recorded until now stays readable. Free some space, record for a \
             shorter time (--seconds), or to another disk (-o)",
            path.display()
        )),
        _ => Error::io(path, error),
    }
}
