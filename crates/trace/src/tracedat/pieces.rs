//! One CPU's data, cut into pieces that are decoded in any order.
//!
//! Every page starts with a full time stamp, so no piece needs what came before it.

use super::index::{Index, Place};
use super::layout::{Buffer, Compression, Shape};
use super::page;
use super::plan::{Plan, Survey};
use super::{Content, TraceDat};
use crate::batch::Batch;
use crate::format::Endian;
use crate::in_place::PADDING_BYTES;
use crate::lane::{Pieces, Scratch};
use crate::records::Records;
use base::Problem;
use std::slice::Chunks;
use std::sync::Arc;

/// The pieces of one CPU.
pub(super) struct CpuPieces<'t> {
    files: &'t [Content],
    shape: Shape,
    index: &'t Index,
    /// `None`: pages stand in the file as they are.
    packed: Option<Compression>,
    plan: Arc<Plan>,
}

impl<'t> CpuPieces<'t> {
    /// The pieces of the CPU at `index`.
    pub(super) fn new(trace: &'t TraceDat, buffer: &Buffer, index: &'t Index, plan: Arc<Plan>) -> Self {
        let packed = buffer.compressed.then_some(trace.layout.compression);
        Self { files: &trace.files, shape: trace.shape, index, packed, plan }
    }

    pub(super) fn stored_bytes(&self) -> u64 {
        self.index.places.iter().map(|place| place.stored as u64).sum()
    }

    /// The pages of piece `index`, unpacked into `out`. The last page of a damaged file may be shorter than the others.
    pub(super) fn pages<'o>(
        &self,
        index: usize,
        scratch: &mut Scratch,
        out: &'o mut Vec<u8>,
    ) -> Result<Chunks<'o, u8>, String> {
        out.clear();
        if let Some(place) = self.index.places.get(index) {
            unpacked(&self.files[place.file].bytes, self.packed, place, scratch, out)?;
        }
        Ok(out.chunks(self.index.page_size))
    }

    fn decode_page<const BIG: bool>(&self, page: &[u8], at: usize, name: &str, place: usize, batch: &mut Batch) {
        let plan = &*self.plan;
        if let Some(missed) = page::head(page, &self.shape).and_then(|head| head.missed.map(|n| (head.ticks, n))) {
            batch.lost(plan.ns(missed.0), self.index.cpu, missed.1, 0);
        }
        let Survey { span, end } = plan.read::<BIG>(page, at, &self.shape, self.index.cpu, batch);
        for ticks in span.into_iter().flat_map(|(first, last)| [first, last]) {
            batch.saw_time(plan.ns(ticks));
        }
        if let Some((at, expected)) = end.damage {
            let offset = if self.packed.is_some() { place } else { place + at };
            let skipped = (page.len() - at.min(page.len())) as u64;
            let text = format!(
                "{name}: CPU {}: a ring-buffer page at byte {place:#x} is damaged {at} bytes into it; its other \
                 {skipped} bytes are skipped",
                self.index.cpu
            );
            batch.problems.push(Problem::at(name, offset as u64, expected, "damaged bytes", skipped, text));
            batch.lost(span.map_or(0, |(_, last)| plan.ns(last)), self.index.cpu, 0, skipped);
        }
    }
}

/// The pages at `place` of `file`, unpacked into `out`.
pub(super) fn unpacked(
    file: &[u8],
    packed: Option<Compression>,
    place: &Place,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let stored = &file[place.offset..place.offset + place.stored];
    packed.unwrap_or(Compression::None).unpack(stored, place.size, &mut scratch.zstd, out)
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
        let name = &*self.files[place.file].name;
        batch.read_bytes = place.stored as u64;
        let mut records = batch.records.take_own();
        match self.pages(index, scratch, &mut records) {
            Ok(pages) => {
                for (number, page) in pages.enumerate() {
                    let at = number * self.index.page_size;
                    let place = place.offset + if self.packed.is_some() { 0 } else { at };
                    match self.shape.endian {
                        Endian::Little => self.decode_page::<false>(page, at, name, place, batch),
                        Endian::Big => self.decode_page::<true>(page, at, name, place, batch),
                    }
                }
            }
            Err(found) => {
                let text = format!(
                    "{name}: CPU {}: the compressed chunk at byte {:#x} cannot be unpacked ({found}); its {} bytes are \
                     skipped",
                    self.index.cpu, place.offset, place.size
                );
                let skipped = place.size as u64;
                let expected = "a chunk that can be unpacked";
                batch.problems.push(Problem::at(name, place.offset as u64, expected, found, skipped, text));
                batch.lost(0, self.index.cpu, 0, skipped);
            }
        }
        records.resize(records.len() + PADDING_BYTES, 0);
        batch.records = Records::Own(records);
        batch.layouts = self.plan.layouts();
    }
}
