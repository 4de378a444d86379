//! How do this computer and a machine that it emulates agree on what comes next, and on the time?
//!
//! By a page of memory that both map: here it is a file, there the second window of QEMU's device `ivshmem-plain`.
//!
//! ```text
//! word       written by
//! order      here         what the machine may do
//! phase      the machine  how far it is
//! asked      here         number of a question: what does your counter show?
//! stamp      the machine  the answer
//! answered   the machine  the question that `stamp` answers, written after it
//!
//! here         h0 --asked--.                .--answered--> h1
//! the machine               '--> g = stamp '                  g was read between h0 and h1, so g - h1 <= offset <= g - h0, but for APART_TICKS
//! ```
//! In QEMU's TCG a guest's time-stamp counter is the host's and a constant (`cpu_get_ticks` in softmmu/cpu-timers.c, QEMU
//! 7.2): every question bounds that constant from both sides, and all bounds hold together. Words are of 64 bits and
//! aligned, so none is ever seen half written; x86 keeps the order of stores, in TCG too.
//! Sources: docs/specs/ivshmem-spec.txt, QEMU 7.2; Documentation/PCI/sysfs-pci.rst, Linux 6.12.

use crate::machine::words::Words;
use lab::Error;
use lab::tracefs::tsc;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How much there is: a power of two.
pub(crate) const DEVICE_BYTES: u64 = 1 << 20;
/// Where a machine finds its PCI devices.
const DEVICES: &str = "/sys/bus/pci/devices";
/// Vendor and device, as the kernel prints them.
const IVSHMEM: (&str, &str) = ("0x1af4", "0x1110");
/// Questions in a row. Some thousand take milliseconds, and one of them meets neither side interrupted.
const QUESTIONS: u64 = 2_000;
/// How far readings of one moment may be apart. AMD's counter goes in steps of some 25 ticks, and a computer that is itself a guest has
/// processors that move between those of its host, whose counters agree to a few steps: answers that contradicted each other by 24 to
/// 75 ticks were measured on one (AMD EPYC, 2.45 GHz), while it was busy.
const APART_TICKS: i64 = 250;
/// How often all questions are asked before a counter is called no constant ahead.
const ROUNDS: u32 = 3;
/// A machine that gives no answer for so long has no CPU, or does something else.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a machine may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Measure = 1,
    /// Hand over what was measured.
    Finish = 2,
}

/// How far a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits for the order to measure.
    Ready = 1,
    Measured = 2,
}

/// Its words; those who speak with a machine that is not this program use the same.
#[derive(Clone, Copy)]
pub(crate) enum Word {
    Order,
    Phase,
    Asked,
    Stamp,
    Answered,
}

/// What the machine's counter is ahead of ours, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// At least.
    pub low: i64,
    /// At most.
    pub high: i64,
}

impl Bounds {
    /// What both say; `None` if they contradict each other.
    pub fn and(self, other: Self) -> Option<Self> {
        let both = Self { low: self.low.max(other.low), high: self.high.min(other.high) };
        (both.low <= both.high).then_some(both)
    }

    /// What is still possible once a question was answered by `stamp`, between `before` and `after`.
    fn told(self, before: u64, stamp: u64, after: u64) -> Option<Self> {
        let ahead = |here: u64| stamp.wrapping_sub(here) as i64;
        let low = ahead(after).saturating_sub(APART_TICKS);
        self.and(Self { low, high: ahead(before).saturating_add(APART_TICKS) })
    }

    /// One constant that explains both; where there is none, all that either allows.
    pub fn around(self, other: Self) -> Self {
        let hull = Self { low: self.low.min(other.low), high: self.high.max(other.high) };
        self.and(other).unwrap_or(hull)
    }

    /// The middle, and how far the true one may be from it.
    pub fn middle(self) -> (i64, u64) {
        let width = self.high.abs_diff(self.low);
        (self.low.wrapping_add_unsigned(width / 2), width.div_ceil(2))
    }
}

#[derive(Debug)]
pub(crate) struct Page(Words);

