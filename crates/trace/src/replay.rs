//! Events of all lanes, in the order in which they happened.
//!
//! ```text
//! lane 0  [piece][piece][piece] ...   decoded ahead by other threads (decoders.rs), a bounded number at a time
//! lane 1  [piece][piece] ...                     \
//!            ^ heads: the earliest goes next, a whole run as long as it stays the earliest
//! ```
//! Lost events are told where they began, before what other CPUs recorded meanwhile. Order is (time, lane, position). No global sort: a lane that runs backwards in time is passed on as it is, for the
//! consumer to count. Memory is bounded by the pieces in flight, not by the size of the trace.

use crate::batch::{Batch, Kind, LOST, Row};
use crate::decoders::Decoders;
use crate::in_place::Fields;
use crate::lane::{Reading, Trace};
use crate::request::Request;
use base::{Clock, Problem, Problems};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// One event, borrowed from its batch.
#[derive(Clone, Copy)]
pub struct Event<'b> {
    /// Time in ns on the trace's clock; for lost events when the losses began, the time of the lane's event before.
    pub time_ns: u64,
    /// For lost events: until when they were lost. For others the same as `time_ns`.
    pub until_ns: u64,
    /// Position in the request, or [`LOST`].
    pub kind: Kind,
    /// CPU.
    pub cpu: u32,
    /// Thread, or [`NO_TID`](crate::batch::NO_TID).
    pub tid: i32,
    /// The lane it came from.
    pub lane: usize,
    fields: Fields<'b>,
}

impl<'b> Event<'b> {
    /// Value of the `field`-th wanted field, if the event has it.
    #[inline(always)]
    pub fn get(&self, field: usize) -> Option<u64> {
        self.fields.get(field)
    }

    /// Value of the `field`-th wanted field, 0 if the event does not have it.
    #[inline(always)]
    pub fn or_zero(&self, field: usize) -> u64 {
        self.get(field).unwrap_or(0)
    }

    /// Content of a text or bytes field.
    #[inline]
    pub fn content(&self, field: usize) -> Option<&'b [u8]> {
        self.fields.content(field)
    }

    /// True for a record that stands for lost events.
    pub fn is_loss(&self) -> bool {
        self.kind == LOST
    }
}

/// Who hears the events of a replay.
pub trait Listener {
    /// The time of the trace's first event, wanted or not; said once, before any event.
    fn start(&mut self, _origin_ns: u64) {}

    /// One wanted event, or a record of lost ones.
    fn event(&mut self, event: &Event<'_>);

    /// Bytes read, and bytes in all.
    fn progress(&mut self, _done: u64, _all: u64) {}

    /// True ends the replay before its end.
    fn enough(&self) -> bool {
        false
    }
}

/// What a replay has seen in all, wanted or not.
#[derive(Debug, Default)]
pub struct Totals {
    /// Events per entry of `Facts::event_types`.
    pub tally: Vec<u64>,
    /// Events whose kind no description names.
    pub unknown: u64,
    /// Time of the first and last event.
    pub span_ns: Option<(u64, u64)>,
    /// Damage met while decoding.
    pub problems: Problems,
}

impl Totals {
    /// All events.
    pub fn events(&self) -> u64 {
        self.tally.iter().sum::<u64>() + self.unknown
    }

