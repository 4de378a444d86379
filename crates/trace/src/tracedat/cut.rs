//! How does a window of time become a trace.dat of its own?
//!
//! ```text
//! pages of a CPU   [ before ][ ..|.... ][ inside ][ inside ][ ...|. ][ after ]
//!                   dropped    rebuilt    as they stand      rebuilt   dropped
//! ```
//! In: a file and a window on the axis that starts at its first event. Out: a version 7 file, compressed with zstd, that
//! holds exactly the events of the window, each byte for byte as it was. Descriptions, thread names, options and the
//! kernel's symbols, often the largest part, are kept but for the per-CPU statistics (CPUSTAT), whose losses are counted
//! over a time that is no longer there. A mark of lost events stays if it lies in the window; a damaged page becomes what
//! could be read of it and a mark.

use super::coverage::last_ticks;
use super::page::{self, PageEnd};
use super::pieces::CpuPieces;
use super::plan::Plan;
use super::{Shape, TraceDat, options as id, partial};
use crate::error::Error;
use crate::lane::{Pieces, Reading, Scratch, Trace};
use crate::request::Request;
use crate::write::layout::Machine;
use crate::write::page::{HEADER_EVENT, PageBuilder, PageStyle, header_page};
use crate::write::tracedat::{Compression, FileOption, Instance, TraceDat as Written, Version};
use base::{Clock, Span};
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Read};
use std::path::Path;
use std::sync::Arc;

/// Options that the new file makes anew or lacks.
const NOT_KEPT: &[u16] = &[
    id::CPUSTAT,
    id::BUFFER,
    id::HEADER_INFO,
    id::FTRACE_EVENTS,
    id::EVENT_FORMATS,
    id::KALLSYMS,
    id::PRINTK,
    id::CMDLINES,
];

/// Writes the events of `from`, a file or what a killed recorder left, that lie in `window` (ns since the file's first event) to a new file `to`.
///
/// A clock whose ticks the file gives no length is read as [`calibrate::fit`](crate::calibrate::fit) finds it, or as
/// one nanosecond a tick.
///
/// # Errors
/// If `from` cannot be opened as a trace.dat, or if `to` is already there or cannot be written.
pub fn cut(from: &Path, to: &Path, window: Span) -> Result<(), Error> {
    let trace = if partial::sniff(from) { partial::open(from)? } else { super::open(from)? };
    let request = Request::default();
    let reading = Reading { request: &request, fitted: crate::calibrate::fit(&trace) };
    let origin_ns = crate::replay::origin_ns(&trace, reading.fitted.clone());
    let window =
        Span { from_ns: window.from_ns.saturating_add(origin_ns), to_ns: window.to_ns.saturating_add(origin_ns) };
    write(&trace, &reading, window, to)
}

/// Writes the last `length_ns` of what a recorder left in `directory` to a new file `to`, or as much of them as all CPUs
/// still have. Returns how much that is.
///
/// # Errors
/// As [`cut`].
pub fn cut_last(directory: &Path, to: &Path, length_ns: u64) -> Result<u64, Error> {
    let left = partial::Mapped::of(directory)?;
    let dropped_until_ticks = left.dropped_until_ticks();
    let trace = left.open(directory, |pages| pages.first()..pages.end());
    let request = Request::default();
    let reading = Reading { request: &request, fitted: crate::calibrate::fit(&trace) };
    let clock = reading.clock(&trace.facts.clock);
    let buffers = trace.layout.buffers.iter().zip(&trace.indexes);
    let ends = buffers.flat_map(|(buffer, indexes)| indexes.iter().map(move |index| (buffer, index)));
    let last_ticks = ends.filter_map(|(buffer, index)| last_ticks(&trace, buffer, index)).max().unwrap_or(0);
    let last_ns = clock.ns(last_ticks);
    let first_ns = crate::replay::origin_ns(&trace, reading.fitted.clone()).max(clock.ns(dropped_until_ticks));
    let from_ns = last_ns.saturating_sub(length_ns).max(first_ns);
    write(&trace, &reading, Span { from_ns, to_ns: last_ns.saturating_add(1) }, to)?;
    Ok(last_ns.saturating_sub(from_ns))
}

/// Writes the events of `window`, which is on the clock's own axis.
fn write(trace: &TraceDat, reading: &Reading<'_>, window: Span, to: &Path) -> Result<(), Error> {
    let io = |source| Error::Io { file: to.to_owned(), source };
    // A new file only: writing over the one that is read would take it away under the reader.
    let file = OpenOptions::new().write(true).create_new(true).open(to).map_err(io)?;
    let written = description(trace);
    let instances = instances(trace, reading, window, &written);
    let done = written.write_to(&mut BufWriter::new(file), instances);
    done.map_err(|source| {
        // Half a file looks like a damaged recording. If it cannot be removed either, the first refusal is told.
        let _ = std::fs::remove_file(to);
        io(source)
    })
}

