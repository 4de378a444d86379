//! trace-cmd's file, versions 6 and 7.
//!
//! ```text
//! head: formats, options, places of the buffers     v6.rs, v7.rs -> layout.rs; options.rs
//! buffer of a CPU: pages, in v7 packed in chunks    index.rs, pieces.rs
//! page: time, commit, events                        page.rs
//! a recording that was not finished: a directory    partial.rs; while it grows: growing.rs
//! ```
//! Sources: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5) of trace-cmd 3.1.6.

mod bounds;
mod coverage;
mod cursor;
mod cut;
pub mod growing;
mod index;
mod layout;
mod options;
mod page;
pub mod partial;
mod pieces;
mod plan;
mod v6;
mod v7;

pub use cut::{cut, cut_last};
pub use layout::Shape;

use crate::error::Error;
use crate::facts::{Facts, Format};
use crate::format::Endian;
use crate::lane::{Lane, Reading, Source, Trace};
use crate::mapped::MappedFile;
use base::{Clock, parallel};
use index::{Index, Search};
use layout::{Buffer, Layout};
use pieces::CpuPieces;
use plan::Plan;
use std::path::Path;
use std::sync::Arc;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// True if a file that starts with these bytes is a trace.dat file.
pub fn sniff(first: &[u8]) -> bool {
    first.starts_with(MAGIC)
}

/// An opened trace.dat file.
pub struct TraceDat {
    /// The file; of a recording that was not finished, its head and then a file per CPU.
    files: Vec<Content>,
    layout: Layout,
    shape: Shape,
    facts: Facts,
    /// Clock of each of the layout's buffers.
    clocks: Vec<Clock>,
    /// Where the data of their CPUs lies.
    indexes: Vec<Vec<Index>>,
}

/// A mapped file and its name in messages.
struct Content {
    bytes: MappedFile,
    name: String,
}

/// Opens a trace.dat file.
///
/// # Errors
/// If it cannot be read, holds latency-tracer text instead of events, or lacks the descriptions of its events.
pub fn open(path: &Path) -> Result<TraceDat, Error> {
    let file = map(path)?;
    let mut layout = described(path, &file)?;
    let ends = bounds::bound(&mut layout, &file.bytes, &file.name);
    let search = Search { file: 0, bytes: &file.bytes, name: &file.name, layout: &layout };
    // Each chunk tells where the next one begins, which the memory is asked for one after the other: all CPUs at once.
    let index = |buffer: &Buffer| {
        parallel::map(buffer.cpus.len(), |at| search.pieces(buffer, buffer.cpus[at], ends.of(buffer.cpus[at])))
    };
    let mut indexes: Vec<Vec<Index>> = layout.buffers.iter().map(index).collect();
    bounds::bound_unpacked(&mut indexes, &file.name);
    Ok(opened(path, vec![file], layout, indexes))
}

fn map(path: &Path) -> Result<Content, Error> {
    Ok(Content { bytes: MappedFile::open(path)?, name: path.display().to_string() })
}

/// What the head of a file says.
fn described(path: &Path, file: &Content) -> Result<Layout, Error> {
    read_layout(&file.bytes, &file.name).map_err(|(offset, expected)| {
        if expected == v6::LATENCY {
            let reason = "this trace.dat has the text of a latency tracer, not events; record events with `trace-cmd \
                          record -e kvm -e sched`, without `-p`";
            return Error::Unsupported { file: path.to_owned(), reason: reason.into() };
        }
        let found = if offset >= file.bytes.len() { "the end of the file" } else { "something else" };
        Error::Damaged { file: path.to_owned(), offset: offset as u64, expected: expected.into(), found: found.into() }
    })
}

