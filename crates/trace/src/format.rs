//! Where do the fields of a kernel trace record lie?
//!
//! The kernel describes each event in a `format` file below tracefs (`f_show` in kernel/trace/trace_events.c, Linux
//! 6.12). trace.dat and perf.data carry these texts, and a live recorder reads them:
//! ```text
//! name: sched_waking
//! ID: 318
//! format:
//!     field:unsigned short common_type;   offset:0;   size:2; signed:0;
//!     ...
//!     field:char comm[16];                offset:8;   size:16; signed:0;
//! ```
//! A text is parsed once, compiled for the wanted fields, and then applied to every record without a lookup.

use crate::batch::{Batch, store};
use crate::facts::{EventType, FieldKind, FieldType};
use crate::load::{Load, Window};
use crate::request::Wanted;

/// One event's format text, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFormat {
    /// Group, such as `kvm`.
    pub system: String,
    /// Name, such as `kvm_exit`.
    pub name: String,
    /// The number that stands in each record's first two bytes.
    pub id: u32,
    /// Fields of every event: `common_type`, `common_pid`, ...
    pub common: Vec<Field>,
    /// The event's own fields.
    pub fields: Vec<Field>,
    /// The line after `print fmt:`. Never used to decode; `sched_switch` names its state mask in it.
    pub print_fmt: String,
}

/// One field's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its C type as printed.
    pub type_text: String,
    /// Bytes from the start of the record.
    pub offset: u32,
    /// Bytes it takes there.
    pub size: u32,
    /// True if its integer is signed.
    pub signed: bool,
    /// What lies there.
    pub storage: Storage,
}

/// What lies at a field's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// An integer of 1, 2, 4 or 8 bytes.
    Integer,
    /// Characters up to NUL or the field's end.
    Chars,
    /// Anything else of fixed size.
    Bytes,
    /// `__data_loc`: a u32, length << 16 | offset from the record's start. True: characters.
    DataLoc(bool),
    /// `__rel_loc`: the same, the offset counted from the end of the field.
    RelLoc(bool),
}

/// Byte order of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// The number in two bytes.
    #[inline]
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Endian::Little => u16::from_le_bytes(bytes),
            Endian::Big => u16::from_be_bytes(bytes),
        }
    }

    /// The number in four bytes.
    #[inline]
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The unsigned integer in `bytes` (at most 8 of them).
    #[inline]
    pub fn unsigned(self, bytes: &[u8]) -> u64 {
        let mut word = [0; 8];
        let length = bytes.len().min(8);
        match self {
            Endian::Little => {
                word[..length].copy_from_slice(&bytes[..length]);
                u64::from_le_bytes(word)
            }
            Endian::Big => {
                word[8 - length..].copy_from_slice(&bytes[..length]);
                u64::from_be_bytes(word)
            }
        }
    }
}

impl EventFormat {
    /// Parses one format text; `None` if it has no name, no id or no field.
    pub fn parse(system: &str, text: &str) -> Option<Self> {
        let mut name = None;
        let mut id = None;
        let (mut common, mut fields) = (Vec::new(), Vec::new());
        let mut print_fmt = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(rest) = line.strip_prefix("name:") {
                name = Some(rest.trim().to_owned());
            } else if let Some(rest) = line.strip_prefix("ID:") {
                id = rest.trim().parse().ok();
            } else if let Some(rest) = line.strip_prefix("print fmt:") {
                print_fmt = rest.trim().to_owned();
            } else if let Some(field) = line.strip_prefix("field:").and_then(Field::parse) {
                if field.name.starts_with("common_") { common.push(field) } else { fields.push(field) }
            }
        }
        let format = Self { system: system.to_owned(), name: name?, id: id?, common, fields, print_fmt };
        (!format.common.is_empty() || !format.fields.is_empty()).then_some(format)
    }

    /// The common field called `name`.
    pub fn common(&self, name: &str) -> Option<&Field> {
        self.common.iter().find(|field| field.name == name)
    }

    /// The format as readers of every kind of trace see it.
    pub fn event_type(&self) -> EventType {
        let fields = self
            .fields
            .iter()
            .map(|field| FieldType { name: field.name.clone(), kind: field.kind(), labels: Vec::new() })
            .collect();
        EventType { system: self.system.clone(), name: self.name.clone(), fields }
    }
}

impl Field {
    /// Parses what follows `field:` in a format text.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let declaration = parts.next()?;
        let (mut offset, mut size, mut signed) = (None, None, false);
        for part in parts {
            match part.split_once(':') {
                Some(("offset", value)) => offset = value.trim().parse().ok(),
                Some(("size", value)) => size = value.trim().parse().ok(),
                Some(("signed", value)) => signed = value.trim() == "1",
                _ => {}
            }
        }
        let (offset, size) = (offset?, size?);
        let brackets = declaration.find('[');
        // `char comm[16]` has its brackets behind the name, `__data_loc char[] name` before it.
        let head = match brackets {
            Some(at) if declaration[at..].trim_end().ends_with(']') => &declaration[..at],
            _ => declaration,
        };
        let split = head.trim_end().rfind([' ', '*', '\t'])?;
        let (type_text, name) = (head[..=split].trim(), head[split + 1..].trim());
        if name.is_empty() {
            return None;
        }
        let of_chars = is_char(type_text);
        let storage = if type_text.starts_with("__data_loc") {
            Storage::DataLoc(of_chars)
        } else if type_text.starts_with("__rel_loc") {
            Storage::RelLoc(of_chars)
        } else if brackets.is_some() {
            if of_chars { Storage::Chars } else { Storage::Bytes }
        } else if matches!(size, 1 | 2 | 4 | 8) {
            Storage::Integer
        } else {
            Storage::Bytes
        };
        Some(Self { name: name.to_owned(), type_text: type_text.to_owned(), offset, size, signed, storage })
    }

    /// How its value is to be read.
    pub fn kind(&self) -> FieldKind {
        match self.storage {
            Storage::Integer if self.signed => FieldKind::Signed,
            Storage::Integer => FieldKind::Unsigned,
            Storage::Chars | Storage::DataLoc(true) | Storage::RelLoc(true) => FieldKind::Text,
            Storage::Bytes | Storage::DataLoc(false) | Storage::RelLoc(false) => FieldKind::Bytes,
        }
    }
}

