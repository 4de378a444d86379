//! What is wanted of a record, taken out of it.
//!
//! ```text
//! EventFormat + Wanted --compile--> steps      record --fill--> [ mask | value | value | ... ]
//! ```
//! Compiled once for each event, and applied to every record without a lookup. Integers are loads of one shape
//! (`load.rs`), as long as enough bytes follow the record's start.

use crate::batch::{Batch, store};
use crate::format::{Endian, EventFormat, Field, Storage};
use crate::load::{Load, Window};
use crate::request::Wanted;

/// A format compiled for the fields somebody wants.
#[derive(Debug, Clone)]
pub struct Extract {
    endian: Endian,
    steps: Vec<Step>,
    /// The steps as loads, where all are integers.
    loads: Option<Vec<Load>>,
    /// The same step by step, where they are not.
    some_loads: Vec<Option<Load>>,
    /// Mask of an event that is long enough for all steps.
    mask: u64,
    /// Shortest record for which `mask` holds.
    needs_bytes: usize,
}

/// How one value is taken out of a record.
#[derive(Debug, Clone, Copy)]
enum Step {
    Absent,
    Integer { offset: usize, size: usize, signed: bool },
    Fixed { offset: usize, size: usize, chars: bool },
    Located { offset: usize, relative: bool, chars: bool },
}

