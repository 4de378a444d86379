//! What a request means for the records of a buffer, and how a page of them becomes rows.
//!
//! ```text
//! page --> counts of all records, rows of the wanted ones      fields stay where they are, in the page (in_place.rs)
//! ```

use super::layout::{Layout, Shape};
use super::page::{LEAST_RECORD_BYTES, PageEnd, Record, Records};
use crate::batch::{Batch, Kind, Row, STORED};
use crate::extract::Extract;
use crate::facts::Facts;
use crate::format::Endian;
use crate::in_place::InPlace;
use crate::request::Request;
use base::Clock;
use std::sync::Arc;

/// An event that the file describes.
#[derive(Clone, Copy)]
struct Entry {
    /// Position in `Facts::event_types`; behind its end in [`UNKNOWN`].
    event_type: u16,
    /// Position in [`Plan::wanted`], or [`UNWANTED`].
    wanted: u16,
    /// Its kind, if it is wanted.
    kind: Kind,
    /// Position in [`Plan::layouts`]; [`STORED`] if its fields have to be taken out.
    layout: u16,
    /// The shortest record whose fields need not be taken out.
    needs_bytes: usize,
}

/// The entry of an id that no format describes.
const UNKNOWN: Entry = Entry { event_type: u16::MAX, wanted: UNWANTED, kind: 0, layout: STORED, needs_bytes: 0 };

const UNWANTED: u16 = u16::MAX;

/// Bytes of a record's head, and of its id and thread in it (`struct trace_entry` in include/linux/trace_events.h, Linux
/// 3.10 to 6.18).
const HEAD_BYTES: usize = 8;
const ID_BYTES: usize = 2;
const TID_BYTES: usize = 4;

/// A request, compiled for the streams of one buffer.
pub(super) struct Plan {
    clock: Clock,
    events: Vec<Entry>,
    /// What to take out of wanted records whose fields do not stay in place.
    wanted: Vec<Extract>,
    layouts: Arc<[InPlace]>,
    /// Place of `common_type` in a record's head, as a number.
    id_shift: u32,
    /// Place of `common_pid` there.
    tid_shift: u32,
}

/// What a page says beside its records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Survey {
    /// Time of the first and last record, wanted or not, in ticks.
    pub span: Option<(u64, u64)>,
    pub end: PageEnd,
}

impl Plan {
    /// Compiles `request` for the events that `layout` describes.
    pub(super) fn compile(layout: &Layout, facts: &Facts, request: &Request, clock: Clock) -> Self {
        let ids = layout.formats.iter().map(|format| format.id as usize).filter(|id| *id <= usize::from(u16::MAX));
        let mut events = vec![UNKNOWN; ids.max().map_or(0, |most| most + 1)];
        let (mut wanted, mut layouts) = (Vec::new(), Vec::new());
        for (position, (format, event)) in layout.formats.iter().zip(&facts.event_types).enumerate() {
            let (Some(entry), Ok(event_type)) = (events.get_mut(format.id as usize), u16::try_from(position)) else {
                continue;
            };
            *entry = Entry { event_type, ..UNKNOWN };
            let Some(kind) = request.kind_of(event) else { continue };
            let extract = Extract::compile(format, &request.events[kind], layout.endian);
            (entry.kind, entry.wanted) = (kind as Kind, wanted.len() as u16);
            (entry.layout, entry.needs_bytes) = match extract.in_place() {
                Some(in_place) => {
                    let known = (layouts.len() as u16, in_place.needs_bytes());
                    layouts.push(in_place);
                    known
                }
                None => (STORED, usize::MAX),
            };
            wanted.push(extract);
        }
        let common = |name| layout.formats.iter().find_map(|format| format.common(name));
        let shift = |name, usual: usize, bytes: usize| {
            // A description that puts them behind the head is damaged.
            let told = common(name).map(|field| field.offset as usize).filter(|offset| offset + bytes <= HEAD_BYTES);
            let offset = told.unwrap_or(usual);
            8 * if layout.endian == Endian::Little { offset } else { HEAD_BYTES - bytes - offset } as u32
        };
        let (id_shift, tid_shift) = (shift("common_type", 0, ID_BYTES), shift("common_pid", 4, TID_BYTES));
        Self { clock, events, wanted, layouts: layouts.into(), id_shift, tid_shift }
    }

    /// Nanoseconds of `ticks`.
    pub(super) fn ns(&self, ticks: u64) -> u64 {
        self.clock.ns(ticks)
    }

    /// Where fields lie in records that [`Plan::read`] leaves as they are.
    pub(super) fn layouts(&self) -> Arc<[InPlace]> {
        self.layouts.clone()
    }

    /// Counts the records of `page` in `batch`, and makes rows of the wanted ones. The page itself begins at byte `at` of
    /// what will be `batch.records`.
    pub(super) fn read<const BIG: bool>(
        &self,
        page: &[u8],
        at: usize,
        shape: &Shape,
        cpu: u32,
        batch: &mut Batch,
    ) -> Survey {
        let mut records = Records::<BIG>::new(page, shape);
        let behind = at + records.end().events_end;
        let Batch { rows, values, bytes, tally, .. } = batch;
        let (room, tally) = (rows.room(page.len() / LEAST_RECORD_BYTES + 1), &mut tally[..]);
        let first = first_ticks(records);
        let (mut last, mut unknown, mut wanted) = (0, 0, 0);
        for Record { ticks, bytes: record, before_end } in &mut records {
            last = ticks;
            let head = record.first_chunk().copied().unwrap_or_else(|| head_of_short(record));
            let head = if BIG { u64::from_be_bytes(head) } else { u64::from_le_bytes(head) };
            let Some(entry) = self.events.get(usize::from((head >> self.id_shift) as u16)) else {
                unknown += 1;
                continue;
            };
            match tally.get_mut(usize::from(entry.event_type)) {
                Some(count) => *count += 1,
                None => unknown += 1,
            }
            // Which records are wanted follows no rule that a CPU could foresee: each gets a row, and that of an unwanted
            // one is the next one's too.
            let Some(row) = room.get_mut(wanted) else { break };
            let Entry { kind, layout, .. } = *entry;
            let tid = (head >> self.tid_shift) as i32;
            *row = Row { time_ns: ticks, kind, cpu, tid, start: (behind - before_end) as u32, layout };
            wanted += usize::from(entry.wanted != UNWANTED);
            if record.len() < entry.needs_bytes {
                (row.start, row.layout) = (values.len() as u32, STORED);
                self.wanted[usize::from(entry.wanted)].store(record, values, bytes);
            }
        }
        // By itself, so that the values of each loop fit into registers.
        room[..wanted].iter_mut().for_each(|row| row.time_ns = self.clock.ns(row.time_ns));
        rows.advance(wanted);
        batch.unknown += unknown;
        Survey { span: first.map(|first| (first, last)), end: records.end() }
    }
}

/// Time of the first of `records`. By itself: to ask each record whether it is the first takes longer.
#[inline(never)]
fn first_ticks<const BIG: bool>(mut records: Records<'_, BIG>) -> Option<u64> {
    records.next().map(|record| record.ticks)
}

/// The head of a record that ends within it; what is missing is all ones, which as a thread is `batch::NO_TID`.
#[cold]
fn head_of_short(record: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = [u8::MAX; HEAD_BYTES];
    head[..record.len()].copy_from_slice(record);
    head
}
