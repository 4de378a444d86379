//! How large is a guest's memory in a file, and how long do saving and waking take?
//!
//! ```text
//! size  pages that are not zero x 4,096 - 1 MiB .. x 4,104 + pages of zeros x 9 + 1 MiB: devices, and what firmware leaves
//! save  size / write .. guests x size / min(write, copy) + start          wake  size / read .. start x turns + guests x size / min(slowest read, copy x CPUs)
//! ```
//! All guests share one disk: the first may be done as if it had been alone, the last one waits for all the others.

use super::memory::{Memory, PAGE_MEMORY_BYTES};
use base::hibernation::ABOUT;
use base::prediction::{Prediction, SCHEMA, Said};

/// State of devices and ROMs of a q35 without graphics, and what firmware leaves in memory: 0.08 to 0.7 MB were seen (QEMU 7.2 and 10.0).
const DEVICES_BYTES: f64 = 1_048_576.0;
/// What one core of QEMU saves or loads in a second at least, a third of what was seen where memory was the disk: 540 MB were saved at 420 to
/// 560 MB/s and loaded, with the start, at 310 to 760 MB/s (three runs of `lab migrate --to-file --ram 1024M --hot 512M --rate 40000pages/s
/// --cache /dev/shm/kvmscope`, QEMU 7.2 by `exec:`, 2.25 GHz).
pub(crate) const COPY_BYTES_PER_S: f64 = 140e6;
/// A QEMU that starts while others do may take so many times as long: it reads programs and firmware from the same disk.
const START_SPREAD: f64 = 3.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub memory: Memory,
    /// That are saved and woken at once.
    pub guests: u32,
    /// What the file system writes, until it is durable.
    pub write_bytes_per_s: f64,
    pub read_bytes_per_s: f64,
    pub slowest_read_bytes_per_s: f64,
    /// What a QEMU takes to start.
    pub start_s: f64,
    pub cpus: u32,
}

/// At least, at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

/// What the model says of each guest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hibernated {
    pub saved_bytes: Range,
    /// Until that is durable.
    pub(crate) save_s: Range,
    /// Until it answers.
    pub(crate) wake_s: Range,
}

impl Hibernated {
    pub fn of(asked: &Asked) -> Self {
        let filled_bytes = asked.memory.pages * (1.0 - asked.memory.zero_share) * PAGE_MEMORY_BYTES;
        let saved_bytes = Range {
            // A file with a place for each page has no headers.
            low: (filled_bytes - DEVICES_BYTES).max(0.0),
            high: asked.memory.sent_bytes() + DEVICES_BYTES,
        };
        let guests = f64::from(asked.guests.max(1));
        let cpus = f64::from(asked.cpus.max(1));
        let turns = (guests / cpus).ceil();
        let all =
            |bytes_per_s: f64| guests * saved_bytes.high / bytes_per_s + turns * saved_bytes.high / COPY_BYTES_PER_S;
        let start_s = asked.start_s * turns * START_SPREAD;
        Self {
            saved_bytes,
            save_s: Range {
                low: saved_bytes.low / asked.write_bytes_per_s,
                high: all(asked.write_bytes_per_s) + start_s,
            },
            wake_s: Range {
                low: saved_bytes.low / asked.read_bytes_per_s,
                high: all(asked.slowest_read_bytes_per_s) + start_s,
            },
        }
    }
}

impl Hibernated {
    /// As it is kept before guests are saved, with what the model was given.
    pub fn kept(&self, asked: &Asked) -> Prediction {
        let rows = [
            ("saved", self.saved_bytes, 1.0, "bytes"),
            ("save", self.save_s, 1e9, "ns"),
            ("wake", self.wake_s, 1e9, "ns"),
        ];
        let said = rows.into_iter().map(|(what, Range { low, high }, scale, unit)| Said {
            what: what.to_owned(),
            low: Some(low * scale),
            likely: Some(f64::midpoint(low, high) * scale),
            high: Some(high * scale),
            // The size over the speed of the disk, and nothing else.
            naive: Some(low * scale),
            unit: unit.to_owned(),
        });
        let given = [
            ("pages", asked.memory.pages),
            ("zero share", asked.memory.zero_share),
            ("guests", asked.guests.into()),
            ("written, bytes per second", asked.write_bytes_per_s),
            ("read, bytes per second", asked.read_bytes_per_s),
            ("read at worst, bytes per second", asked.slowest_read_bytes_per_s),
            ("start, s", asked.start_s),
            ("CPUs", asked.cpus.into()),
        ];
        Prediction {
            schema: SCHEMA.to_owned(),
            about: ABOUT.to_owned(),
            given: given.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect(),
            said: said.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(guests: u32) -> Asked {
        Asked {
            memory: Memory { pages: 1_000_000.0, zero_share: 0.75 },
            guests,
            write_bytes_per_s: 512e6,
            read_bytes_per_s: 1_024e6,
            slowest_read_bytes_per_s: 700e6,
            start_s: 0.1,
            cpus: 2,
        }
    }

    #[test]
    fn zeros_take_nothing_and_one_guest_reads_at_the_speed_of_the_disk_at_best() {
        let one = Hibernated::of(&asked(1));
        assert_eq!(one.saved_bytes.low, 1_024e6 - 1_048_576.0);
        assert_eq!(one.saved_bytes.high, 250_000.0 * 4_104.0 + 750_000.0 * 9.0 + 1_048_576.0);
        assert_eq!((one.save_s.low, one.wake_s.low), (one.saved_bytes.low / 512e6, one.saved_bytes.low / 1_024e6));
        let high_s = one.saved_bytes.high / 700e6 + one.saved_bytes.high / 140e6 + 0.3;
        assert!((one.wake_s.high - high_s).abs() < 1e-9, "{}", one.wake_s.high);
    }

    #[test]
    fn guests_share_the_disk_and_take_turns_on_the_cpus() {
        let (one, two, four) = (Hibernated::of(&asked(1)), Hibernated::of(&asked(2)), Hibernated::of(&asked(4)));
        assert_eq!(one.wake_s.low, four.wake_s.low, "the first may be done as if it were alone");
        let reading_s = one.saved_bytes.high / 700e6;
        assert!((two.wake_s.high - one.wake_s.high - reading_s).abs() < 1e-9, "each has a CPU of its own");
        assert!((four.wake_s.high - 2.0 * two.wake_s.high).abs() < 1e-9);
    }
}
