//! What a request means for the records of a buffer, and how they are taken out of a page.
//!
//! ```text
//! page --survey--> counts of all records, places of the wanted ones --take--> rows and values
//! ```

use super::layout::{Layout, Shape};
use super::page::{LEAST_RECORD_BYTES, PageEnd, Records};
use crate::batch::{Batch, Kind, NO_TID, Row};
use crate::column::Column;
use crate::extract::Extract;
use crate::facts::Facts;
use crate::request::Request;
use base::Clock;

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
    /// Most words that a wanted record takes in a batch.
    most_words: usize,
    /// Place of `common_pid`.
    pid_offset: usize,
    /// Place of `common_type`, which has had two bytes in every kernel that has ring-buffer pages.
    id_offset: usize,
}

/// A wanted record of a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Found {
    ticks: u64,
    /// Bytes of the page from its start on.
    left: u32,
    /// Bytes that are its own.
    length: u32,
    /// Position in [`Plan::wanted`].
    wanted: u16,
}

/// What a look over a page found.
#[derive(Debug, Clone, Copy)]
pub struct Survey {
    /// Wanted records.
    pub found: usize,
    /// Time of the first and last record, wanted or not, in ticks.
    pub span: Option<(u64, u64)>,
    /// What the page says beside its records.
    pub end: PageEnd,
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
        let offset = |name, usual| common(name).map_or(usual, |field| field.offset as usize);
        Self {
            clock,
            events,
            most_words: wanted.iter().map(|(_, extract)| extract.words()).max().unwrap_or(0),
            wanted,
            pid_offset: offset("common_pid", 4),
            id_offset: offset("common_type", 0),
        }
    }

    /// Nanoseconds of `ticks`.
    pub fn ns(&self, ticks: u64) -> u64 {
        self.clock.ns(ticks)
    }

    /// Looks over a page: counts its records in `batch`, and notes the wanted ones in `found`.
    ///
    /// Taking them out is a second loop. Each by itself has so few values at hand that they fit into registers.
    pub fn survey<const BIG: bool>(
        &self,
        page: &[u8],
        shape: &Shape,
        found: &mut Column<Found>,
        batch: &mut Batch,
    ) -> Survey {
        let mut records = Records::<BIG>::new(page, shape);
        let (mut first, mut last, mut count) = (None, 0, 0);
        let found = found.room(page.len() / LEAST_RECORD_BYTES + 1);
        let tally = &mut batch.tally[..];
        let id_offset = self.id_offset;
        for record in &mut records {
            let ticks = record.ticks;
            first.get_or_insert(ticks);
            last = ticks;
            let id = word(record.bytes(), id_offset);
            let id = id.map_or(0, if BIG { u16::from_be_bytes } else { u16::from_le_bytes });
            let Some(Some(entry)) = self.events.get(usize::from(id)) else {
                batch.unknown += 1;
                continue;
            };
            tally[usize::from(entry.event_type)] += 1;
            let (Some(wanted), Some(slot)) = (entry.wanted, found.get_mut(count)) else { continue };
            *slot = Found { ticks, left: record.rest.len() as u32, length: record.length as u32, wanted };
            count += 1;
        }
        Survey { found: count, span: first.map(|first| (first, last)), end: records.end() }
    }

    /// Takes the records `found` out of the `events` of their page.
    pub fn take<const BIG: bool>(&self, events: &[u8], found: &[Found], cpu: u32, batch: &mut Batch) {
        let first_word = batch.values.len();
        let Batch { rows, values, bytes, .. } = batch;
        let mut values_left = values.room(found.len() * self.most_words);
        let room = values_left.len();
        for (row, found) in rows.room(found.len()).iter_mut().zip(found) {
            let (kind, extract) = &self.wanted[usize::from(found.wanted)];
            let rest = &events[events.len() - found.left as usize..];
            let record = &rest[..found.length as usize];
            let start = (first_word + room - values_left.len()) as u32;
            let (words, left) = values_left.split_at_mut(extract.words());
            values_left = left;
            let tid = word(record, self.pid_offset);
            let tid = tid.map_or(NO_TID, if BIG { i32::from_be_bytes } else { i32::from_le_bytes });
            *row = Row { time_ns: self.clock.ns(found.ticks), kind: *kind, cpu, tid, start };
            extract.fill::<BIG>(record, rest.first_chunk(), words, bytes);
        }
        let filled = room - values_left.len();
        values.advance(filled);
        rows.advance(found.len());
    }
}

/// The `N` bytes at `offset`.
#[inline(always)]
fn word<const N: usize>(record: &[u8], offset: usize) -> Option<[u8; N]> {
    record.get(offset..)?.first_chunk().copied()
}
