//! What does each record of a perf event carry, and where?
//!
//! In:  a `struct perf_event_attr` and the ids of the event's counters.
//! Out: [`Attr`]: the sample's layout, and the place of the time and the id in every other record.
//! ```text
//! sample        IDENTIFIER IP TID TIME ADDR ID STREAM_ID CPU PERIOD READ CALLCHAIN RAW ...
//! other record  ... TID TIME ID STREAM_ID CPU IDENTIFIER         (`sample_id_all`, at the end of the record)
//! ```
//! Source: include/uapi/linux/perf_event.h, Linux 6.12 (`struct perf_event_attr`, `PERF_RECORD_SAMPLE`).

use crate::format::Endian;
use linux_perf_event_reader::{ReadFormat, SampleFormat};

/// Offsets in `struct perf_event_attr`.
const CONFIG: usize = 8;
const SAMPLE_TYPE: usize = 24;
const READ_FORMAT: usize = 32;
const FLAGS: usize = 40;
const CLOCK_ID: usize = 92;
/// Size of the first version of the structure.
const FIRST_VERSION: usize = 64;

/// Positions in the bit field at [`FLAGS`]. A big-endian compiler counts them from the most significant bit.
const SAMPLE_ID_ALL: u32 = 18;
const USE_CLOCKID: u32 = 25;

/// `PERF_FORMAT_LOST` (Linux 6.0), which the reader crate does not name.
const READ_LOST: u64 = 1 << 4;

/// `PERF_TYPE_TRACEPOINT`.
pub(super) const TRACEPOINT: u32 = 2;

/// One event as it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attr {
    /// `PERF_TYPE_...`.
    pub kind: u32,
    /// A tracepoint's id, or which counter.
    pub config: u64,
    pub sample: SampleFormat,
    /// The clock id, if one was chosen with `perf record -k`.
    pub(crate) clock_id: Option<u32>,
    /// Ids of its counters, one per CPU or thread.
    pub ids: Vec<u64>,
    read: u64,
    sample_id_all: bool,
}

/// What a sample carries, as far as we use it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sample<'r> {
    /// Instruction pointer.
    pub ip: Option<u64>,
    /// Process and thread.
    pub(crate) pid_tid: Option<(i32, i32)>,
    pub time: Option<u64>,
    /// CPU.
    pub cpu: Option<u32>,
    /// Events that the sample stands for.
    pub period: Option<u64>,
    /// The call chain's words in the file's byte order.
    pub callchain: Option<&'r [u8]>,
    /// The tracepoint's record.
    pub raw: Option<&'r [u8]>,
}

/// What every other record carries at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Trailer {
    pub time: Option<u64>,
    /// CPU.
    pub cpu: Option<u32>,
}

impl Attr {
    /// Parses an attribute and the ids behind it; `None` if it is shorter than its first version.
    pub(super) fn parse(attr: &[u8], ids: &[u8], endian: Endian) -> Option<Self> {
        if attr.len() < FIRST_VERSION {
            return None;
        }
        let word = |at: usize| endian.unsigned(&attr[at..at + 8]);
        let flag = |position: u32| match endian {
            Endian::Little => word(FLAGS) >> position & 1 == 1,
            Endian::Big => word(FLAGS) >> (63 - position) & 1 == 1,
        };
        let clock_id = attr.get(CLOCK_ID..CLOCK_ID + 4).map(|id| endian.unsigned(id) as u32);
        Some(Self {
            kind: endian.unsigned(&attr[..4]) as u32,
            config: word(CONFIG),
            sample: SampleFormat::from_bits_truncate(word(SAMPLE_TYPE)),
            clock_id: clock_id.filter(|_| flag(USE_CLOCKID)),
            ids: ids.chunks_exact(8).map(|id| endian.unsigned(id)).collect(),
            read: word(READ_FORMAT),
            sample_id_all: flag(SAMPLE_ID_ALL),
        })
    }

    /// Where a sample's id lies from its start.
    pub(super) fn id_in_sample(&self) -> Option<usize> {
        if self.sample.contains(SampleFormat::IDENTIFIER) {
            return Some(0);
        }
        let before = SampleFormat::IP | SampleFormat::TID | SampleFormat::TIME | SampleFormat::ADDR;
        self.sample.contains(SampleFormat::ID).then(|| words(self.sample & before))
    }

    /// Where the time lies from the start of a sample.
    pub(super) fn time_in_sample(&self) -> Option<usize> {
        let before = SampleFormat::IDENTIFIER | SampleFormat::IP | SampleFormat::TID;
        self.sample.contains(SampleFormat::TIME).then(|| words(self.sample & before))
    }

    /// Where the time lies from the start of a record of `length` bytes other than a sample.
    pub(super) fn time_in_other(&self, length: usize) -> Option<usize> {
        self.sample_id_all.then(|| self.place_at_end(SampleFormat::TIME, BEHIND_TIME, length))?
    }

    /// Where `wanted` lies in a record of `length` bytes that `and_behind` follow at most.
    fn place_at_end(&self, wanted: SampleFormat, and_behind: SampleFormat, length: usize) -> Option<usize> {
        let at = length.checked_sub(words(self.sample & (wanted | and_behind)))?;
        self.sample.contains(wanted).then_some(at)
    }

    /// Reads what a record other than a sample carries at its end.
    pub(super) fn trailer(&self, body: &[u8], endian: Endian) -> Trailer {
        if !self.sample_id_all {
            return Trailer::default();
        }
        let read = |at: usize| endian.unsigned(&body[at..(at + 8).min(body.len())]);
        let cpu = self.place_at_end(SampleFormat::CPU, SampleFormat::IDENTIFIER, body.len()).map(|at| match endian {
            Endian::Little => read(at) as u32,
            Endian::Big => (read(at) >> 32) as u32,
        });
        Trailer { time: self.time_in_other(body.len()).map(read), cpu }
    }

