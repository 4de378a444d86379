//! Which pages does a flight recorder still have on disk?
//!
//! ```text
//! cpu0.0.raw     cpu0.512.raw     cpu0.1020.raw       named after the number of their first page
//! [ dropped ]    [ ended at 3 s ] [ is being filled
//! ```
//! A file is dropped once all of its events are older than what is to be kept. Where all files together are larger than they
//! may be, each CPU drops what ended before the same moment: none then tells of a time of which another one no longer does.

use super::drain::Meter;
use crate::Error;
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trace::tracedat::partial::segment_name;

/// Files that share what a CPU keeps: so much more than wanted lies on disk, as a share.
const FILES: u64 = 8;

/// How much a flight recorder keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Of what happened before its end.
    pub length: Duration,
    /// Bytes of pages on disk, of all CPUs; what one splice moves may come on top.
    pub most_bytes: u64,
}

#[derive(Debug)]
pub(super) struct Ring {
    keep: Keep,
    begun: Instant,
    most_in_file: u64,
    /// When files of all CPUs ended that are still there, since `begun`.
    ended: Mutex<BTreeSet<(Duration, u32)>>,
    /// What ended until then has to go, in nanoseconds since `begun`.
    too_old_ns: AtomicU64,
}

impl Ring {
    /// Room for the pages of so many CPUs.
    pub(super) fn new(keep: Keep, cpus: usize, page_bytes: usize) -> Self {
        let most_in_file = keep.most_bytes / (FILES * cpus.max(1) as u64);
        let most_in_file = most_in_file.max(page_bytes as u64);
        Self { keep, begun: Instant::now(), most_in_file, ended: Mutex::default(), too_old_ns: AtomicU64::new(0) }
    }

    fn ended(&self) -> MutexGuard<'_, BTreeSet<(Duration, u32)>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes after which a file has to end.
    pub(crate) fn most_in_file(&self) -> u64 {
        self.most_in_file
    }
}

/// The files of one CPU.
pub(super) struct Files {
    ring: Arc<Ring>,
    directory: PathBuf,
    cpu: u32,
    page_bytes: u64,
    /// Those that are full, the oldest one first.
    ended: VecDeque<Ended>,
    /// The one that is being filled: path, bytes, and since when.
    path: PathBuf,
    bytes: u64,
    since: Duration,
    /// Number of its first page.
    first_page: u64,
}

struct Ended {
    path: PathBuf,
    bytes: u64,
    at: Duration,
}

impl Files {
    /// Begins with an empty file.
    pub(super) fn begin(
        ring: &Arc<Ring>,
        directory: &Path,
        cpu: u32,
        page_bytes: usize,
    ) -> Result<(Self, File), Error> {
        let path = directory.join(segment_name(cpu, 0));
        let file = File::create(&path).map_err(|error| Error::io(&path, error))?;
        let files = Self {
            ring: Arc::clone(ring),
            directory: directory.to_owned(),
            cpu,
            page_bytes: page_bytes as u64,
            ended: VecDeque::new(),
            path,
            bytes: 0,
            since: ring.begun.elapsed(),
            first_page: 0,
        };
        Ok((files, file))
    }

    /// The file that is being filled.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes in that the file has grown by so many bytes, which `meter` has counted. Drops what is no longer wanted, and
    /// returns the file to go on with, if that is a new one.
    pub(super) fn grown(&mut self, bytes: u64, meter: &Meter) -> Result<Option<File>, Error> {
        self.turn(bytes, meter, self.ring.begun.elapsed())
    }

