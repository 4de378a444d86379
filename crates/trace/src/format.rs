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
//! A text is parsed once; `extract.rs` compiles it for the wanted fields.

use crate::facts::{EventType, FieldKind, FieldType};

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
    pub(crate) type_text: String,
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
        let mut rest = text;
        while !rest.is_empty() {
            let (line, behind) = cut(rest, b'\n');
            let line = line.trim_ascii();
            rest = behind;
            if let Some(rest) = line.strip_prefix("name:") {
                name = Some(rest.trim_ascii().to_owned());
            } else if let Some(rest) = line.strip_prefix("ID:") {
                id = rest.trim_ascii().parse().ok();
            } else if let Some(rest) = line.strip_prefix("print fmt:") {
                print_fmt = rest.trim_ascii().to_owned();
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
        let (declaration, mut rest) = cut(text, b';');
        let declaration = declaration.trim_ascii();
        let (mut offset, mut size, mut signed) = (None, None, false);
        while !rest.is_empty() {
            let (part, behind) = cut(rest, b';');
            let (what, value) = cut(part, b':');
            match (what.trim_ascii(), value.trim_ascii()) {
                ("offset", value) => offset = value.parse().ok(),
                ("size", value) => size = value.parse().ok(),
                ("signed", value) => signed = value == "1",
                _ => {}
            }
            rest = behind;
        }
        let (offset, size) = (offset?, size?);
        let brackets = declaration.find('[');
        // `char comm[16]` has its brackets behind the name, `__data_loc char[] name` before it.
        let head = match brackets {
            Some(at) if declaration.ends_with(']') => &declaration[..at],
            _ => declaration,
        };
        let split = head.trim_ascii_end().bytes().rposition(|byte| matches!(byte, b' ' | b'*' | b'\t'))?;
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

/// What stands before the first `mark`, and what behind it. A trace describes thousands of fields, and nothing can be read
/// before: the searches of `str` take longer on texts as short as these.
fn cut(text: &str, mark: u8) -> (&str, &str) {
    memchr::memchr(mark, text.as_bytes()).map_or((text, ""), |at| (&text[..at], &text[at + 1..]))
}

/// True for `char` as an element type, with its qualifiers; `unsigned char` is a byte.
fn is_char(type_text: &str) -> bool {
    let located = type_text.strip_prefix("__data_loc").or_else(|| type_text.strip_prefix("__rel_loc"));
    let element = located.unwrap_or(type_text).trim_ascii();
    let element = element.strip_suffix("[]").unwrap_or(element).trim_ascii();
    element == "char" || element == "const char"
}

impl Field {
    /// Byte behind it.
    pub fn end(&self) -> usize {
        self.offset as usize + self.size as usize
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const WAKING: &str = "name: sched_waking\nID: 318\nformat:\n\
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
}
