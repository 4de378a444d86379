//! What is wanted of a record, taken out of it.
//!
//! ```text
//! EventFormat + Wanted --compile--> steps      record --add-->  [ mask | value | value | ... ]
//! ```
//! Compiled once for each event, and applied to every record without a lookup. Where all fields have fixed places, they
//! need not be taken out before they are asked for: see [`Extract::in_place`].

use crate::batch::{Batch, store};
use crate::column::Column;
use crate::format::{Endian, EventFormat, Field, Storage};
use crate::in_place::{Content, InPlace, up_to_nul};
use crate::load::Load;
use crate::request::Wanted;

/// A format compiled for the fields somebody wants.
#[derive(Debug, Clone)]
pub struct Extract {
    endian: Endian,
    steps: Vec<Step>,
}

/// How one value is taken out of a record.
#[derive(Debug, Clone, Copy)]
enum Step {
    Absent,
    Integer {
        offset: usize,
        size: usize,
        signed: bool,
    },
    Fixed {
        offset: usize,
        size: usize,
        chars: bool,
    },
    /// To the end of the record.
    Rest {
        offset: usize,
        chars: bool,
    },
    Located {
        offset: usize,
        relative: bool,
        chars: bool,
    },
}

impl Extract {
    /// Compiles `format` for `wanted`.
    pub fn compile(format: &EventFormat, wanted: &Wanted, endian: Endian) -> Self {
        let mut positions = wanted.positions(&format.event_type());
        // Values behind the last one that is there are not stored: the mask tells that they are absent.
        positions.truncate(positions.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
        let steps: Vec<Step> =
            positions.iter().map(|at| at.map_or(Step::Absent, |at| step(&format.fields[at]))).collect();
        Self { endian, steps }
    }

    /// The same for fields that stay in the record; `None` if one of them has no fixed place near its start, or is
    /// big-endian.
    pub fn in_place(&self) -> Option<InPlace> {
        let loads = self.steps.iter().map(Step::load).collect::<Option<Vec<Load>>>()?;
        let contents = self.steps.iter().map(Step::content).collect();
        if self.endian == Endian::Big {
            return None;
        }
        InPlace::new(&loads, contents, self.steps.iter().map(Step::end).max().unwrap_or(0))
    }

    /// Adds mask and wanted values of `record` to `batch`, as those of the event begun last.
    pub fn add(&self, record: &[u8], batch: &mut Batch) {
        self.store(record, &mut batch.values, &mut batch.bytes);
    }

    /// The same for the parts of a batch.
    #[inline(never)]
    pub(crate) fn store(&self, record: &[u8], values: &mut Column<u64>, bytes: &mut Vec<u8>) {
        let fits = |step: &Step| !matches!(step, Step::Absent) && step.end() <= record.len();
        let mask = self.steps.iter().enumerate().fold(0, |mask, (bit, step)| mask | u64::from(fits(step)) << bit);
        values.push(mask);
        self.steps.iter().for_each(|step| values.push(self.value(step, record, bytes)));
    }

    /// What `step` takes out of `record`; 0 or empty where the record is too short.
    fn value(&self, step: &Step, record: &[u8], bytes: &mut Vec<u8>) -> u64 {
        let (content, chars) = match *step {
            Step::Absent => return 0,
            Step::Integer { offset, size, signed } => {
                return record.get(offset..offset + size).map_or(0, |bytes| integer(self.endian, bytes, signed));
            }
            Step::Fixed { offset, size, chars } => (record.get(offset..offset + size), chars),
            Step::Rest { offset, chars } => (record.get(offset..), chars),
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
    /// Bytes that a record has at least if it has the field.
    fn end(&self) -> usize {
        match *self {
            Step::Absent => 0,
            Step::Integer { offset, size, .. } | Step::Fixed { offset, size, .. } => offset + size,
            Step::Rest { offset, .. } => offset,
            Step::Located { offset, .. } => offset + 4,
        }
    }

    /// Its integer, or the first bytes of its content, as a load; `None` for what has no fixed place near the record's
    /// start.
    fn load(&self) -> Option<Load> {
        match *self {
            Step::Absent => Some(Load::ABSENT),
            Step::Integer { offset, size, signed } => Load::new(offset, 0, size as u8 * 8, signed),
            Step::Fixed { offset, .. } => Load::new(offset, 0, 64, false),
            Step::Rest { .. } | Step::Located { .. } => None,
        }
    }

    fn content(&self) -> Option<Content> {
        match *self {
            Step::Fixed { offset, size, chars } => Some(Content { offset, size, chars }),
            _ => None,
        }
    }
}

fn step(field: &Field) -> Step {
    let (offset, size) = (field.offset as usize, field.size as usize);
    match field.storage {
        Storage::Integer => Step::Integer { offset, size, signed: field.signed },
        // `char buf[]` of ftrace:print has no size (kernel/trace/trace_entries.h, Linux 6.12).
        Storage::Chars | Storage::Bytes if size == 0 => Step::Rest { offset, chars: field.storage == Storage::Chars },
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

    #[test]
    fn a_text_without_a_size_is_the_rest_of_its_record() {
        const PRINT: &str = "name: print\nID: 5\nformat:\n\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\
            \tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n";
        let format = EventFormat::parse("ftrace", PRINT).unwrap();
        let wanted = Wanted { names: vec!["print".into()], fields: vec![vec!["buf".into()]] };
        let extract = Extract::compile(&format, &wanted, Endian::Little);
        assert!(extract.in_place().is_none());
        let mut batch = Batch::default();
        extract.add(&[&[0; 16][..], b"12 requests\n\0\0\0"].concat(), &mut batch);
        assert_eq!(batch.content(batch.values[1]), b"12 requests\n");
        batch.clear(0);
        extract.add(&[0; 12], &mut batch);
        assert_eq!(batch.values[0], 0, "not even its beginning is there");
    }
}
