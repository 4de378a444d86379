//! What is measured right now, for whoever waits: numbers in a page that both sides write as they go, and that the program reads.
//!
//! ```text
//! program   makes the page, and starts a launch with its path      reads it four times a second, where somebody looks
//! launch    opens it; the sides, which are forked from it, add to it: frames once a slice, gaps when there is one
//! ```
//! A side never waits for a reader, and a reader may see a setup half begun: it is shown, and never kept.

use super::Plan;
use base::channel::Setup;
use lab::Error;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BYTES: usize = 4096;

/// Words of the page, by their position.
#[derive(Clone, Copy)]
enum Word {
    /// Number of the setup in [`Plan::setups`], from 1; 0: something else is measured, or nothing.
    Setup,
    Frames,
    /// When that was counted, in ticks.
    At,
    Gaps,
    /// Their lengths together, in ticks.
    GapTicks,
}

/// The page, as this process has it mapped.
#[derive(Debug, Clone)]
pub struct Gauges {
    page: Arc<MmapRaw>,
}

/// The page, as the program has it that made it.
#[derive(Debug)]
pub struct Dial {
    gauges: Gauges,
    file: File,
    last: Reading,
}

/// What the page says at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Reading {
    setup: u64,
    frames: u64,
    at: u64,
    gaps: u64,
    gap_ticks: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// Position of the setup in [`Plan::setups`].
    pub setup: usize,
    /// Millions of frames per second since the last look; `None` at the first one.
    pub mpps: Option<f64>,
    /// Gaps of all sides until now.
    pub gaps: u64,
    pub gap_ns: u64,
}

impl Gauges {
    /// Those that a plan names; none if it names none, or they are gone.
    pub(super) fn of(plan: &Plan) -> Option<Gauges> {
        Gauges::open(plan.gauges.as_deref()?).ok()
    }

    fn open(path: &Path) -> Result<Gauges, Error> {
        let io = |error| Error::io(path, error);
        let file = File::options().read(true).write(true).open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() < BYTES as u64 {
            return Err(Error::Died("there is no page of gauges".to_owned()));
        }
        Gauges::over(&file)
    }

    fn over(file: &File) -> Result<Gauges, Error> {
        let page = MmapOptions::new().len(BYTES).map_raw(file);
        let page = page.map_err(|error| Error::refused("the page of gauges", error))?;
        Ok(Gauges { page: Arc::new(page) })
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        // SAFETY: the page is mapped as long as this lives, is aligned, has room for all words, and is used by atomic words alone.
        unsafe { AtomicU64::from_ptr(self.page.as_mut_ptr().cast::<u64>().add(word as usize)) }
    }

    pub(super) fn begin(&self, plan: &Plan, setup: &Setup) {
        let number = plan.setups.iter().position(|one| one == setup).map_or(0, |at| at as u64 + 1);
        for word in [Word::Frames, Word::At, Word::Gaps, Word::GapTicks] {
            self.word(word).store(0, Ordering::Relaxed);
        }
        self.word(Word::Setup).store(number, Ordering::Release);
    }

    /// No setup of the plan is measured any more.
    pub(super) fn rest(&self) {
        self.word(Word::Setup).store(0, Ordering::Release);
    }

    /// So many more frames arrived until now.
    #[inline]
    pub(super) fn arrived(&self, frames: u64, at: u64) {
        self.word(Word::Frames).fetch_add(frames, Ordering::Relaxed);
        self.word(Word::At).fetch_max(at, Ordering::Relaxed);
    }

    /// A side had no CPU for so long.
    pub(super) fn gap(&self, ticks: u64) {
        self.word(Word::Gaps).fetch_add(1, Ordering::Relaxed);
        self.word(Word::GapTicks).fetch_add(ticks, Ordering::Relaxed);
    }

    fn read(&self) -> Reading {
        let of = |word| self.word(word).load(Ordering::Acquire);
        Reading {
            setup: of(Word::Setup),
            frames: of(Word::Frames),
            at: of(Word::At),
            gaps: of(Word::Gaps),
            gap_ticks: of(Word::GapTicks),
        }
    }
}

impl Dial {
    /// A page with nothing on it.
    ///
    /// # Errors
    /// If the kernel gives none.
    pub fn new() -> Result<Dial, Error> {
        let refused = |error: rustix::io::Errno| Error::refused("the page of gauges", error);
        let file = File::from(memfd_create("kvmscope-gauges", MemfdFlags::CLOEXEC).map_err(refused)?);
        ftruncate(&file, BYTES as u64).map_err(refused)?;
        Ok(Dial { gauges: Gauges::over(&file)?, file, last: Reading::default() })
    }

    /// Where a process that this one starts finds it, as long as this one lives.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    /// What is measured now, with the rate since the last look; `None` while no setup is.
    pub fn look(&mut self, ticks_per_ns: f64) -> Option<Shown> {
        let (last, now) = (self.last, self.gauges.read());
        self.last = now;
        let setup = now.setup.checked_sub(1)? as usize;
        let ticks = now.at.saturating_sub(last.at);
        let is_same = last.setup == now.setup && last.at > 0 && ticks > 0 && now.frames >= last.frames;
        let mpps = is_same.then(|| (now.frames - last.frames) as f64 * 1e3 / (ticks as f64 / ticks_per_ns));
        Some(Shown { setup, mpps, gaps: now.gaps, gap_ns: (now.gap_ticks as f64 / ticks_per_ns) as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;

    fn setup(batch: u32) -> Setup {
        Setup { path: "ring".into(), window: "none".into(), size_bytes: 64, batch, policy: "poll".into(), vms: 2 }
    }

    #[test]
    fn a_reader_sees_what_another_mapping_of_the_page_says() {
        let mut dial = Dial::new().unwrap();
        assert_eq!(dial.look(2.0), None, "nothing is measured yet");
        let plan = Plan { setups: vec![setup(1), setup(32)], gauges: Some(dial.path()), ..plan() };
        let side = Gauges::of(&plan).unwrap();
        side.begin(&plan, &setup(32));
        side.arrived(1_000, 10_000);
        side.gap(50);
        let first = dial.look(2.0).unwrap();
        assert_eq!(first, Shown { setup: 1, mpps: None, gaps: 1, gap_ns: 25 });
        // 40,000 ticks of 0.5 ns.
        side.arrived(500, 50_000);
        assert_eq!(dial.look(2.0).unwrap().mpps, Some(25.0));
        // Another setup: its rate is not that of the one before.
        side.begin(&plan, &setup(1));
        side.arrived(10, 60_000);
        assert_eq!(dial.look(2.0).unwrap(), Shown { setup: 0, mpps: None, gaps: 0, gap_ns: 0 });
    }

    #[test]
    fn a_plan_without_a_page_has_no_gauges() {
        assert!(Gauges::of(&plan()).is_none());
        let gone = Plan { gauges: Some("/proc/self/fd/100000".into()), ..plan() };
        assert!(Gauges::of(&gone).is_none());
    }
}
