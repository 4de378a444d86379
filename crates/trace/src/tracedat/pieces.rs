//! One CPU's data, cut into pieces that are decoded in any order.
//!
//! Every page starts with a full time stamp, so no piece needs what came before it.

use super::TraceDat;
use super::index::Index;
use super::layout::{Buffer, Compression, Layout, Shape};
use super::page::{self, Records};
use crate::batch::{Batch, Kind, NO_TID};
use crate::facts::Facts;
use crate::format::{Endian, Extract, word};
use crate::lane::{Pieces, Scratch};
use crate::request::Request;
use base::{Clock, Problem};
use std::slice::Chunks;
use std::sync::Arc;

/// An event that the file describes.
#[derive(Clone, Copy)]
struct Entry {
    /// Position in `Facts::event_types`.
    event_type: u16,
    /// Position in [`Plan::wanted`], if it is wanted.
    wanted: Option<u16>,
}

/// A request, compiled for the streams of one buffer.
pub struct Plan {
    clock: Clock,
    /// By event id; `None` for ids that no format describes.
    events: Vec<Option<Entry>>,
    /// What to take out of wanted records.
    wanted: Vec<(Kind, Extract)>,
    /// Place of `common_pid`.
    pid_offset: usize,
    /// Place of `common_type`, which has had two bytes in every kernel that has ring-buffer pages.
    id_offset: usize,
}

impl Plan {
    /// Compiles `request` for the events that `layout` describes.
    pub fn compile(layout: &Layout, facts: &Facts, request: &Request, clock: Clock) -> Self {
        let ids = layout.formats.iter().map(|format| format.id as usize).filter(|id| *id <= usize::from(u16::MAX));
        let mut events = vec![None; ids.max().map_or(0, |most| most + 1)];
        let mut wanted = Vec::new();
        for (position, (format, event)) in layout.formats.iter().zip(&facts.event_types).enumerate() {
            let (Some(slot), Ok(event_type)) = (events.get_mut(format.id as usize), u16::try_from(position)) else {
                continue;
            };
            let kind = request.kind_of(event);
            *slot = Some(Entry { event_type, wanted: kind.map(|_| wanted.len() as u16) });
            wanted.extend(
                kind.map(|kind| (kind as Kind, Extract::compile(format, &request.events[kind], layout.endian))),
            );
        }
        let common = |name| layout.formats.iter().find_map(|format| format.common(name));
        Self {
            clock,
            events,
            wanted,
            pid_offset: common("common_pid").map_or(4, |field| field.offset as usize),
            id_offset: common("common_type").map_or(0, |field| field.offset as usize),
        }
    }
}

/// The pieces of one CPU.
pub struct CpuPieces<'t> {
    file: &'t [u8],
    name: &'t str,
    shape: Shape,
    index: &'t Index,
    /// `None`: pages stand in the file as they are.
    packed: Option<Compression>,
    plan: Arc<Plan>,
}

impl<'t> CpuPieces<'t> {
    /// The pieces of the CPU at `index`.
    pub fn new(trace: &'t TraceDat, buffer: &Buffer, index: &'t Index, plan: Arc<Plan>) -> Self {
        let packed = buffer.compressed.then_some(trace.layout.compression);
        let file = &trace.files[index.file];
        Self { file: &file.bytes, name: &file.name, shape: trace.shape, index, packed, plan }
    }

    /// Bytes of all pieces as they are stored.
    pub fn stored_bytes(&self) -> u64 {
        self.index.places.iter().map(|place| place.stored as u64).sum()
    }

    /// The pages of piece `index`, unpacked. The last page of a damaged file may be shorter than the others.
    pub fn pages<'s>(&'s self, index: usize, scratch: &'s mut Scratch) -> Result<Chunks<'s, u8>, String> {
        let Some(place) = self.index.places.get(index) else { return Ok([].chunks(self.index.page_size)) };
        let stored = &self.file[place.offset..place.offset + place.stored];
        let Some(compression) = self.packed else { return Ok(stored.chunks(self.index.page_size)) };
        compression.unpack(stored, place.size, &mut scratch.zstd, &mut scratch.bytes)?;
        Ok(scratch.bytes.chunks(self.index.page_size))
    }

