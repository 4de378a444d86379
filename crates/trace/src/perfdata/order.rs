//! Records in the order in which they happened.
//!
//! `perf record` writes what it finds in each CPU's buffer, one buffer after the other, then a FINISHED_ROUND record:
//! ```text
//! round 1  cpu0 cpu1 cpu2 | round 2  cpu0 cpu1 cpu2 | round 3 ...
//!          at the end of round 2, all up to the latest time of round 1 can go: nothing older can come any more
//! ```
//! (tools/perf/util/ordered-events.c, Linux 6.12.) Records with equal times keep their order. What is inside zstd
//! records is unpacked on the way.

use super::attr::Attr;
use super::records::{HEADER, Record, RecordKind, Records, split_record};
use crate::format::Endian;
use base::{Problem, Problems};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::VecDeque;
use zstd::stream::raw::{Decoder, Operation};

/// Records held back for sorting; a file without FINISHED_ROUND must not fill the memory. perf's own rounds have at
/// most a buffer (512 KB by default) per CPU, some ten thousand records.
const MOST_HELD: usize = 1 << 20;

/// Unpacked bytes held back for sorting.
const MOST_HELD_BYTES: usize = 256 << 20;

/// zstd packs records of a trace 5 to 50 times smaller. A file that unpacks to more than this many times its size, beyond
/// [`UNPACKED_FREELY`], was made to fill a memory or a day.
const MOST_UNPACKED_PER_BYTE: u64 = 1_000;

/// Unpacked bytes that are not held against what they were packed to.
const UNPACKED_FREELY: u64 = 64 << 20;

/// Times from here on, 292 years, are damage whatever the clock.
const LAST_NS: u64 = 1 << 63;

/// Times so long after the first one, 52 days, are damage.
const LONGEST_NS: u64 = 1 << 52;

/// Output of one step of zstd: its largest block.
const UNPACKED_STEP: usize = 128 << 10;

/// Which attribute describes a record?
#[derive(Debug)]
pub(super) struct Attrs {
    /// The opened events.
    pub list: Vec<Attr>,
    by_id: FxHashMap<u64, usize>,
}

impl Attrs {
    /// Makes the ids of `list` known.
    pub(super) fn new(list: Vec<Attr>) -> Self {
        let ids = list.iter().enumerate().flat_map(|(index, attr)| attr.ids.iter().map(move |id| (*id, index)));
        let by_id = ids.collect();
        Self { list, by_id }
    }

    /// The position of the attribute of a sample. perf demands that the id stands at the same place in all samples.
    pub(super) fn of_sample(&self, body: &[u8], endian: Endian) -> Option<usize> {
        if self.list.len() == 1 {
            return Some(0);
        }
        let at = self.list[0].id_in_sample()?;
        let id = endian.unsigned(body.get(at..at + 8)?);
        self.by_id.get(&id).copied()
    }

    pub(super) fn time(&self, kind: RecordKind, body: &[u8], endian: Endian) -> Option<u64> {
        if kind == RecordKind::SAMPLE {
            let at = self.list[self.of_sample(body, endian)?].time_in_sample()?;
            return body.get(at..at + 8).map(|time| endian.unsigned(time));
        }
        // The layout behind other records is the same for all attributes.
        if kind.is_kernels() { self.list[0].trailer(body, endian).time } else { None }
    }
}

#[derive(Debug)]
pub(super) struct Timed<'t> {
    /// When; the time of its neighbour where it has none of its own.
    pub time: u64,
    pub kind: RecordKind,
    pub misc: u16,
    /// What follows its header.
    pub body: Cow<'t, [u8]>,
    /// Where it, or the zstd record that held it, starts in the file.
    pub offset: u64,
}

/// Records of a file in time order.
pub(super) struct Ordered<'t> {
    records: Records<'t>,
    attrs: &'t Attrs,
    endian: Endian,
    unpacker: Option<Decoder<'static>>,
    /// What is left to unpack of the record being unpacked, and where it starts.
    packed: Option<(&'t [u8], u64)>,
    /// Bytes packed and unpacked so far.
    packed_bytes: u64,
    unpacked_bytes: u64,
    /// Where one step of the unpacker writes.
    step: Vec<u8>,
    /// Unpacked bytes that are not yet a whole record.
    unpacked: Vec<u8>,
    held: Vec<Timed<'t>>,
    held_bytes: usize,
    ready: VecDeque<Timed<'t>>,
    /// Latest time of the round before.
    safe_until: u64,
    latest: u64,
    /// Times from here on cannot be.
    last_possible: u64,
    ended: bool,
}

impl<'t> Ordered<'t> {
    /// Orders `records`.
    pub(super) fn new(records: Records<'t>, attrs: &'t Attrs, endian: Endian) -> Self {
        Self {
            records,
            attrs,
            endian,
            unpacker: None,
            packed: None,
            packed_bytes: 0,
            unpacked_bytes: 0,
            step: Vec::new(),
            unpacked: Vec::new(),
            held: Vec::new(),
            held_bytes: 0,
            ready: VecDeque::new(),
            safe_until: 0,
            latest: 0,
            last_possible: LAST_NS,
            ended: false,
        }
    }

    /// The file's name, for messages.
    pub(super) fn file(&self) -> &str {
        self.records.file()
    }

