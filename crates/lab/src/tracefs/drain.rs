//! The threads that move the pages of all CPUs to disk while a recording runs.
//!
//! ```text
//! thread of CPUs 0-7   stream, stream, ..   poll(2) until a buffer has filled by `buffer_percent`, or for 0.1 s
//! thread of CPUs 8-15  stream, stream, ..
//! ```
//! In: the streams of `stream.rs`. Out: files that grow, and a [`Meter`] that tells how far they are.

use super::instance::Instance;
use super::ring::{Keep, Ring};
use super::stream::{Pipe, Stream, Take};
use crate::Error;
use rustix::event::{PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// CPUs that one thread serves.
const CPUS_A_THREAD: usize = 8;
/// Files that are open beside those of the CPUs.
const SPARE_FILES: u64 = 256;
/// How long a thread waits for a buffer before it looks for the end of the recording.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How much later than it was due a page may lie on disk: the wait above, and as much again for a busy host.
pub const LATE: Duration = Duration::from_millis(200);
/// Pause after a poll that promised a page and had none.
const BREATH: Duration = Duration::from_millis(5);

/// What has been moved so far; read while it grows.
#[derive(Debug, Default)]
pub struct Meter {
    bytes: AtomicU64,
    dropped: AtomicU64,
    kept_ns: AtomicU64,
    lost: AtomicU64,
    stop: AtomicBool,
}

impl Meter {
    /// Bytes of pages that were written.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes of pages on disk: a flight recorder has dropped the rest.
    pub fn held(&self) -> u64 {
        self.bytes().saturating_sub(self.dropped.load(Ordering::Relaxed))
    }

    /// How much of what happened the recording of a flight recorder has; known at its end.
    pub fn kept(&self) -> Duration {
        Duration::from_nanos(self.kept_ns.load(Ordering::Relaxed))
    }

    /// Notes that pages were written.
    pub(super) fn note_moved(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn note_dropped(&self, bytes: u64) {
        self.dropped.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes how much a flight recorder has kept.
    pub(super) fn note_kept(&self, length_ns: u64) {
        self.kept_ns.store(length_ns, Ordering::Relaxed);
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
pub(super) struct Drain {
    meter: Arc<Meter>,
    threads: Vec<JoinHandle<Result<(), Error>>>,
}

impl Drain {
    /// Begins to move the pages of all CPUs into `directory`, those that are not full once in `sweep`; with `keep` the oldest
    /// ones are dropped again.
    ///
    /// # Errors
    /// If a pipe or a file cannot be opened.
    pub(super) fn start(
        instance: &Instance,
        cpus: &[u32],
        directory: &Path,
        page_bytes: usize,
        sweep: Duration,
        keep: Option<Keep>,
    ) -> Result<Self, Error> {
        allow_files(2 * cpus.len() as u64 + SPARE_FILES);
        let ring = keep.map(|keep| Arc::new(Ring::new(keep, cpus.len(), page_bytes)));
        let mut streams = Vec::new();
        for cpu in cpus {
            streams.push(Stream::open(instance, *cpu, directory, page_bytes, ring.as_ref())?);
        }
        let mut drain = Self { meter: Arc::default(), threads: Vec::new() };
        while !streams.is_empty() {
            let mut some: Vec<Stream> = streams.drain(..CPUS_A_THREAD.min(streams.len())).collect();
            let meter = Arc::clone(&drain.meter);
            let pipe = Pipe::new().map_err(|error| Error::io(directory, error.into()))?;
            let work = move || work(&mut some, &pipe, &meter, sweep);
            let thread = std::thread::Builder::new().name("kvmscope-drain".into()).spawn(work);
            drain.threads.push(thread.map_err(|error| Error::io(directory, error))?);
        }
        Ok(drain)
    }

    /// What has been moved.
    pub(super) fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// # Errors
    /// If a thread had to give up: the disk is full, most of the time.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        match self.threads.iter().position(JoinHandle::is_finished) {
            Some(ended) => joined(self.threads.swap_remove(ended)),
            None => Ok(()),
        }
    }

    /// Takes what the buffers still hold, tracing having been turned off, and ends.
    ///
    /// # Errors
    /// As [`Drain::check`].
    pub(super) fn finish(mut self) -> Result<(), Error> {
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

/// Raises the limit of open files, if it is lower and may be higher. If it stays too low, opening a file says so.
fn allow_files(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) && limit.maximum.is_none_or(|most| most >= wanted) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}

fn joined(thread: JoinHandle<Result<(), Error>>) -> Result<(), Error> {
    thread.join().unwrap_or_else(|_| Err(Error::Died("the thread that moves trace pages has failed".to_owned())))
}

fn work(streams: &mut [Stream], pipe: &Pipe, meter: &Meter, sweep: Duration) -> Result<(), Error> {
    let mut swept = Instant::now();
    loop {
        let last = meter.stop.load(Ordering::Acquire);
        let take = match swept.elapsed() >= sweep {
            _ if last => Take::Rest,
            true => Take::Begun,
            false => Take::Full,
        };
        if take == Take::Begun {
            swept = Instant::now();
        }
        let mut moved = 0;
        for stream in streams.iter_mut() {
            let bytes = stream.take(take, pipe)?;
            meter.note_moved(bytes);
            stream.turn(bytes, meter)?;
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
    let waits = streams.iter().enumerate().filter_map(|(place, stream)| Some((place, stream.waits()?)));
    let (places, mut waits): (Vec<usize>, Vec<_>) = waits.unzip();
    let ready = poll(&mut waits, Some(&WAIT)).is_ok_and(|ready| ready > 0);
    let refused: Vec<bool> = waits.iter().map(|wait| wait.revents().contains(PollFlags::ERR)).collect();
    places.into_iter().zip(refused).filter(|(_, refused)| *refused).for_each(|(place, _)| streams[place].never_wait());
    ready
}
