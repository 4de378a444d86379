//! The head of a version 7 file: sections, found through chained lists of options.
//!
//! ```text
//! head -> OPTIONS section -> ... -> DONE option -> next OPTIONS section -> ... -> DONE 0
//!            each option names a section (formats, command lines, a buffer) or holds a value
//! ```
//! Source: trace-cmd.dat.v7(5) of trace-cmd 3.1.6. A file whose recorder was killed lacks its last OPTIONS section;
//! sections lie one behind the other, so its buffers, and if need be its formats, are found by walking them.

use super::cursor::Cursor;
use super::layout::{Buffer, Compression, CpuData, Layout, MOST_UNPACKED, event_formats, format_list, sized_text};
use super::options as id;
use crate::format::Endian;
use base::{MOST_CPUS, Problem};
use std::cell::Cell;
use std::collections::BTreeSet;

const COMPRESSED: u16 = 1;
const OPTIONS_SECTION: u16 = 0;
/// Sections that describe the events.
const METADATA: &[u16] = &[id::HEADER_INFO, id::FTRACE_EVENTS, id::EVENT_FORMATS, id::PRINTK, id::CMDLINES];

struct Section<'a> {
    id: u16,
    compressed: bool,
    /// What lies in the file behind the header.
    body: &'a [u8],
    /// Place of `body`.
    at: usize,
    /// Size that the header claims.
    size: u64,
}

/// Reads on behind the page size. `Err` holds the place and what was expected there.
pub(super) fn read(
    file: &[u8],
    name: &str,
    at: usize,
    endian: Endian,
    page_size: usize,
) -> Result<Layout, (usize, &'static str)> {
    let mut cursor = Cursor::new(file, at, endian);
    let algorithm = cursor.text().ok_or((cursor.at(), "the name of the compression"))?;
    cursor.text().ok_or((cursor.at(), "the version of the compression"))?;
    let compression = Compression::named(&algorithm).ok_or((at, "compression none, zlib or zstd"))?;
    let first_options = cursor.u64().ok_or((cursor.at(), "the place of the first options"))?;
    let mut layout = Layout::new(7, endian, page_size, compression);
    let reader = Reader { file, name, endian, compression, left: Cell::new(MOST_DESCRIBED) };
    reader.follow_options(first_options, &mut layout);
    reader.read_sections(cursor.at(), &mut layout);
    layout.parse_formats();
    if layout.formats.is_empty() {
        return Err((
            usize::try_from(first_options).unwrap_or(usize::MAX),
            "a section with event formats, of 64 MB at most",
        ));
    }
    Ok(layout)
}

/// The text of `/proc/kallsyms`, if an option names a section with it that can be read.
pub(super) fn kallsyms(file: &[u8], layout: &Layout) -> Option<Vec<u8>> {
    let (endian, compression) = (layout.endian, layout.compression);
    let reader = Reader { file, name: "", endian, compression, left: Cell::new(MOST_UNPACKED as usize) };
    let (_, data) = layout.options.iter().find(|(option, _)| *option == id::KALLSYMS)?;
    let offset = layout.endian.unsigned(&data[..data.len().min(8)]);
    let section = reader.section(offset).filter(|section| section.id == id::KALLSYMS)?;
    let content = reader.content(&section).ok()?;
    let mut cursor = Cursor::new(&content, 0, layout.endian);
    let size = cursor.u32()?;
    cursor.take(u64::from(size)).map(<[u8]>::to_vec)
}

struct Reader<'a> {
    file: &'a [u8],
    name: &'a str,
    endian: Endian,
    compression: Compression,
    /// Bytes of sections that may still be read.
    left: Cell<usize>,
}

/// Most bytes, unpacked, of all sections that describe a recording. The formats of a whole kernel take 2 MB, saved command
/// lines and options less; options may name one section many times, so that the file's size is no bound.
const MOST_DESCRIBED: usize = 64 << 20;