/// Everything but the events.
fn description(trace: &TraceDat) -> Written {
    let layout = &trace.layout;
    let machine = Machine { endian: layout.endian, long_bytes: trace.shape.commit_size as u8 };
    let or = |text: &str, standard: String| if text.is_empty() { standard } else { text.to_owned() };
    let page_bytes = layout.buffers.iter().map(|buffer| buffer.page_size).filter(|size| is_page_size(*size));
    let page_bytes = page_bytes.max().unwrap_or(layout.page_size) as u32;
    let (ftrace, others): (Vec<_>, Vec<_>) = layout.texts.iter().cloned().partition(|(system, _)| system == "ftrace");
    let kept = layout.options.iter().filter(|(id, _)| !NOT_KEPT.contains(id));
    Written {
        page_bytes,
        compression: Compression::Zstd,
        header_page: or(&layout.header_page, header_page(machine, page_bytes)),
        header_event: or(&layout.header_event, HEADER_EVENT.to_owned()),
        ftrace_formats: ftrace.into_iter().flat_map(|(_, texts)| texts).collect(),
        formats: others,
        kallsyms: trace.kallsyms().unwrap_or_default(),
        printk: layout.printk.clone(),
        comms: trace.facts.comms.iter().map(|(tid, comm)| (*tid, comm.clone())).collect(),
        options: kept.map(|(id, data)| FileOption::Raw { id: *id, data: data.clone() }).collect(),
        ..Written::new(Version::V7, machine)
    }
}

fn is_page_size(size: usize) -> bool {
    (64..=1 << 24).contains(&size)
}

fn instances<'t>(trace: &'t TraceDat, reading: &Reading<'_>, window: Span, written: &Written) -> Vec<Instance<'t>> {
    let mut instances = Vec::new();
    for ((buffer, clock), indexes) in trace.layout.buffers.iter().zip(&trace.clocks).zip(&trace.indexes) {
        let clock = reading.clock(clock);
        let plan = Arc::new(Plan::compile(&trace.layout, &trace.facts, reading.request, clock.clone()));
        let cpus = indexes.iter().map(|index| {
            let pieces = CpuPieces::new(trace, buffer, index, Arc::clone(&plan));
            let window = Window { clock: clock.clone(), span: window, shape: trace.shape };
            let page_bytes = written.page_bytes;
            let builder = PageBuilder::new(written.machine, page_bytes, PageStyle::default());
            let cut = Cut { pieces, next: 0, window, builder, page_bytes, lost: false, ready: Vec::new(), read: 0 };
            (index.cpu, Box::new(cut) as Box<dyn Read + 't>)
        });
        let clock = if buffer.clock.is_empty() { clock.name.clone() } else { buffer.clock.clone() };
        instances.push(Instance { name: buffer.name.clone(), clock, cpus: cpus.collect() });
    }
    instances
}

/// What is wanted of a page.
struct Window {
    clock: Clock,
    /// On the clock's own axis.
    span: Span,
    shape: Shape,
}

/// How a page lies to the window.
struct Position {
    /// Events inside and outside.
    inside: u64,
    outside: u64,
    end: PageEnd,
}

impl Position {
    /// True for a page that can stay as it is.
    fn is_whole(&self) -> bool {
        self.outside == 0 && self.end.damage.is_none()
    }
}

impl Window {
    fn holds(&self, ticks: u64) -> bool {
        (self.span.from_ns..self.span.to_ns).contains(&self.clock.ns(ticks))
    }

    fn position(&self, page: &[u8]) -> Position {
        let mut position = Position { inside: 0, outside: 0, end: PageEnd::default() };
        position.end = page::walk(page, &self.shape, |ticks, _| match self.holds(ticks) {
            true => position.inside += 1,
            false => position.outside += 1,
        });
        position
    }
}

/// The pages of one CPU that the new file holds, made while they are read.
struct Cut<'t> {
    pieces: CpuPieces<'t>,
    next: usize,
    window: Window,
    builder: PageBuilder,
    page_bytes: u32,
    /// Damage was met since the last page that was kept.
    lost: bool,
    ready: Vec<u8>,
    /// How much of `ready` is out.
    read: usize,
}

impl Cut<'_> {
    /// Takes what the window holds of the next piece.
    fn take_piece(&mut self, scratch: &mut Scratch) -> io::Result<()> {
        self.ready.clear();
        self.read = 0;
        let index = self.next;
        self.next += 1;
        let mut unpacked = Vec::new();
        let Ok(pages) = self.pieces.pages(index, scratch, &mut unpacked) else {
            self.lost = true;
            return Ok(());
        };
        for page in pages {
            let position = self.window.position(page);
            if position.inside > 0 {
                let head = page::head(page, &self.window.shape).filter(|head| self.window.holds(head.ticks));
                let missed = head.and_then(|head| head.missed);
                if position.is_whole() && missed == position.end.missed && !self.lost {
                    self.ready.extend_from_slice(page);
                    self.ready.resize(self.ready.len().next_multiple_of(self.page_bytes as usize), 0);
                    continue;
                }
                if self.lost || missed.is_some() {
                    self.builder.missed(missed.filter(|count| *count > 0 && !self.lost), &mut self.ready)?;
                    self.lost = false;
                }
                rebuild(page, &self.window, &mut self.builder, &mut self.ready)?;
            }
            self.lost |= position.end.damage.is_some();
        }
        Ok(())
    }
}

/// Puts those events of `page` that lie in the window on a page of their own.
fn rebuild(page: &[u8], window: &Window, builder: &mut PageBuilder, ready: &mut Vec<u8>) -> io::Result<()> {
    let mut done = Ok(());
    page::walk(page, &window.shape, |ticks, record| {
        if done.is_ok() && window.holds(ticks) {
            done = builder.event(ticks, record, ready);
        }
    });
    done?;
    builder.finish(ready)
}

impl Read for Cut<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut scratch = Scratch::default();
        while self.read == self.ready.len() {
            if self.next >= self.pieces.count() {
                return Ok(0);
            }
            self.take_piece(&mut scratch)?;
        }
        let length = into.len().min(self.ready.len() - self.read);
        into[..length].copy_from_slice(&self.ready[self.read..self.read + length]);
        self.read += length;
        Ok(length)
    }
}
