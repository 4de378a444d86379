//! Decoded events of one piece of a trace, as columns.
//!
//! ```text
//! rows                                                      values
//! { time 100, kind 0, cpu 1, tid 170, STORED, start 0 }  -> [ mask | field 0 | field 1 | ... ]
//! { time 180, kind 3, cpu 1, tid 170, layout 2, start 96 }  records
//!                                        |         '------> [ .. the record as it was written .. ]
//!                                        '--> layouts[2]: where in it the fields lie
//! ```
//! What every event has stands in one row, because it is read together. Fields are stored as values, or stay in the
//! record until they are asked for, where all of them have fixed places there. `mask` has bit i set if the event has
//! the i-th wanted field; an absent field's value is 0. Text and byte arrays are handles into `bytes`. A batch is
//! filled by one thread, read by another, and used again.

use crate::column::Column;
use crate::in_place::{Fields, InPlace};
use crate::load::WINDOW_BYTES;
use crate::records::Records;
use base::Problem;
use std::sync::Arc;

/// Position of an event's kind in the [`Request`](crate::Request).
pub type Kind = u16;

/// The kind of a record that stands for lost events: field 0 is their number (0: unknown), field 1 the bytes.
pub const LOST: Kind = Kind::MAX;

/// The `layout` of an event whose fields are stored as values.
pub const STORED: u16 = u16::MAX;

/// The thread of an event, where the trace does not say it.
pub const NO_TID: i32 = -1;

/// What every event has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Row {
    /// Time in ns on the trace's clock (in ticks if the reading asked for ticks).
    pub time_ns: u64,
    /// CPU on which it happened.
    pub cpu: u32,
    /// Thread that was running, or [`NO_TID`].
    pub tid: i32,
    /// Where its mask and values start in `values`, or its record in `records`.
    pub start: u32,
    /// Its kind.
    pub kind: Kind,
    /// [`STORED`], or the place in `layouts` of what tells where its fields lie in its record.
    pub layout: u16,
}

/// Events of one piece, in the order in which they stand there.
#[derive(Debug, Default)]
pub struct Batch {
    /// What every event has.
    pub rows: Column<Row>,
    /// Masks and values.
    pub values: Column<u64>,
    /// Contents of text and byte fields.
    pub bytes: Vec<u8>,
    /// Records whose fields were left in place, and [`PADDING_BYTES`](crate::in_place::PADDING_BYTES) behind each of them.
    pub records: Records,
    /// Where fields lie in those records.
    pub layouts: Arc<[InPlace]>,
    /// How many events of each of `Facts::event_types` the piece holds, wanted or not.
    pub tally: Vec<u32>,
    /// Events whose kind no description names.
    pub unknown: u64,
    /// Time of the first and last event, wanted or not.
    pub span_ns: Option<(u64, u64)>,
    /// Damage found in the piece.
    pub problems: Vec<Problem>,
    /// Bytes of the input behind it, as they are stored there.
    pub read_bytes: u64,
}

impl Batch {
    /// Empties the batch and keeps its memory.
    pub fn clear(&mut self, event_types: usize) {
        self.rows.clear();
        self.values.clear();
        self.bytes.clear();
        self.records.clear();
        self.tally.clear();
        self.tally.resize(event_types, 0);
        self.unknown = 0;
        self.span_ns = None;
        self.problems.clear();
        self.read_bytes = 0;
    }

    /// Number of wanted events.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if there is no wanted event.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Notes that an event of type `event_type` stands at `time_ns`, wanted or not.
    #[inline]
    pub fn saw(&mut self, time_ns: u64, event_type: usize) {
        if let Some(count) = self.tally.get_mut(event_type) {
            *count += 1;
        }
        self.saw_time(time_ns);
    }

    /// Widens the span to hold `time_ns`.
    #[inline]
    pub fn saw_time(&mut self, time_ns: u64) {
        match &mut self.span_ns {
            Some((first, last)) => {
                *first = (*first).min(time_ns);
                *last = (*last).max(time_ns);
            }
            None => self.span_ns = Some((time_ns, time_ns)),
        }
    }

    /// Starts a wanted event whose mask and values follow.
    #[inline]
    pub fn row(&mut self, time_ns: u64, kind: Kind, cpu: u32, tid: i32) {
        self.rows.push(Row { time_ns, kind, cpu, tid, start: self.values.len() as u32, layout: STORED });
    }

    /// Starts a wanted event whose values follow by [`Batch::value`] and [`Batch::handle`].
    #[inline]
    pub fn begin(&mut self, time_ns: u64, kind: Kind, cpu: u32, tid: i32, mask: u64) {
        self.row(time_ns, kind, cpu, tid);
        self.values.push(mask);
    }

    /// Adds the next value of the event begun last.
    #[inline]
    pub fn value(&mut self, value: u64) {
        self.values.push(value);
    }

    /// Stores `content` and returns the value that stands for it.
    #[inline]
    pub fn handle(&mut self, content: &[u8]) -> u64 {
        store(&mut self.bytes, content)
    }

    /// Adds a record of lost events. A time of 0 means: right after the stream's last event.
    pub fn lost(&mut self, time_ns: u64, cpu: u32, events: u64, bytes: u64) {
        self.begin(time_ns, LOST, cpu, NO_TID, 0b11);
        self.value(events);
        self.value(bytes);
    }

    /// What rows point into.
    #[inline]
    pub fn contents(&self) -> Contents<'_> {
        Contents { records: self.records.bytes(), layouts: &self.layouts, values: &self.values, bytes: &self.bytes }
    }

    /// The fields of the event in `row`.
    pub fn fields(&self, row: &Row) -> Fields<'_> {
        self.contents().fields(row)
    }

    /// The content that a text or bytes value stands for.
    #[inline]
    pub fn content(&self, handle: u64) -> &[u8] {
        crate::in_place::content(&self.bytes, handle)
    }
}

/// What the rows of a batch point into.
#[derive(Clone, Copy)]
pub struct Contents<'b> {
    records: &'b [u8],
    layouts: &'b [InPlace],
    values: &'b [u64],
    bytes: &'b [u8],
}

impl<'b> Contents<'b> {
    /// The fields of the event in `row`.
    #[inline(always)]
    pub fn fields(&self, row: &Row) -> Fields<'b> {
        let start = row.start as usize;
        if let Some(layout) = self.layouts.get(usize::from(row.layout))
            && let Some(window) = self.records.get(start..start + WINDOW_BYTES).and_then(<[u8]>::first_chunk)
        {
            return Fields::InPlace { layout, window };
        }
        let (mask, values) = self.values[start..].split_first().map_or((0, &[][..]), |(mask, rest)| (*mask, rest));
        Fields::Stored { mask, values, bytes: self.bytes }
    }

    /// Asks the CPU for the record of `row`, which will be read soon.
    #[inline(always)]
    pub fn fetch(&self, row: &Row) {
        #[cfg(target_arch = "x86_64")]
        if let Some(field) = self.records.get(row.start as usize + FIRST_FIELD) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a hint, which reads nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(field).cast()) }
        }
    }
}

/// About where a record's own fields begin.
const FIRST_FIELD: usize = 16;

/// Appends `content` and returns the value that stands for it: place << 32 | length.
#[inline]
pub(crate) fn store(bytes: &mut Vec<u8>, content: &[u8]) -> u64 {
    let at = bytes.len() as u64;
    bytes.extend_from_slice(content);
    (at << 32) | content.len() as u64
}