impl Page {
    /// The first page of a file of at least 4,096 bytes.
    ///
    /// # Errors
    /// If the kernel does not map it.
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
        Words::of(path, 0).map(Self)
    }

    /// The page of the machine that this program is in.
    ///
    /// # Errors
    /// If it has none.
    pub(crate) fn of_this_machine() -> Result<Self, Error> {
        let device = device(Path::new(DEVICES))?;
        let enable = device.join("enable");
        std::fs::write(&enable, "1").map_err(|error| Error::io(enable, error))?;
        Self::of(&device.join("resource2"))
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        self.0.word(word as usize)
    }

    pub(crate) fn order(&self, order: Order) {
        self.word(Word::Order).store(order as u64, Ordering::Release);
    }

    /// True once the machine is that far.
    pub(crate) fn has_reached(&self, phase: Phase) -> bool {
        self.word(Word::Phase).load(Ordering::Acquire) >= phase as u64
    }

    /// The machine: says how far it is, and answers questions until it may go on.
    pub(crate) fn attend(&self, phase: Phase, until: Order) {
        self.word(Word::Phase).store(phase as u64, Ordering::Release);
        let mut last = self.word(Word::Answered).load(Ordering::Relaxed);
        while self.word(Word::Order).load(Ordering::Acquire) < until as u64 {
            let asked = self.word(Word::Asked).load(Ordering::Acquire);
            if asked != last {
                self.word(Word::Stamp).store(tsc().unwrap_or(0), Ordering::Relaxed);
                self.word(Word::Answered).store(asked, Ordering::Release);
                last = asked;
            }
        }
    }

    /// Asks what the machine's counter shows, many times. An emulated counter is this one and a constant until QEMU sees the host's
    /// run backwards, by another processor's or where the host itself was suspended; it then takes another constant
    /// (`cpu_get_ticks_locked` of QEMU's softmmu/cpu-timers.c), and is asked anew.
    ///
    /// # Errors
    /// If it does not answer, or is no constant ahead however often it is asked anew.
    pub(crate) fn ask(&self) -> Result<Bounds, Error> {
        for _ in 0..ROUNDS {
            if let Some(bounds) = self.asked()? {
                return Ok(bounds);
            }
        }
        Err(Error::Malformed("the guest's counter is not this one and a constant".to_owned()))
    }

    /// What all questions of a round agree on; nothing where they do not.
    fn asked(&self) -> Result<Option<Bounds>, Error> {
        let mut bounds = Bounds { low: i64::MIN, high: i64::MAX };
        for _ in 0..QUESTIONS {
            let question = self.word(Word::Asked).load(Ordering::Relaxed).wrapping_add(1);
            let before = tsc().unwrap_or(0);
            self.word(Word::Asked).store(question, Ordering::Release);
            let since = Instant::now();
            while self.word(Word::Answered).load(Ordering::Acquire) != question {
                if since.elapsed() > PATIENCE {
                    return Err(Error::TimedOut("the guest does not report its counter".to_owned()));
                }
            }
            let after = tsc().unwrap_or(0);
            let stamp = self.word(Word::Stamp).load(Ordering::Relaxed);
            let Some(agreed) = bounds.told(before, stamp, after) else { return Ok(None) };
            bounds = agreed;
        }
        Ok(Some(bounds))
    }
}