    /// Reads a sample; `None` if the record is too short for what the attribute says of it.
    pub(super) fn read_sample<'r>(&self, body: &'r [u8], endian: Endian) -> Option<Sample<'r>> {
        let mut cursor = Cursor { rest: body, endian };
        let has = |bit: SampleFormat| self.sample.contains(bit);
        let mut sample = Sample::default();
        if has(SampleFormat::IDENTIFIER) {
            cursor.word()?;
        }
        if has(SampleFormat::IP) {
            sample.ip = Some(cursor.word()?);
        }
        if has(SampleFormat::TID) {
            sample.pid_tid = Some((cursor.half()? as i32, cursor.half()? as i32));
        }
        if has(SampleFormat::TIME) {
            sample.time = Some(cursor.word()?);
        }
        for unused in [SampleFormat::ADDR, SampleFormat::ID, SampleFormat::STREAM_ID] {
            if has(unused) {
                cursor.word()?;
            }
        }
        if has(SampleFormat::CPU) {
            sample.cpu = Some(cursor.half()?);
            cursor.half()?;
        }
        if has(SampleFormat::PERIOD) {
            sample.period = Some(cursor.word()?);
        }
        if has(SampleFormat::READ) {
            self.skip_counts(&mut cursor)?;
        }
        if has(SampleFormat::CALLCHAIN) {
            let length = cursor.word()?.checked_mul(8)?;
            sample.callchain = Some(cursor.take(length)?);
        }
        if has(SampleFormat::RAW) {
            let length = cursor.half()?;
            sample.raw = Some(cursor.take(u64::from(length))?);
        }
        Some(sample)
    }

    /// Passes over the counter values of `PERF_SAMPLE_READ`.
    fn skip_counts(&self, cursor: &mut Cursor<'_>) -> Option<()> {
        let has = |bit: ReadFormat| u64::from(self.read & bit.bits() != 0);
        let times = has(ReadFormat::TOTAL_TIME_ENABLED) + has(ReadFormat::TOTAL_TIME_RUNNING);
        let each = 1 + has(ReadFormat::ID) + u64::from(self.read & READ_LOST != 0);
        let words = if has(ReadFormat::GROUP) == 1 { cursor.word()?.checked_mul(each)? } else { each };
        cursor.take(words.checked_add(times)?.checked_mul(8)?).map(|_| ())
    }
}

/// What may follow the time at the end of a record other than a sample.
const BEHIND_TIME: SampleFormat =
    SampleFormat::ID.union(SampleFormat::STREAM_ID).union(SampleFormat::CPU).union(SampleFormat::IDENTIFIER);

/// Every bit of a sample's layout that lies before the first of variable size stands for 8 bytes.
fn words(fields: SampleFormat) -> usize {
    8 * fields.bits().count_ones() as usize
}

struct Cursor<'r> {
    rest: &'r [u8],
    endian: Endian,
}

impl<'r> Cursor<'r> {
    fn take(&mut self, length: u64) -> Option<&'r [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| self.endian.unsigned(bytes))
    }

    fn half(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| self.endian.unsigned(bytes) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attribute with this `sample_type` and `read_format`.
    fn attr(sample: SampleFormat, read: u64) -> Attr {
        Attr { kind: TRACEPOINT, config: 1, sample, clock_id: None, ids: Vec::new(), read, sample_id_all: true }
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn counter_values_before_the_raw_record_are_passed_over() {
        let sample = SampleFormat::READ | SampleFormat::CALLCHAIN | SampleFormat::RAW;
        let times_id_lost = 1 | 2 | 4 | 16;
        let behind = [2, 0xaa, 0xbb, 0x6677_0000_0004];
        for (read, counts) in [
            (times_id_lost, &[7, 1, 1, 5, 0][..]),
            (0, &[7]),
            (8 | times_id_lost, &[2, 1, 1, 7, 5, 0, 8, 6, 0]),
            (8, &[3, 7, 8, 9]),
        ] {
            let body = words(&[counts, &behind].concat());
            let seen = attr(sample, read).read_sample(&body, Endian::Little).unwrap();
            assert_eq!(seen.callchain, Some(&words(&[0xaa, 0xbb])[..]));
            assert_eq!(seen.raw, Some(&[0x77, 0x66, 0, 0][..]));
            for length in 0..body.len() {
                assert_eq!(attr(sample, read).read_sample(&body[..length], Endian::Little), None);
            }
        }
    }

    #[test]
    fn lengths_that_overflow_are_refused() {
        let chain = attr(SampleFormat::CALLCHAIN, 0);
        assert_eq!(chain.read_sample(&words(&[u64::MAX, 1]), Endian::Little), None);
        assert_eq!(chain.read_sample(&words(&[1 << 61, 1]), Endian::Little), None);
        let group = attr(SampleFormat::READ, 8 | 4);
        assert_eq!(group.read_sample(&words(&[u64::MAX / 2, 1]), Endian::Little), None);
    }

    #[test]
    fn time_and_cpu_stand_at_the_end_of_other_records() {
        let format = SampleFormat::TID | SampleFormat::TIME | SampleFormat::ID | SampleFormat::CPU;
        let attr = attr(format, 0);
        let body = words(&[0xdead, 1 << 32 | 2, 1000, 5, 3]);
        assert_eq!(attr.trailer(&body, Endian::Little), Trailer { time: Some(1000), cpu: Some(3) });
        assert_eq!(attr.trailer(&body[..16], Endian::Little), Trailer { time: None, cpu: Some(2) });
    }
}