/// True for `char` as an element type, with its qualifiers; `unsigned char` is a byte.
fn is_char(type_text: &str) -> bool {
    let element = type_text.trim_start_matches("__data_loc").trim_start_matches("__rel_loc");
    let element = element.trim().trim_end_matches("[]").trim();
    element == "char" || element == "const char"
}

/// A format compiled for the fields somebody wants.
#[derive(Debug, Clone)]
pub struct Extract {
    endian: Endian,
    steps: Vec<Step>,
    /// The steps as loads, where all are integers.
    loads: Option<Vec<Load>>,
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
        let loads = steps.iter().map(|step| step.load(endian)).collect();
        Self { endian, steps, loads, mask, needs_bytes }
    }

    /// Adds mask and wanted values of the record with which `window` begins to `batch`, as those of the event begun last.
    #[inline]
    pub fn values<const BIG: bool>(&self, record: &[u8], window: Option<&Window>, batch: &mut Batch) {
        match (&self.loads, window) {
            (Some(loads), Some(window)) if record.len() >= self.needs_bytes => {
                batch.values.push(self.mask);
                batch.values.extend(loads.iter().map(|load| load.value::<BIG>(window)));
            }
            _ => self.step_by_step(record, batch),
        }
    }

    /// The same for text, for a record that is too short, and for one with nothing behind it.
    pub fn step_by_step(&self, record: &[u8], batch: &mut Batch) {
        let fits = |step: &Step| match *step {
            Step::Absent => false,
            Step::Integer { offset, size, .. } | Step::Fixed { offset, size, .. } => offset + size <= record.len(),
            Step::Located { offset, .. } => offset + 4 <= record.len(),
        };
        let mask = self.steps.iter().enumerate().fold(0, |mask, (bit, step)| mask | u64::from(fits(step)) << bit);
        let Batch { values, bytes, .. } = batch;
        values.push(mask);
        values.extend(self.steps.iter().map(|step| match *step {
            Step::Absent => 0,
            Step::Integer { offset, size, signed } => {
                record.get(offset..offset + size).map_or(0, |bytes| integer(self.endian, bytes, signed))
            }
            Step::Fixed { offset, size, chars } => {
                let content = record.get(offset..offset + size).unwrap_or_default();
                store(bytes, if chars { up_to_nul(content) } else { content })
            }
            Step::Located { offset, relative, chars } => {
                let place = record.get(offset..offset + 4).map_or(0, |bytes| self.endian.unsigned(bytes) as usize);
                let (from, length) = (place & 0xffff, place >> 16);
                let from = if relative { from + offset + 4 } else { from };
                let content = record.get(from..from + length).unwrap_or_default();
                store(bytes, if chars { up_to_nul(content) } else { content })
            }
        }));
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

/// The `N` bytes at `offset`.
#[inline]
pub(crate) fn word<const N: usize>(record: &[u8], offset: usize) -> Option<[u8; N]> {
    record.get(offset..)?.first_chunk().copied()
}

impl Field {
    fn end(&self) -> usize {
        self.offset as usize + self.size as usize
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

    const WAKING: &str = "name: sched_waking\nID: 318\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] note;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:const void * call_site;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned char insn[2];\toffset:40;\tsize:2;\tsigned:0;\n\n\
        print fmt: \"comm=%s\", REC->comm\n";

    #[test]
    fn a_format_text_gives_places_and_kinds() {
        let format = EventFormat::parse("sched", WAKING).unwrap();
        assert_eq!((format.name.as_str(), format.id, format.common.len()), ("sched_waking", 318, 2));
        let seen: Vec<_> = format.fields.iter().map(|f| (f.name.as_str(), f.offset, f.kind())).collect();
        assert_eq!(
            seen,
            [
                ("comm", 8, FieldKind::Text),
                ("pid", 24, FieldKind::Signed),
                ("note", 28, FieldKind::Text),
                ("call_site", 32, FieldKind::Unsigned),
                ("insn", 40, FieldKind::Bytes),
            ]
        );
    }

    #[test]
    fn values_come_in_the_order_asked_for_and_short_records_lose_only_what_they_lack() {
        let format = EventFormat::parse("sched", WAKING).unwrap();
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
        extract.step_by_step(&record, &mut batch);
        assert_eq!((batch.values[0], batch.values[1] as i64), (0b1101, -2));
        assert_eq!((batch.content(batch.values[3]), batch.content(batch.values[4])), (&b"idle"[..], &b"ab"[..]));
        batch.clear(0);
        extract.step_by_step(&record[..26], &mut batch);
        assert_eq!(batch.values[0], 0b0100, "only comm fits");
    }
}