/// The directory of the device that the page is behind.
fn device(devices: &Path) -> Result<PathBuf, Error> {
    let entries = std::fs::read_dir(devices).map_err(|error| Error::io(devices, error))?;
    let says = |place: &Path, file: &str, wanted: &str| {
        std::fs::read_to_string(place.join(file)).is_ok_and(|text| text.trim() == wanted)
    };
    let mut places = entries.flatten().map(|entry| entry.path());
    let found = places.find(|place| says(place, "vendor", IVSHMEM.0) && says(place, "device", IVSHMEM.1));
    found.ok_or_else(|| Error::Absent("the machine has no memory that it shares with its host".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::words::BYTES;

    fn pages() -> (tempfile::NamedTempFile, Page, Page) {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(BYTES as u64).unwrap();
        let [here, there] = [(); 2].map(|()| Page::of(file.path()).unwrap());
        (file, here, there)
    }

    #[test]
    fn a_counter_that_is_the_same_is_ahead_by_nothing_within_the_error() {
        if tsc().is_none() {
            return println!("skipped: page: this processor has no time-stamp counter");
        }
        let (_file, here, there) = pages();
        let bounds = std::thread::scope(|scope| {
            scope.spawn(|| {
                there.attend(Phase::Ready, Order::Measure);
                there.attend(Phase::Measured, Order::Finish);
            });
            let until = |phase| {
                while !here.has_reached(phase) {
                    std::thread::yield_now();
                }
            };
            until(Phase::Ready);
            assert!(!here.has_reached(Phase::Measured));
            let first = here.ask().unwrap();
            here.order(Order::Measure);
            until(Phase::Measured);
            let last = here.ask();
            here.order(Order::Finish);
            first.and(last.unwrap()).unwrap()
        });
        assert!(bounds.low <= 0 && 0 <= bounds.high, "{bounds:?}");
    }

    #[test]
    fn a_counter_that_takes_another_constant_is_asked_anew_and_one_that_never_rests_is_refused() {
        if tsc().is_none() {
            return println!("skipped: page: this processor has no time-stamp counter");
        }
        // The constant that a machine's counter is ahead by, at its n-th answer.
        let asked = |ahead: fn(u64) -> u64| {
            let (_file, here, there) = pages();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while there.word(Word::Order).load(Ordering::Acquire) == 0 {
                        let question = there.word(Word::Asked).load(Ordering::Acquire);
                        if question != there.word(Word::Answered).load(Ordering::Relaxed) {
                            let stamp = tsc().unwrap_or(0).wrapping_add(ahead(question));
                            there.word(Word::Stamp).store(stamp, Ordering::Relaxed);
                            there.word(Word::Answered).store(question, Ordering::Release);
                        }
                    }
                });
                let bounds = here.ask();
                here.order(Order::Measure);
                bounds
            })
        };
        let second = 1 << 40;
        let bounds = asked(|question| if question <= 100 { 0 } else { 1 << 40 }).unwrap();
        assert!(bounds.low <= second && second <= bounds.high, "{bounds:?}");
        let refused = asked(|question| if question % 2 == 0 { 0 } else { 1 << 40 }).unwrap_err();
        assert!(refused.to_string().contains("not this one and a constant"), "{refused}");
    }

    #[test]
    fn bounds_hold_together_or_contradict_each_other() {
        let [wide, low, high] = [(-10, 10), (-20, -5), (6, 9)].map(|(low, high)| Bounds { low, high });
        assert_eq!(wide.and(low), Some(Bounds { low: -10, high: -5 }));
        assert_eq!(low.and(high), None);
        assert_eq!((wide.around(low), low.around(high)), (Bounds { low: -10, high: -5 }, Bounds { low: -20, high: 9 }));
        assert_eq!((high.middle(), wide.middle()), ((7, 2), (0, 10)));
        assert_eq!(Bounds { low: i64::MIN, high: i64::MAX }.middle().1, 1 << 63);
    }

    #[test]
    fn readings_that_are_a_few_steps_apart_are_one_constant() {
        let any = Bounds { low: i64::MIN, high: i64::MAX };
        let first = any.told(1_000, 5_300, 1_600).unwrap();
        assert_eq!(first, Bounds { low: 3_450, high: 4_550 });
        // Measured: by its own readings alone the second contradicts the first by 75 ticks.
        assert_eq!(first.told(3_000, 6_625, 3_700), Some(Bounds { low: 3_450, high: 3_875 }));
        assert_eq!(first.told(3_000, 6_100, 3_700), None, "another constant");
    }

    #[test]
    fn the_device_is_known_by_its_numbers() {
        let devices = tempfile::tempdir().unwrap();
        for (place, vendor, number) in [("0000:00:01.0", "0x8086", "0x1110"), ("0000:00:04.0", "0x1af4", "0x1110")] {
            std::fs::create_dir(devices.path().join(place)).unwrap();
            std::fs::write(devices.path().join(place).join("vendor"), format!("{vendor}\n")).unwrap();
            std::fs::write(devices.path().join(place).join("device"), format!("{number}\n")).unwrap();
        }
        assert_eq!(device(devices.path()).unwrap(), devices.path().join("0000:00:04.0"));
        std::fs::remove_dir_all(devices.path().join("0000:00:04.0")).unwrap();
        assert!(device(devices.path()).unwrap_err().to_string().contains("shares with its host"));
    }
}