impl Extract {
    /// Compiles `format` for `wanted`.
    pub fn compile(format: &EventFormat, wanted: &Wanted, endian: Endian) -> Self {
        let mut positions = wanted.positions(&format.event_type());
        // Values behind the last one that is there are not stored: the mask tells that they are absent.
        positions.truncate(positions.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
        let steps: Vec<Step> =
            positions.iter().map(|at| at.map_or(Step::Absent, |at| step(&format.fields[at]))).collect();
        let mask = positions.iter().enumerate().fold(0, |mask, (bit, at)| mask | u64::from(at.is_some()) << bit);
        let needs_bytes = positions.iter().flatten().map(|at| &format.fields[*at]).map(Field::end).max().unwrap_or(0);
        let some_loads: Vec<Option<Load>> = steps.iter().map(|step| step.load(endian)).collect();
        let loads = some_loads.iter().copied().collect();
        Self { endian, steps, loads, some_loads, mask, needs_bytes }
    }

    /// How many words an event takes: its mask and its values.
    #[inline]
    pub fn words(&self) -> usize {
        1 + self.steps.len()
    }

    /// Stores mask and wanted values of the record with which `window` begins into `words`, which are as many as
    /// [`Extract::words`] says; contents go into `bytes`.
    #[inline]
    pub fn fill<const BIG: bool>(
        &self,
        record: &[u8],
        window: Option<&Window>,
        words: &mut [u64],
        bytes: &mut Vec<u8>,
    ) {
        let whole = window.filter(|_| record.len() >= self.needs_bytes);
        let (Some(window), Some((mask, values))) = (whole, words.split_first_mut()) else {
            return self.step_by_step(record, words, bytes);
        };
        *mask = self.mask;
        match &self.loads {
            Some(loads) => values.iter_mut().zip(loads).for_each(|(value, load)| *value = load.value::<BIG>(window)),
            None => {
                for ((value, load), step) in values.iter_mut().zip(&self.some_loads).zip(&self.steps) {
                    *value = match load {
                        Some(load) => load.value::<BIG>(window),
                        None => self.value(step, record, bytes),
                    };
                }
            }
        }
    }

    /// Adds mask and wanted values of `record` to `batch`, as those of the event begun last.
    pub fn add(&self, record: &[u8], batch: &mut Batch) {
        let Batch { values, bytes, .. } = batch;
        self.step_by_step(record, values.room(self.words()), bytes);
        values.advance(self.words());
    }

    /// The same as [`Extract::fill`] for text, for a record that is too short, and for one with nothing behind it.
    fn step_by_step(&self, record: &[u8], words: &mut [u64], bytes: &mut Vec<u8>) {
        let fits = |step: &Step| match *step {
            Step::Absent => false,
            Step::Integer { offset, size, .. } | Step::Fixed { offset, size, .. } => offset + size <= record.len(),
            Step::Located { offset, .. } => offset + 4 <= record.len(),
        };
        let mask = self.steps.iter().enumerate().fold(0, |mask, (bit, step)| mask | u64::from(fits(step)) << bit);
        let all = std::iter::once(mask).chain(self.steps.iter().map(|step| self.value(step, record, bytes)));
        words.iter_mut().zip(all).for_each(|(word, value)| *word = value);
    }

    /// What `step` takes out of `record`; 0 or empty where the record is too short.
    fn value(&self, step: &Step, record: &[u8], bytes: &mut Vec<u8>) -> u64 {
        let (content, chars) = match *step {
            Step::Absent => return 0,
            Step::Integer { offset, size, signed } => {
                return record.get(offset..offset + size).map_or(0, |bytes| integer(self.endian, bytes, signed));
            }
            Step::Fixed { offset, size, chars } => (record.get(offset..offset + size), chars),
            Step::Located { offset, relative, chars } => {
                let place = record.get(offset..offset + 4).map_or(0, |bytes| self.endian.unsigned(bytes) as usize);
                let (from, length) = (place & 0xffff, place >> 16);
                let from = if relative { from + offset + 4 } else { from };
                (record.get(from..from + length), chars)
            }
        };
        let content = content.unwrap_or_default();
        store(bytes, if chars { up_to_nul(content) } else { content })
    }
}

impl Step {
    /// The same as a load; `None` for what is no integer, or lies too far from the record's start.
    fn load(self, endian: Endian) -> Option<Load> {
        match self {
            Step::Absent => Some(Load::ABSENT),
            Step::Integer { offset, size, signed } => {
                let bits = size as u8 * 8;
                Load::new(offset, if endian == Endian::Little { 0 } else { 64 - bits }, bits, signed)
            }
            Step::Fixed { .. } | Step::Located { .. } => None,
        }
    }
}

fn step(field: &Field) -> Step {
    let (offset, size) = (field.offset as usize, field.size as usize);
    match field.storage {
        Storage::Integer => Step::Integer { offset, size, signed: field.signed },
        Storage::Chars => Step::Fixed { offset, size, chars: true },
        Storage::Bytes => Step::Fixed { offset, size, chars: false },
        Storage::DataLoc(chars) => Step::Located { offset, relative: false, chars },
        Storage::RelLoc(chars) => Step::Located { offset, relative: true, chars },
    }
}

#[inline]
fn integer(endian: Endian, bytes: &[u8], signed: bool) -> u64 {
    let value = endian.unsigned(bytes);
    if signed {
        let unused = 64 - 8 * bytes.len().min(8) as u32;
        ((value << unused) as i64 >> unused) as u64
    } else {
        value
    }
}

fn up_to_nul(bytes: &[u8]) -> &[u8] {
    memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_the_order_asked_for_and_short_records_lose_only_what_they_lack() {
        let format = EventFormat::parse("sched", crate::format::tests::WAKING).unwrap();
        let field = |name: &str| vec![name.to_owned()];
        let wanted = Wanted {
            names: vec!["sched_waking".into()],
            fields: vec![field("pid"), field("absent"), field("comm"), field("note")],
        };
        let extract = Extract::compile(&format, &wanted, Endian::Little);
        let mut record = vec![0; 42];
        record[8..12].copy_from_slice(b"idle");
        record[24..28].copy_from_slice(&(-2i32).to_le_bytes());
        record[28..32].copy_from_slice(&(3u32 << 16 | 42).to_le_bytes());
        record.extend_from_slice(b"ab\0");
        let mut batch = Batch::default();
        extract.add(&record, &mut batch);
        assert_eq!((batch.values[0], batch.values[1] as i64), (0b1101, -2));
        assert_eq!((batch.content(batch.values[3]), batch.content(batch.values[4])), (&b"idle"[..], &b"ab"[..]));
        batch.clear(0);
        extract.add(&record[..26], &mut batch);
        assert_eq!(batch.values[0], 0b0100, "only comm fits");
    }
}
