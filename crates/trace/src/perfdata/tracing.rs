//! Which fields do the recorded tracepoints have?
//!
//! The feature section TRACING_DATA begins as a trace.dat file of version 0.6 does:
//! ```text
//! 17 08 44 "tracing" | "0.6" 0 | u8 big-endian? | u8 long size | u32 page size
//! "header_page"  0 | u64 size | text          "header_event" 0 | u64 size | text
//! u32 count of ftrace formats  x { u64 size | text }
//! u32 count of event systems   x { name 0 | u32 count x { u64 size | text } }
//! u32 size | kallsyms          u32 size | printk formats          u64 size | saved thread names (since 0.6)
//! ```
//! Source: tools/perf/util/trace-event-info.c (`tracing_data_get`), Linux 6.12.

use crate::format::{Endian, EventFormat};
use std::collections::BTreeMap;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The parsed section.
#[derive(Debug, Default)]
pub(super) struct TracingData {
    /// Formats of the recorded tracepoints, in file order.
    pub formats: Vec<EventFormat>,
    /// Thread names that the kernel had saved.
    pub comms: BTreeMap<i32, String>,
    /// Where it stopped making sense, and what should have stood there.
    pub damage: Option<(usize, &'static str)>,
}

impl TracingData {
    /// Parses as much of `section` as makes sense.
    pub(super) fn parse(section: &[u8]) -> Self {
        let mut data = Self::default();
        let mut cursor = Cursor { bytes: section, at: 0, endian: Endian::Little };
        if let Err(expected) = data.read(&mut cursor) {
            data.damage = Some((cursor.at, expected));
        }
        data
    }

    fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), &'static str> {
        if cursor.take(MAGIC.len()) != Some(MAGIC) {
            return Err("the magic number of tracing data");
        }
        let version = cursor.name().ok_or("a version")?;
        let big_endian = cursor.take(1).ok_or("the byte order")?[0] == 1;
        cursor.endian = if big_endian { Endian::Big } else { Endian::Little };
        cursor.take(5).ok_or("the sizes of long and of a page")?;
        for header in ["header_page", "header_event"] {
            if cursor.name().as_deref() != Some(header) {
                return Err("the names header_page and header_event");
            }
            cursor.sized(8).ok_or("the text of a ring buffer header")?;
        }
        let ftrace = cursor.number(4).ok_or("the number of ftrace formats")?;
        self.read_formats("ftrace", ftrace, cursor)?;
        for _ in 0..cursor.number(4).ok_or("the number of event systems")? {
            let system = cursor.name().ok_or("the name of an event system")?;
            let count = cursor.number(4).ok_or("the number of formats of a system")?;
            self.read_formats(&system, count, cursor)?;
        }
        cursor.sized(4).ok_or("kallsyms")?;
        cursor.sized(4).ok_or("the printk formats")?;
        if version != "0.5" {
            let saved = cursor.sized(8).ok_or("the saved thread names")?;
            for line in String::from_utf8_lossy(saved).lines() {
                if let Some((tid, name)) = line.split_once(' ')
                    && let Ok(tid) = tid.parse()
                {
                    self.comms.insert(tid, name.to_owned());
                }
            }
        }
        Ok(())
    }

    fn read_formats(&mut self, system: &str, count: u64, cursor: &mut Cursor<'_>) -> Result<(), &'static str> {
        for _ in 0..count {
            let text = cursor.sized(8).ok_or("the text of a format")?;
            self.formats.extend(EventFormat::parse(system, &String::from_utf8_lossy(text)));
        }
        Ok(())
    }
}

struct Cursor<'s> {
    bytes: &'s [u8],
    at: usize,
    endian: Endian,
}

impl<'s> Cursor<'s> {
    fn take(&mut self, length: usize) -> Option<&'s [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<u64> {
        self.take(bytes).map(|number| self.endian.unsigned(number))
    }

    /// A block behind its size, which is a number of `bytes` bytes.
    fn sized(&mut self, bytes: usize) -> Option<&'s [u8]> {
        let start = self.at;
        let size = usize::try_from(self.number(bytes)?).ok()?;
        let block = self.take(size);
        if block.is_none() {
            self.at = start;
        }
        block
    }

    /// A string up to its NUL.
    fn name(&mut self) -> Option<String> {
        let length = memchr::memchr(0, self.bytes.get(self.at..)?)?;
        let name = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.take(1)?;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_of_a_section_is_located() {
        let format = "name: x\nID: 7\nformat:\n\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n";
        let mut section = b"\x17\x08\x44tracing0.6\0\x01\x08\0\0\x10\0".to_vec();
        for name in ["header_page\0", "header_event\0"] {
            section.extend_from_slice(name.as_bytes());
            section.extend_from_slice(&0u64.to_be_bytes());
        }
        section.extend_from_slice(&0u32.to_be_bytes());
        section.extend_from_slice(&1u32.to_be_bytes());
        section.extend_from_slice(b"sys\0");
        section.extend_from_slice(&1u32.to_be_bytes());
        section.extend_from_slice(&(format.len() as u64).to_be_bytes());
        section.extend_from_slice(format.as_bytes());
        let formats_end = section.len();
        section.extend_from_slice(&[0; 8]);
        section.extend_from_slice(&5u64.to_be_bytes());
        section.extend_from_slice(b"9 a b");
        let whole = TracingData::parse(&section);
        assert_eq!((whole.damage, whole.comms[&9].as_str()), (None, "a b"));
        assert_eq!((whole.formats[0].system.as_str(), whole.formats[0].id), ("sys", 7));
        for length in 0..section.len() {
            let cut = TracingData::parse(&section[..length]);
            assert!(cut.damage.is_some_and(|(at, _)| at <= length), "cut at {length}");
            assert_eq!(cut.formats.len(), usize::from(length >= formats_end), "cut at {length}");
        }
    }
}