impl<'a> Reader<'a> {
    fn section(&self, offset: u64) -> Option<Section<'a>> {
        let mut cursor = Cursor::new(self.file, usize::try_from(offset).ok()?, self.endian);
        let (id, flags, _description, size) = (cursor.u16()?, cursor.u16()?, cursor.u32()?, cursor.u64()?);
        let at = cursor.at();
        let end = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(at).min(self.file.len());
        Some(Section { id, compressed: flags & COMPRESSED != 0, body: &self.file[at..end], at, size })
    }

    /// A metadata section's content, unpacked if need be.
    fn content(&self, section: &Section<'a>) -> Result<Vec<u8>, String> {
        let too_much = || format!("more than {MOST_DESCRIBED} bytes of descriptions");
        if !section.compressed {
            self.left.set(self.left.get().checked_sub(section.body.len()).ok_or_else(too_much)?);
            return Ok(section.body.to_vec());
        }
        let mut cursor = Cursor::new(section.body, 0, self.endian);
        let sizes = cursor.u32().zip(cursor.u32());
        let Some((packed, unpacked)) = sizes.filter(|(_, unpacked)| *unpacked <= MOST_UNPACKED) else {
            return Err("no plausible sizes of compressed data".into());
        };
        self.left.set(self.left.get().checked_sub(unpacked as usize).ok_or_else(too_much)?);
        let Some(packed) = cursor.take(u64::from(packed)) else {
            return Err(format!("{} bytes of compressed data", section.body.len()));
        };
        let mut content = Vec::new();
        self.compression.unpack(packed, unpacked as usize, &mut None, &mut content)?;
        Ok(content)
    }

    /// Collects the options of all chained sections.
    fn follow_options(&self, first: u64, layout: &mut Layout) {
        let mut next = first;
        let mut read = BTreeSet::new();
        while read.insert(next) {
            let section = self.section(next).filter(|section| section.id == OPTIONS_SECTION);
            let Some(section) = section else {
                let expected = "an OPTIONS section";
                let text = format!(
                    "{}: the list of options is truncated at byte {next:#x}, as after a killed recorder; the file \
                     was searched for trace buffers instead",
                    self.name
                );
                layout.problems.push(Problem::at(self.name, next, expected, "something else, or the end", 0, text));
                return;
            };
            let content = match self.content(&section) {
                Ok(content) => content,
                Err(found) => {
                    let text = format!("{}: options at byte {next:#x} cannot be unpacked: {found}", self.name);
                    layout.problems.push(Problem::at(self.name, next, "compressed options", found, section.size, text));
                    return;
                }
            };
            let mut cursor = Cursor::new(&content, 0, self.endian);
            let mut done = None;
            while let Some((id, data)) = option(&mut cursor) {
                if id == id::DONE {
                    done = Some(self.endian.unsigned(&data[..data.len().min(8)]));
                    break;
                }
                layout.options.push((id, data.to_vec()));
            }
            match done {
                Some(0) => return,
                Some(offset) => next = offset,
                None => {
                    let text = format!("{}: options at byte {next:#x} end without DONE", self.name);
                    let at = section.at as u64 + cursor.at() as u64;
                    layout.problems.push(Problem::at(self.name, at, "option DONE", "the end of the section", 0, text));
                    return;
                }
            }
        }
        let text = format!("{}: the chain of options loops back to byte {next:#x}; each part is read once", self.name);
        layout.problems.push(Problem::at(self.name, next, "an end of the chain of options", "a loop", 0, text));
    }

    /// Reads the sections that the options name.
    fn read_sections(&self, head_end: usize, layout: &mut Layout) {
        let (mut has_buffers, mut read) = (false, BTreeSet::new());
        for (option, data) in std::mem::take(&mut layout.options) {
            let offset = self.endian.unsigned(&data[..data.len().min(8)]);
            match option {
                _ if METADATA.contains(&option) => {
                    if read.insert(offset) {
                        self.read_metadata(option, offset, layout);
                    } else {
                        self.damaged(offset, "a section that one option names", layout);
                    }
                }
                id::BUFFER => {
                    has_buffers = true;
                    match self.buffer(&data) {
                        Some(buffer) => layout.buffers.push(buffer),
                        None => self.damaged(offset, "a whole BUFFER option", layout),
                    }
                }
                id::CPUCOUNT => layout.cpus = self.endian.unsigned(&data[..data.len().min(4)]) as u32,
                _ => {}
            }
            layout.options.push((option, data));
        }
        let has_formats = !layout.texts.is_empty();
        if !has_formats || !has_buffers {
            self.search(head_end, !has_formats, !has_buffers, layout);
        }
    }

    fn read_metadata(&self, option: u16, offset: u64, layout: &mut Layout) {
        let Some(section) = self.section(offset).filter(|section| section.id == option) else {
            return self.damaged(offset, "the section that an option names", layout);
        };
        let content = match self.content(&section) {
            Ok(content) => content,
            Err(found) => return self.not_unpacked(offset, found, layout),
        };
        let mut cursor = Cursor::new(&content, 0, self.endian);
        let read = match option {
            id::HEADER_INFO => (|| {
                cursor.take("header_page\0".len() as u64)?;
                layout.header_page = sized_text(&mut cursor)?;
                cursor.take("header_event\0".len() as u64)?;
                layout.header_event = sized_text(&mut cursor)?;
                Some(())
            })(),
            id::FTRACE_EVENTS => format_list(&mut cursor, "ftrace", &mut layout.texts),
            id::EVENT_FORMATS => event_formats(&mut cursor, &mut layout.texts),
            id::PRINTK => (|| {
                let size = cursor.u32()?;
                layout.printk = String::from_utf8_lossy(cursor.take(u64::from(size))?).into_owned();
                Some(())
            })(),
            _ => sized_text(&mut cursor).map(|text| layout.cmdlines = text),
        };
        if read.is_none() {
            self.damaged(offset, "a section as long as its contents say", layout);
        }
    }

    fn not_unpacked(&self, offset: u64, found: String, layout: &mut Layout) {
        let expected = "a section that can be unpacked";
        let text = format!("{}: at byte {offset:#x}: expected {expected}, found {found}", self.name);
        layout.problems.push(Problem::at(self.name, offset, expected, found, 0, text));
    }

    fn damaged(&self, offset: u64, expected: &str, layout: &mut Layout) {
        let text = format!("{}: at byte {offset:#x}: expected {expected}", self.name);
        layout.problems.push(Problem::at(self.name, offset, expected, "damaged or missing bytes", 0, text));
    }

    fn buffer(&self, data: &[u8]) -> Option<Buffer> {
        let mut cursor = Cursor::new(data, 0, self.endian);
        let section = self.section(cursor.u64()?)?;
        let (name, clock) = (cursor.text()?, cursor.text()?);
        let (page_size, count) = (cursor.u32()? as usize, cursor.u32()?);
        let mut cpus = Vec::new();
        for _ in 0..count {
            cpus.push(CpuData { cpu: cursor.u32()?, offset: cursor.u64()?, size: cursor.u64()? });
        }
        Some(Buffer { name, clock, page_size, compressed: section.compressed, cpus })
    }

    /// Walks the sections in file order and takes the descriptions and the buffers that no option names.
    fn search(&self, head_end: usize, formats: bool, buffers: bool, layout: &mut Layout) {
        let mut at = head_end as u64;
        while let Some(section) = self.section(at) {
            if formats && METADATA.contains(&section.id) {
                self.read_metadata(section.id, at, layout);
            }
            if buffers && section.id == id::BUFFER {
                // The size of a section still being written is not filled in: it goes to the end of the file.
                let end = if section.size == 0 { self.file.len() } else { section.at + section.body.len() };
                let cpus = self.cpus_of(&section, end, layout.page_size);
                let text = format!(
                    "{}: no option names the trace buffer at byte {at:#x}; its {} CPU streams were found in it",
                    self.name,
                    cpus.len()
                );
                layout.problems.push(Problem::at(self.name, at, "a BUFFER option", "none", 0, text));
                layout.breaks_off = true;
                layout.buffers.push(Buffer {
                    name: String::new(),
                    clock: String::new(),
                    page_size: layout.page_size,
                    compressed: section.compressed,
                    cpus,
                });
                if section.size == 0 {
                    return;
                }
            }
            at = (section.at as u64).saturating_add(section.size);
            if section.size == 0 && section.id != OPTIONS_SECTION {
                return;
            }
        }
    }

    /// The CPU streams of a buffer section, each at a page boundary of the file.
    fn cpus_of(&self, section: &Section<'_>, end: usize, page_size: usize) -> Vec<CpuData> {
        let page = page_size.max(1);
        let mut cpus = Vec::new();
        let mut at = section.at.next_multiple_of(page);
        if !section.compressed {
            return self.cpus_by_time(at, end, page);
        }
        while at < end {
            let mut cursor = Cursor::new(&self.file[..end], at, self.endian);
            let Some(chunks) = cursor.u32() else { break };
            let mut whole = true;
            for _ in 0..chunks {
                let skipped = cursor.u32().and_then(|size| cursor.u32().and_then(|_| cursor.take(u64::from(size))));
                if skipped.is_none() {
                    whole = false;
                    break;
                }
            }
            let stop = if whole { cursor.at() } else { end };
            cpus.push(CpuData { cpu: cpus.len() as u32, offset: at as u64, size: (stop - at) as u64 });
            if chunks == 0 || !whole {
                break;
            }
            at = stop.next_multiple_of(page);
        }
        cpus
    }
}