    fn decode_page<const BIG: bool>(&self, page: &[u8], place: usize, batch: &mut Batch) {
        let Plan { clock, events, wanted, .. } = &*self.plan;
        let (id_offset, pid_offset) = (self.plan.id_offset, self.plan.pid_offset);
        let mut records = Records::<BIG>::new(page, &self.shape);
        let (mut first, mut last) = (None, None);
        if let Some(missed) = page::head(page, &self.shape).and_then(|head| head.missed.map(|n| (head.ticks, n))) {
            batch.lost(clock.ns(missed.0), self.index.cpu, missed.1, 0);
        }
        while let Some((ticks, record)) = records.next() {
            first = first.or(Some(ticks));
            last = Some(ticks);
            let id = word(record, id_offset).map_or(0, if BIG { u16::from_be_bytes } else { u16::from_le_bytes });
            let Some(Some(entry)) = events.get(usize::from(id)) else {
                batch.unknown += 1;
                continue;
            };
            batch.tally[usize::from(entry.event_type)] += 1;
            let Some(at) = entry.wanted else { continue };
            let (kind, extract) = &wanted[usize::from(at)];
            let tid =
                word(record, pid_offset).map_or(NO_TID, if BIG { i32::from_be_bytes } else { i32::from_le_bytes });
            batch.row(clock.ns(ticks), *kind, self.index.cpu, tid);
            extract.values::<BIG>(record, records.window(), batch);
        }
        let end = records.end();
        for ticks in [first, last].into_iter().flatten() {
            batch.saw_time(clock.ns(ticks));
        }
        if let Some((at, expected)) = end.damage {
            let offset = if self.packed.is_some() { place } else { place + at };
            let skipped = (page.len() - at.min(page.len())) as u64;
            let text = format!(
                "{}: CPU {}: a ring-buffer page at byte {place:#x} is damaged {at} bytes into it; its other \
                 {skipped} bytes are skipped",
                self.name, self.index.cpu
            );
            batch.problems.push(Problem::at(self.name, offset as u64, expected, "damaged bytes", skipped, text));
            batch.lost(last.map_or(0, |ticks| clock.ns(ticks)), self.index.cpu, 0, skipped);
        }
    }
}

impl Pieces for CpuPieces<'_> {
    fn count(&self) -> usize {
        // A stream without any piece still has its damage to tell.
        self.index.places.len().max(usize::from(self.index.problem.is_some()))
    }

    fn most_bytes(&self) -> usize {
        self.index.places.iter().map(|place| place.size).max().unwrap_or(0)
    }

    fn decode(&self, index: usize, scratch: &mut Scratch, batch: &mut Batch) {
        if index == 0 {
            batch.problems.extend(self.index.problem.clone());
        }
        let Some(place) = self.index.places.get(index) else { return };
        batch.read_bytes = place.stored as u64;
        match self.pages(index, scratch) {
            Ok(pages) => {
                for (number, page) in pages.enumerate() {
                    let page_offset = if self.packed.is_some() { 0 } else { number * self.index.page_size };
                    let place = place.offset + page_offset;
                    match self.shape.endian {
                        Endian::Little => self.decode_page::<false>(page, place, batch),
                        Endian::Big => self.decode_page::<true>(page, place, batch),
                    }
                }
            }
            Err(found) => {
                let text = format!(
                    "{}: CPU {}: the compressed chunk at byte {:#x} cannot be unpacked ({found}); its {} bytes are \
                     skipped",
                    self.name, self.index.cpu, place.offset, place.size
                );
                let skipped = place.size as u64;
                let expected = "a chunk that can be unpacked";
                batch.problems.push(Problem::at(self.name, place.offset as u64, expected, found, skipped, text));
                batch.lost(0, self.index.cpu, 0, skipped);
            }
        }
    }
}