    /// The next record; damage on the way to it goes into `problems`.
    pub(super) fn next(&mut self, problems: &mut Problems) -> Option<Timed<'t>> {
        while self.ready.is_empty() && !self.ended {
            match self.packed.take() {
                Some((packed, offset)) => self.unpack(packed, offset, problems),
                None => match self.records.next(problems) {
                    Some(record) => self.take_in(record),
                    None => {
                        self.ended = true;
                        self.release(u64::MAX);
                    }
                },
            }
            if self.held.len() > MOST_HELD || self.held_bytes > MOST_HELD_BYTES {
                self.held.sort_by_key(|record| record.time);
                let middle = self.held[self.held.len() / 2].time;
                self.release(middle);
            }
        }
        self.ready.pop_front()
    }

    fn take_in(&mut self, record: Record<'t>) {
        match record.kind {
            RecordKind::FINISHED_ROUND => self.end_round(),
            RecordKind::COMPRESSED => self.packed = Some((record.body, record.offset)),
            RecordKind::COMPRESSED2 => {
                let (length, packed) = record.body.split_at(record.body.len().min(8));
                let length = usize::try_from(self.endian.unsigned(length)).unwrap_or(usize::MAX);
                self.packed = Some((&packed[..length.min(packed.len())], record.offset));
            }
            kind => self.hold(kind, record.misc, Cow::Borrowed(record.body), record.offset),
        }
    }

    fn hold(&mut self, kind: RecordKind, misc: u16, body: Cow<'t, [u8]>, offset: u64) {
        let own = self.attrs.time(kind, &body, self.endian);
        // A time that cannot be would push all others out of their order.
        let time = own.filter(|time| *time < self.last_possible).unwrap_or(self.latest);
        if time > 0 && self.last_possible == LAST_NS {
            self.last_possible = time.saturating_add(LONGEST_NS).min(LAST_NS - 1);
        }
        self.latest = self.latest.max(time);
        if let Cow::Owned(bytes) = &body {
            self.held_bytes += bytes.len();
        }
        self.held.push(Timed { time, kind, misc, body, offset });
    }

    /// Lets go what is not younger than the latest record of the round before.
    fn end_round(&mut self) {
        self.release(self.safe_until);
        self.safe_until = self.latest;
    }

    fn release(&mut self, until: u64) {
        self.held.sort_by_key(|record| record.time);
        let safe = self.held.partition_point(|record| record.time <= until);
        self.ready.extend(self.held.drain(..safe));
        let owned = |record: &Timed<'_>| if let Cow::Owned(bytes) = &record.body { bytes.len() } else { 0 };
        self.held_bytes = self.held.iter().map(owned).sum();
    }

    /// Unpacks one step of the zstd stream and holds the records that became whole; what is left comes next, so that
    /// records go as they come.
    fn unpack(&mut self, packed: &'t [u8], offset: u64, problems: &mut Problems) {
        let damage = match self.unpack_step(packed, offset) {
            Ok(left) => {
                self.packed = left.map(|left| (left, offset));
                return;
            }
            Err(damage) => damage,
        };
        problems.note(Problem::at(
            self.file(),
            offset,
            "a continuation of the zstd stream of records",
            damage,
            packed.len() as u64,
            "compressed records of perf.data cannot be unpacked",
        ));
        self.unpacked.clear();
    }

    /// What is left to unpack; `None` if more has to come first.
    fn unpack_step(&mut self, packed: &'t [u8], offset: u64) -> Result<Option<&'t [u8]>, String> {
        let allowed = self.packed_bytes.saturating_mul(MOST_UNPACKED_PER_BYTE).saturating_add(UNPACKED_FREELY);
        if self.unpacked_bytes > allowed {
            return Err(format!("more than {MOST_UNPACKED_PER_BYTE} times as much as was packed"));
        }
        self.step.resize(UNPACKED_STEP, 0);
        let unpacker = match &mut self.unpacker {
            Some(unpacker) => unpacker,
            None => self.unpacker.insert(Decoder::new().map_err(|error| error.to_string())?),
        };
        let step = unpacker.run_on_buffers(packed, &mut self.step).map_err(|error| error.to_string())?;
        self.packed_bytes += step.bytes_read as u64;
        self.unpacked_bytes += step.bytes_written as u64;
        self.unpacked.extend_from_slice(&self.step[..step.bytes_written]);
        if !self.hold_unpacked(offset) {
            return Err("a record whose size is below that of its header".to_owned());
        }
        let left = &packed[step.bytes_read..];
        let is_done =
            (left.is_empty() && step.bytes_written < UNPACKED_STEP) || step.bytes_read + step.bytes_written == 0;
        Ok((!is_done).then_some(left))
    }

    /// Holds the whole records among the unpacked bytes; false if there is one of impossible size.
    fn hold_unpacked(&mut self, offset: u64) -> bool {
        let unpacked = std::mem::take(&mut self.unpacked);
        let mut rest = &unpacked[..];
        while let Some((kind, misc, body)) = split_record(rest, self.endian) {
            self.hold(kind, misc, Cow::Owned(body.to_vec()), offset);
            rest = &rest[HEADER + body.len()..];
        }
        self.unpacked = rest.to_vec();
        // A record that is not yet whole is shorter than the largest possible one.
        rest.len() <= usize::from(u16::MAX) && rest.get(6..8).is_none_or(|size| self.endian.unsigned(size) >= 8)
    }
}