fn opened(path: &Path, files: Vec<Content>, layout: Layout, indexes: Vec<Vec<Index>>) -> TraceDat {
    let shape = Shape::parse(&layout.header_page, layout.endian);
    let mut facts =
        Facts::new(path.to_owned(), Format::TraceDat { version: layout.version }, Clock::nanoseconds("local"));
    let hints = options::apply(&layout, &mut facts);
    let clocks: Vec<Clock> = layout.buffers.iter().map(|buffer| hints.clock(&buffer.clock)).collect();
    let lanes = layout.buffers.iter().map(|buffer| buffer.cpus.len()).max().unwrap_or(0);
    facts.clock = clocks.first().cloned().unwrap_or_else(|| hints.clock(""));
    facts.cpus = layout.cpus.max(lanes as u32);
    facts.event_types = layout.formats.iter().map(crate::format::EventFormat::event_type).collect();
    facts.comms = layout.cmdlines.lines().filter_map(command_line).collect();
    facts.bytes = files.iter().map(|file| file.bytes.len() as u64).sum();
    facts.problems = layout.problems.clone();
    let mut trace = TraceDat { files, layout, shape, facts, clocks, indexes };
    coverage::describe(&mut trace);
    trace
}

/// A line of `saved_cmdlines`: a pid and a name.
fn command_line(line: &str) -> Option<(i32, String)> {
    let (tid, name) = line.trim_start().split_once(' ')?;
    Some((tid.parse().ok()?, name.trim_end_matches('\0').to_owned()))
}

fn read_layout(file: &[u8], name: &str) -> Result<Layout, (usize, &'static str)> {
    let mut cursor = cursor::Cursor::new(file, MAGIC.len(), Endian::Little);
    let version = cursor.text().ok_or((MAGIC.len(), "a version"))?;
    let order = cursor.take(2).ok_or((cursor.at(), "byte order and size of long"))?;
    let endian = match order[0] {
        0 => Endian::Little,
        1 => Endian::Big,
        _ => return Err((cursor.at() - 2, "byte order 0 or 1")),
    };
    let mut cursor = cursor::Cursor::new(file, cursor.at(), endian);
    let page_size = cursor.u32().ok_or((cursor.at(), "the page size"))? as usize;
    if !(64..=1 << 24).contains(&page_size) {
        return Err((cursor.at() - 4, "a page size between 64 bytes and 16 MiB"));
    }
    match version.as_str() {
        "6" => v6::read(file, cursor.at(), endian, page_size),
        "7" => v7::read(file, name, cursor.at(), endian, page_size),
        _ => Err((MAGIC.len(), "version 6 or 7")),
    }
}

impl Trace for TraceDat {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn torn(&self) -> Vec<String> {
        self.files.iter().filter(|file| file.bytes.is_torn()).map(|file| file.name.clone()).collect()
    }

    fn lanes<'t>(&'t self, reading: &'t Reading<'t>) -> Vec<Lane<'t>> {
        let mut lanes = Vec::new();
        let buffers = self.layout.buffers.iter().zip(&self.clocks).zip(&self.indexes);
        for ((buffer, clock), indexes) in buffers {
            let clock = reading.clock(clock);
            let plan = Arc::new(Plan::compile(&self.layout, &self.facts, reading.request, clock));
            for index in indexes {
                let pieces = CpuPieces::new(self, buffer, index, Arc::clone(&plan));
                lanes.push(Lane {
                    name: lane_name(&self.files[0].name, buffer, index.cpu),
                    cpu: Some(index.cpu),
                    bytes: pieces.stored_bytes(),
                    source: Source::Pieces(Box::new(pieces)),
                });
            }
        }
        lanes
    }

    fn kallsyms(&self) -> Option<String> {
        let head = &self.files[0].bytes;
        let text = match self.layout.version {
            6 => head.get(self.layout.kallsyms.clone())?.to_vec(),
            _ => v7::kallsyms(head, &self.layout)?,
        };
        Some(String::from_utf8_lossy(&text).into_owned()).filter(|text| !text.is_empty())
    }
}

fn lane_name(file: &str, buffer: &Buffer, cpu: u32) -> String {
    if buffer.name.is_empty() { format!("{file} CPU {cpu}") } else { format!("{file} {} CPU {cpu}", buffer.name) }
}