impl Reader<'_> {
    /// The CPU streams among uncompressed pages. Nothing but time tells where one CPU ends: the pages of each are in its
    /// order, so where it goes back the next one begins. Numbers are given in the order of the file.
    fn cpus_by_time(&self, start: usize, end: usize, page: usize) -> Vec<CpuData> {
        let mut cpus: Vec<CpuData> = Vec::new();
        let mut before = u64::MAX;
        for at in (start..end).step_by(page) {
            let ticks = Cursor::new(&self.file[..end], at, self.endian).u64().unwrap_or(before);
            if ticks < before && cpus.len() < MOST_CPUS as usize {
                cpus.push(CpuData { cpu: cpus.len() as u32, offset: at as u64, size: 0 });
            }
            before = ticks;
            if let Some(cpu) = cpus.last_mut() {
                cpu.size += page.min(end - at) as u64;
            }
        }
        cpus
    }
}

fn option<'a>(cursor: &mut Cursor<'a>) -> Option<(u16, &'a [u8])> {
    let (id, size) = (cursor.u16()?, cursor.u32()?);
    Some((id, cursor.take(u64::from(size))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends a section; returns where it lies.
    fn section(file: &mut Vec<u8>, id: u16, flags: u16, body: &[u8]) -> u64 {
        let at = file.len() as u64;
        file.extend_from_slice(&id.to_le_bytes());
        file.extend_from_slice(&flags.to_le_bytes());
        file.extend_from_slice(&0u32.to_le_bytes());
        file.extend_from_slice(&(body.len() as u64).to_le_bytes());
        file.extend_from_slice(body);
        at
    }

    /// A section with one event's format, padded with `blanks`.
    fn formats(blanks: usize) -> Vec<u8> {
        let text = format!("name: kvm_exit\nID: 77\nformat:\n{}", " ".repeat(blanks));
        let mut body = 1u32.to_le_bytes().to_vec();
        body.extend_from_slice(b"kvm\0");
        body.extend_from_slice(&1u32.to_le_bytes());
        body.extend_from_slice(&(text.len() as u64).to_le_bytes());
        body.extend_from_slice(text.as_bytes());
        body
    }

    fn packed(body: &[u8]) -> Vec<u8> {
        let packed = zstd::bulk::compress(body, 1).unwrap();
        [&(packed.len() as u32).to_le_bytes(), &(body.len() as u32).to_le_bytes(), &packed[..]].concat()
    }

    fn read_of(file: &[u8], named: &[u64]) -> Layout {
        let (endian, compression) = (Endian::Little, Compression::Zstd);
        let reader = Reader { file, name: "x", endian, compression, left: Cell::new(MOST_DESCRIBED) };
        let mut layout = Layout::new(7, endian, 4096, compression);
        layout.options = named.iter().map(|at| (id::EVENT_FORMATS, at.to_le_bytes().to_vec())).collect();
        reader.read_sections(file.len(), &mut layout);
        layout
    }

    #[test]
    fn a_section_that_many_options_name_is_read_once() {
        let mut file = Vec::new();
        let at = section(&mut file, id::EVENT_FORMATS, COMPRESSED, &packed(&formats(1 << 20)));
        let layout = read_of(&file, &[at; 64]);
        assert_eq!((layout.texts.len(), layout.problems.len()), (1, 63));
    }

    #[test]
    fn descriptions_that_unpack_to_more_than_any_kernels_are_left_out_and_said() {
        let mut file = Vec::new();
        let body = packed(&formats(30 << 20));
        let named: Vec<u64> = (0..4).map(|_| section(&mut file, id::EVENT_FORMATS, COMPRESSED, &body)).collect();
        assert!(file.len() < 64 << 10, "{}", file.len());
        let layout = read_of(&file, &named);
        assert_eq!((layout.texts.len(), layout.problems.len()), (2, 2), "{:?}", layout.problems);
        assert!(layout.problems[0].text.contains("more than 67108864 bytes"), "{}", layout.problems[0].text);
    }
}