    fn take_in(&mut self, batch: &mut Batch) {
        for (sum, count) in self.tally.iter_mut().zip(&batch.tally) {
            *sum += u64::from(*count);
        }
        self.unknown += batch.unknown;
        if let Some((first, last)) = batch.span_ns {
            let (old_first, old_last) = self.span_ns.unwrap_or((first, last));
            self.span_ns = Some((old_first.min(first), old_last.max(last)));
        }
        self.problems.extend(batch.problems.drain(..));
    }
}

/// Hands every wanted event of `trace` to `listener` in time order.
pub fn replay(trace: &dyn Trace, reading: &Reading<'_>, listener: &mut impl Listener) -> Totals {
    let event_types = trace.facts().event_types.len();
    let lanes = trace.lanes(reading);
    let mut totals = Totals { tally: vec![0; event_types], ..Totals::default() };
    crate::decoders::run(lanes, event_types, |decoders| merge(decoders, &mut totals, listener));
    totals.problems.extend(trace.torn().iter().map(|file| torn(file)));
    totals
}

fn torn(file: &str) -> Problem {
    let text =
        format!("{file} was truncated while it was read, or its disk failed: the events after that point are missing");
    Problem::at(file, None, "a file that can be read to its end", "an end before it", 0, text)
}

/// Time of the trace's first event; `fitted` as in [`Reading`].
pub fn origin_ns(trace: &dyn Trace, fitted: Option<Clock>) -> u64 {
    struct First(u64);
    impl Listener for First {
        fn start(&mut self, origin_ns: u64) {
            self.0 = origin_ns;
        }
        fn event(&mut self, _: &Event<'_>) {}
        fn enough(&self) -> bool {
            true
        }
    }
    let request = Request::everything(trace.facts());
    let mut first = First(0);
    replay(trace, &Reading { request: &request, fitted }, &mut first);
    first.0
}

/// Where one lane stands.
struct Head {
    batch: Batch,
    at: usize,
    /// Time of its last event, for losses whose own time is not known.
    last_ns: u64,
}

fn merge(decoders: &mut Decoders<'_, '_>, totals: &mut Totals, listener: &mut impl Listener) {
    let lanes = decoders.lanes();
    let mut heads: Vec<Head> = Vec::with_capacity(lanes);
    let mut order = BinaryHeap::with_capacity(lanes);
    for lane in 0..lanes {
        let mut head = Head { batch: Batch::default(), at: 0, last_ns: 0 };
        if refill(&mut head, lane, decoders, totals) {
            order.push(Reverse((head.next_ns(), lane)));
        }
        heads.push(head);
    }
    listener.start(totals.span_ns.map_or(0, |(first, _)| first));
    loop {
        // The earliest head stays in the heap while its run is told, so that one sift does for both its ends. Behind it
        // the next one is a child of the heap's root.
        let next = order.as_slice().iter().skip(1).take(2).map(|Reverse(next)| *next).min();
        let Some(mut first) = order.peek_mut() else { return };
        let Reverse((time_ns, lane)) = &mut *first;
        // Of two at the same time the lower lane goes first. This one is the earliest, so that it is told at least one.
        let until_ns =
            |(next_ns, next_lane): (u64, usize)| if *lane < next_lane { next_ns } else { next_ns.saturating_sub(1) };
        let until_ns = next.map_or(u64::MAX, until_ns);
        let head = &mut heads[*lane];
        head.tell(until_ns, *lane, listener);
        if head.at < head.batch.len() {
            *time_ns = head.next_ns();
        } else {
            let (done, all) = decoders.progress();
            listener.progress(done, all);
            if refill(head, *lane, decoders, totals) {
                *time_ns = head.next_ns();
            } else {
                PeekMut::pop(first);
            }
        }
        if listener.enough() {
            return;
        }
    }
}

/// Brings the lane's next batch that holds a wanted event; false at the lane's end.
fn refill(head: &mut Head, lane: usize, decoders: &mut Decoders<'_, '_>, totals: &mut Totals) -> bool {
    loop {
        decoders.give_back(std::mem::take(&mut head.batch));
        head.at = 0;
        let Some(batch) = decoders.next(lane) else { return false };
        head.batch = batch;
        totals.take_in(&mut head.batch);
        if !head.batch.is_empty() {
            return true;
        }
    }
}

/// So many events before an event is told its record is asked for.
const FETCHED_AHEAD: usize = 8;

impl Head {
    /// When the next event happened, or when the lane went silent if it is a loss.
    #[inline]
    fn next_ns(&self) -> u64 {
        let row = &self.batch.rows[self.at];
        if row.kind == LOST { self.last_ns } else { row.time_ns }
    }

    /// Tells the events up to `until_ns`.
    #[inline(always)]
    fn tell(&mut self, until_ns: u64, lane: usize, listener: &mut impl Listener) {
        let (rows, contents, before) = (&self.batch.rows[..], self.batch.contents(), self.at);
        let mut at = before;
        while let Some(row) = rows.get(at) {
            let mut times = (row.time_ns, row.time_ns);
            if row.kind == LOST {
                times = loss_times(&rows[before..], at - before, self.last_ns);
            }
            if times.0 > until_ns {
                break;
            }
            at += 1;
            if let Some(soon) = rows.get(at + FETCHED_AHEAD) {
                contents.fetch(soon);
            }
            let ((time_ns, until_ns), Row { kind, cpu, tid, .. }) = (times, *row);
            listener.event(&Event { time_ns, until_ns, kind, cpu, tid, lane, fields: contents.fields(row) });
        }
        self.at = at;
        self.last_ns = last_told_ns(&rows[before..at], self.last_ns);
    }
}

/// When the loss began that stands at `place` of `rows`, and when it was over; `last_ns` is the time of the event before
/// these.
#[cold]
fn loss_times(rows: &[Row], place: usize, last_ns: u64) -> (u64, u64) {
    let (told, left) = rows.split_at(place);
    let before_ns = last_told_ns(told, last_ns);
    (before_ns, lost_until_ns(before_ns, left))
}

/// When the last event of `told` happened. A loss is told at the time of the event before it; the first has one at
/// `before_ns` before it.
#[inline]
fn last_told_ns(told: &[Row], before_ns: u64) -> u64 {
    told.iter().rev().find(|row| row.kind != LOST).map_or(before_ns, |row| row.time_ns)
}

/// When the loss that `rows` begin with was over: as its reader says, else by the next event of the lane.
fn lost_until_ns(before_ns: u64, rows: &[Row]) -> u64 {
    let told = rows[0].time_ns;
    let next = rows.get(1).map_or(told, |row| row.time_ns);
    if told > before_ns { told } else { next.max(before_ns) }
}
