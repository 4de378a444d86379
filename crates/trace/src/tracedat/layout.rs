//! Where everything lies in a trace.dat file, whichever version it is.

use super::cursor::Cursor;
use crate::format::{Endian, EventFormat};
use crate::in_place::PADDING_BYTES;
use base::Problem;

/// What reading the head of a file gives.
#[derive(Debug)]
pub(super) struct Layout {
    /// 6 or 7.
    pub version: u32,
    /// Byte order of the traced machine.
    pub endian: Endian,
    /// Page size of the traced machine.
    pub(crate) page_size: usize,
    pub compression: Compression,
    /// Text of `events/header_page`, which places `commit` and the data.
    pub header_page: String,
    /// Text of `events/header_event`.
    pub header_event: String,
    /// Format texts by group, the kernel's own (`ftrace`) first.
    pub texts: Vec<(String, Vec<String>)>,
    pub formats: Vec<EventFormat>,
    /// Text of `printk_formats`.
    pub printk: String,
    /// Version 6: where the text of `/proc/kallsyms` stands in the file. Version 7 has an option for it.
    pub kallsyms: std::ops::Range<usize>,
    /// Text of `saved_cmdlines`: a pid and a name per line.
    pub(crate) cmdlines: String,
    /// Options as they stand: id and content.
    pub options: Vec<(u16, Vec<u8>)>,
    /// The trace buffers, the top instance first.
    pub buffers: Vec<Buffer>,
    /// CPU count, where the file states it.
    pub cpus: u32,
    /// True if the file ends before the options that name its buffers: the last CPU stream that was found may go on.
    pub(crate) breaks_off: bool,
    /// Damage met so far.
    pub problems: Vec<Problem>,
}

impl Layout {
    /// A layout of which only the head is known.
    pub(super) fn new(version: u32, endian: Endian, page_size: usize, compression: Compression) -> Self {
        Self {
            version,
            endian,
            page_size,
            compression,
            header_page: String::new(),
            header_event: String::new(),
            texts: Vec::new(),
            formats: Vec::new(),
            printk: String::new(),
            kallsyms: 0..0,
            cmdlines: String::new(),
            options: Vec::new(),
            buffers: Vec::new(),
            cpus: 0,
            breaks_off: false,
            problems: Vec::new(),
        }
    }

    pub(super) fn parse_formats(&mut self) {
        let texts = self.texts.iter().flat_map(|(system, texts)| texts.iter().map(move |text| (system, text)));
        self.formats = texts.filter_map(|(system, text)| EventFormat::parse(system, text)).collect();
    }
}

/// How the data of a version 7 file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    /// Not at all.
    None,
    /// zlib, RFC 1950.
    Zlib,
    /// Zstandard, RFC 8878.
    Zstd,
}

/// One trace instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Buffer {
    /// Empty for the top instance.
    pub name: String,
    /// Name of its clock; empty where only the file's TRACECLOCK option tells.
    pub clock: String,
    /// Size of a (sub-)buffer page.
    pub(crate) page_size: usize,
    /// True if the CPUs' data are lists of compressed chunks.
    pub compressed: bool,
    pub cpus: Vec<CpuData>,
}

/// Data of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuData {
    /// The CPU.
    pub cpu: u32,
    /// Place in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub size: u64,
}

/// Where a ring-buffer page keeps what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Byte order.
    pub endian: Endian,
    /// Place of `commit`.
    pub(crate) commit_offset: usize,
    /// Its size, the traced kernel's `long`.
    pub(crate) commit_size: usize,
    /// Place of the first event.
    pub(crate) data_offset: usize,
}

impl Shape {
    /// Reads the text of `events/header_page`; falls back to a 64-bit kernel's layout where the text lacks a field.
    pub fn parse(header_page: &str, endian: Endian) -> Self {
        let number = |field: &str, key: &str| {
            let line = header_page.lines().find(|line| {
                let declaration = line.split(';').next().unwrap_or("");
                declaration.split_whitespace().next_back() == Some(field)
            })?;
            let value = line.split(';').find_map(|part| part.trim().strip_prefix(key))?;
            value.trim().parse::<usize>().ok().filter(|value| *value <= 64)
        };
        let commit_size = number("commit", "size:").filter(|size| matches!(size, 4 | 8)).unwrap_or(8);
        Self {
            endian,
            commit_offset: number("commit", "offset:").unwrap_or(8),
            commit_size,
            data_offset: number("data", "offset:").unwrap_or(8 + commit_size),
        }
    }
}

impl Compression {
    /// The algorithm a file names; `None` if it is none we know.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "none" | "" => Some(Compression::None),
            "zlib" => Some(Compression::Zlib),
            "zstd" => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// Decompresses one chunk into `out`, which is emptied first and never grows beyond `size` bytes.
    pub(super) fn unpack(
        self,
        packed: &[u8],
        size: usize,
        zstd: &mut Option<zstd::bulk::Decompressor<'static>>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        out.clear();
        match self {
            Compression::None => out.extend_from_slice(packed),
            Compression::Zlib => {
                let mut decoder = std::io::Read::take(flate2::read::ZlibDecoder::new(packed), size as u64);
                std::io::Read::read_to_end(&mut decoder, out).map_err(|error| error.to_string())?;
            }
            Compression::Zstd => {
                if size > MOST_AHEAD {
                    let decoder = zstd::stream::read::Decoder::new(packed).map_err(|error| error.to_string())?;
                    let mut decoder = std::io::Read::take(decoder, size as u64);
                    std::io::Read::read_to_end(&mut decoder, out).map_err(|error| error.to_string())?;
                    return Ok(());
                }
                let decompressor = match zstd {
                    Some(decompressor) => decompressor,
                    None => zstd.insert(zstd::bulk::Decompressor::new().map_err(|error| error.to_string())?),
                };
                // Whoever reads records in place needs some more behind them.
                out.reserve(size + PADDING_BYTES);
                decompressor.decompress_to_buffer(packed, out).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

/// Room that is made before unpacking, on the word of the file. Chunks of ten pages are far below; the format texts of a
/// whole kernel take 2 MB. What claims more is unpacked as it comes.
const MOST_AHEAD: usize = 4 << 20;

/// The most that one compressed section or chunk may unpack to. trace-cmd's chunks are ten pages; kallsyms is the
/// largest section, about 10 MB.
pub(super) const MOST_UNPACKED: u32 = 256 << 20;

/// Splits an event-formats section into format texts; what stands before damage is kept.
///
/// Layout: u32 systems, each {name, u32 events, each {u64 size, text}}; `ftrace` events come without the outer list.
pub(super) fn event_formats(cursor: &mut Cursor<'_>, into: &mut Vec<(String, Vec<String>)>) -> Option<()> {
    let systems = cursor.u32()?;
    for _ in 0..systems {
        let system = cursor.text()?;
        format_list(cursor, &system, into)?;
    }
    Some(())
}

/// Reads u32 events, each {u64 size, text}.
pub(super) fn format_list(cursor: &mut Cursor<'_>, system: &str, into: &mut Vec<(String, Vec<String>)>) -> Option<()> {
    let events = cursor.u32()?;
    into.push((system.to_owned(), Vec::new()));
    for _ in 0..events {
        let text = sized_text(cursor)?;
        into.last_mut()?.1.push(text);
    }
    Some(())
}

/// Reads a text behind its size as u64.
pub(super) fn sized_text(cursor: &mut Cursor<'_>) -> Option<String> {
    let size = cursor.u64()?;
    Some(String::from_utf8_lossy(cursor.take(size)?).into_owned())
}