    fn turn(&mut self, bytes: u64, meter: &Meter, now: Duration) -> Result<Option<File>, Error> {
        self.bytes += bytes;
        let next = self.next(now)?;
        if meter.held() > self.ring.keep.most_bytes
            && let Some((oldest, _)) = self.ring.ended().first()
        {
            // Of whichever CPU: it drops the file when its turn comes.
            self.ring.too_old_ns.fetch_max(oldest.as_nanos() as u64, Ordering::Relaxed);
        }
        let too_old = Duration::from_nanos(self.ring.too_old_ns.load(Ordering::Relaxed));
        let too_old = too_old.max(now.saturating_sub(self.ring.keep.length));
        while self.ended.front().is_some_and(|oldest| oldest.at <= too_old)
            && let Some(oldest) = self.ended.pop_front()
        {
            self.ring.ended().remove(&(oldest.at, self.cpu));
            match std::fs::remove_file(&oldest.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::io(&oldest.path, error)),
                _ => meter.note_dropped(oldest.bytes),
            }
        }
        Ok(next)
    }

    /// Ends the file that is being filled, if it is old or large enough.
    fn next(&mut self, now: Duration) -> Result<Option<File>, Error> {
        let is_old = (now - self.since.min(now)) * FILES as u32 >= self.ring.keep.length;
        if self.bytes == 0 || !(is_old || self.bytes >= self.ring.most_in_file) {
            return Ok(None);
        }
        self.first_page += self.bytes / self.page_bytes;
        let path = self.directory.join(segment_name(self.cpu, self.first_page));
        let file = File::create_new(&path).map_err(|error| Error::io(&path, error))?;
        let path = std::mem::replace(&mut self.path, path);
        self.ended.push_back(Ended { path, bytes: self.bytes, at: now });
        self.ring.ended().insert((now, self.cpu));
        (self.bytes, self.since) = (0, now);
        Ok(Some(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    struct Disk {
        directory: tempfile::TempDir,
        meter: Meter,
        cpus: Vec<Files>,
    }

    impl Disk {
        fn new(length: Duration, most_bytes: u64, cpus: u32) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let ring = Arc::new(Ring::new(Keep { length, most_bytes }, cpus as usize, PAGE));
            let cpus = (0..cpus).map(|cpu| Files::begin(&ring, directory.path(), cpu, PAGE).unwrap().0).collect();
            Self { directory, meter: Meter::default(), cpus }
        }

        /// Writes pages of one CPU at a moment, as a stream does.
        fn write(&mut self, cpu: usize, pages: usize, at_ms: u64) {
            let bytes = (pages * PAGE) as u64;
            let mut file = File::options().append(true).open(self.cpus[cpu].path()).unwrap();
            std::io::Write::write_all(&mut file, &vec![1; pages * PAGE]).unwrap();
            self.meter.note_moved(bytes);
            self.cpus[cpu].turn(bytes, &self.meter, Duration::from_millis(at_ms)).unwrap();
        }

        fn bytes(&self) -> u64 {
            let files = std::fs::read_dir(self.directory.path()).unwrap();
            files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
        }
    }

    #[test]
    fn what_is_wanted_stays_and_little_more() {
        let mut disk = Disk::new(Duration::from_secs(1), u64::MAX, 2);
        for at_ms in (0..60_000).step_by(10) {
            disk.write(0, 1, at_ms);
            disk.write(1, 0, at_ms);
        }
        let pages = disk.bytes() / PAGE as u64;
        assert!((100..=127).contains(&pages), "a page in 10 ms, for 1 s and an eighth: {pages}");
        assert_eq!(disk.meter.held(), disk.bytes(), "what is on disk is known");
        assert_eq!(disk.cpus[1].ended.len(), 0, "a quiet CPU has one file");
        assert!(disk.cpus[0].ended.iter().all(|file| file.path.exists()));
    }

    #[test]
    fn too_much_is_dropped_from_all_cpus_alike() {
        let most = 400 * PAGE as u64;
        let mut disk = Disk::new(Duration::from_secs(1_000), most, 2);
        for at_ms in 0..10_000 {
            disk.write(0, 1, at_ms);
            if at_ms % 100 == 0 {
                disk.write(1, 1, at_ms);
            }
        }
        disk.write(1, 0, 10_000);
        assert!(disk.bytes() <= most && disk.bytes() > most / 2, "{}", disk.bytes());
        let oldest = |cpu: usize| disk.cpus[cpu].ended.front().map(|file| file.at);
        let too_old = Duration::from_nanos(disk.cpus[0].ring.too_old_ns.load(Ordering::Relaxed));
        assert!(too_old > Duration::from_secs(9));
        assert!([0, 1].iter().all(|cpu| oldest(*cpu).is_none_or(|at| at > too_old)));
    }
}
